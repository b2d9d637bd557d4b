"""Records for `specs/LeaseTrace.tla`: all members of a schedule together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.lease_recorder import FREE, NOBODY, LeaseRecorder, Process
from simulation.recorder import Step
from traced.model import MOST_OFFSETS, Forged, Trace, Traced, tla

_ACTIONS = (
    *("join", "join again", "look", "heartbeat", "lease ends", "assign", "acquire", "release", "plan", "authorize"),
    *("complete", "commit", "late commit", "leave", "fenced"),
)
_MOST_EPOCHS = 1_000


def _constants(traces: Sequence[Trace]) -> list[str]:
    processes = sorted({step["p"] for trace in traces for step in trace.steps if "p" in step})
    return [
        "O(m, e) == [member |-> m, epoch |-> e]",
        "P(m, n) == [member |-> m, life |-> n]",
        "S(e, from, until) == [epoch |-> e, from |-> from, until |-> until, read |-> FALSE]",
        f"Members == {tla({member for member, _ in processes})}",
        f"Processes == {{{', '.join(map(_process, processes))}}}",
        f"MostLives == {len(processes)}",
        f"MostEpochs == {_MOST_EPOCHS}",
        f"MostOffsets == {MOST_OFFSETS}",
    ]


def _process(process: tuple[str, int]) -> str:
    return f'P("{process[0]}", {process[1]})'


def _owner(owners: Iterable[tuple[str, int]]) -> str:
    return f"<<{', '.join('Free' if m == NOBODY else f'O({tla(m)}, {e})' for m, e in owners)}>>"


def _slices(slices: Iterable[tuple[int, int, int]]) -> str:
    return f"<<{', '.join(f'S{s}' if any(s) else 'Nothing' for s in slices)}>>"


_FORMS: Mapping[str, Callable[[Any], str]] = {"p": _process, "owner": _owner, "slices": _slices}


@dataclass(slots=True)
class Before:
    """What a record has shown before a step."""

    owner: tuple[tuple[str, int], ...] = ()
    position: tuple[int, ...] = ()
    assigned: tuple[str, ...] = ()
    batch: dict[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)  # of each member: its slices
    reading: dict[Process, set[int]] = field(default_factory=dict)  # lanes that are authorised and not committed
    life: dict[str, int] = field(default_factory=dict)  # the latest of each member
    gone: set[Process] = field(default_factory=set)

    @classmethod
    def first(cls, lanes: int) -> "Before":
        """Before the first step."""
        return cls(((NOBODY, 0),) * lanes, (0,) * lanes, (NOBODY,) * lanes)

    def after(self, step: Step) -> None:
        """Take a step into account."""
        for what in ("owner", "position", "assigned"):
            setattr(self, what, step.get(what, getattr(self, what)))
        match step:
            case {"ev": "join", "p": (member, life)}:
                self.life[member] = life
            case {"ev": "plan", "p": (member, _), "slices": slices}:
                self.batch[member] = slices
            case {"ev": "authorize", "p": process, "lanes": lanes}:
                self.reading[process] = {n for n in lanes if self.sliced(process, n)}
            case {"ev": "commit" | "leave" as what, "p": process}:
                self.reading.pop(process, None)
                self.gone |= {process} if what == "leave" else set()

    def sliced(self, process: Process, lane: int) -> bool:
        """Whether the member's last batch has a slice of a lane."""
        return any(self.batch.get(process[0], ((0, 0, 0),) * lane)[lane - 1])

    def moved(self, step: Step) -> list[int]:
        """The lanes that have another owner after a step."""
        return [
            n
            for n, (old, new) in enumerate(zip(self.owner, step.get("owner", self.owner), strict=True), 1)
            if old != new
        ]


def _one_life(step: Step, before: Before) -> Forged:
    member, life = step["p"] if step["ev"] == "join" else ("", 1)
    old = member, life - 1
    return [step, {"ev": "heartbeat", "p": old}] if life > 1 and old not in before.gone else None


def _lease_end(step: Step, before: Before) -> Forged:
    lost = {before.owner[n - 1][0] for n in before.moved(step)} - {NOBODY} if step["ev"] == "acquire" else set()
    awake = [p for p in sorted((m, before.life[m]) for m in lost) if p not in before.gone]
    return [{"ev": "heartbeat", "p": awake[0]}, step] if awake else None


def _no_epoch_twice(step: Step, before: Before) -> Forged:
    gained = before.moved(step) if step["ev"] == "acquire" else []
    owner = [(m, e - (n in gained)) for n, (m, e) in enumerate(step.get("owner", ()), 1)]
    return [{**step, "owner": tuple(owner)}] if gained and all(e for m, e in owner if m != NOBODY) else None


def _checked_assignment(step: Step, before: Before) -> Forged:
    return (
        [{**step, "assigned": (NOBODY, *step["assigned"][1:])}]
        if step["ev"] == "assign" and "assigned" in step
        else None
    )


def _first_assignment_wins(step: Step, before: Before) -> Forged:
    return [step, {"ev": "assign", "p": step["p"]}] if step["ev"] == "assign" else None


def _release_to_a_waiting_owner(step: Step, before: Before) -> Forged:
    freed = before.moved(step) if step["ev"] == "release" else []
    return [{"ev": "lease ends", "m": before.assigned[freed[0] - 1]}, step] if freed else None


def _authorize_every_batch(step: Step, before: Before) -> Forged:
    if step["ev"] != "authorize":
        return None
    lanes = {n for n in range(1, len(before.owner) + 1) if before.sliced(step["p"], n)}
    return [{**step, "lanes": lanes}] if lanes - step["lanes"] else None


def _fence_by_lane_epoch(step: Step, before: Before) -> Forged:
    return [{**step, "refused": set()}] if step.get("refused") else None


def _leave_keeps_unconfirmed(step: Step, before: Before) -> Forged:
    now, reading = step.get("owner", before.owner), before.reading.get(step["p"], ()) if step["ev"] == "leave" else ()
    kept = {n for n in reading if now[n - 1][0] == step["p"][0]}
    return [{**step, "owner": tuple(FREE if n in kept else o for n, o in enumerate(now, 1))}] if kept else None


def _fresh_positions(step: Step, before: Before) -> Forged:
    if step["ev"] != "plan":
        return None
    later = tuple(
        (epoch, start + 1, until + 1) if epoch else (epoch, start, until) for epoch, start, until in step["slices"]
    )
    return [{**step, "slices": later}] if later != step["slices"] else None


_FORGERIES: Mapping[str, Callable[[Step, Before], Forged]] = {
    "one-life": _one_life,
    "lease-end": _lease_end,
    "no-epoch-twice": _no_epoch_twice,
    "checked-assignment": _checked_assignment,
    "first-assignment-wins": _first_assignment_wins,
    "release-to-a-waiting-owner": _release_to_a_waiting_owner,
    "authorize-every-batch": _authorize_every_batch,
    "fence-by-lane-epoch": _fence_by_lane_epoch,
    "leave-keeps-unconfirmed": _leave_keeps_unconfirmed,
    "fresh-positions": _fresh_positions,
}


LEASE = Traced("Lease", LeaseRecorder, _ACTIONS, _constants, _FORMS, Before.first, _FORGERIES)
