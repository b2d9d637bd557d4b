"""Recorded schedules as modules of TLA+, for `specs/LeaseTrace.tla`; and forgeries of them, one for each rule.

The schedules run the real coordinator (`simulation`), of the kinds that the model has. A record becomes a tuple of
TLA+. A forgery is the beginning of a record whose last step breaks a rule: if TLC goes on, it does not check that rule.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.recorder import FREE, NOBODY, Process, Recorder, Step
from simulation.schedules import Schedule
from simulation.sink import Violation
from simulation.world import Valkey

ACTIONS = (
    *("join", "join again", "look", "heartbeat", "lease ends", "assign", "acquire", "release", "plan", "authorize"),
    *("complete", "commit", "leave", "fenced"),
)
"""The actions of the model: the schedules must have each of them."""

MOST_EPOCHS, MOST_OFFSETS = 1_000, 1_000
_AT = re.compile(r"^/\\ (trace|cursor) = (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Trace:
    """The record of one schedule."""

    seed: int
    lanes: int
    steps: tuple[Step, ...]
    repeats: int = 0  # steps that it leaves out
    ends_at: str = ""  # why the record ends before the schedule
    beside: Mapping[str, int] = field(default_factory=dict)  # what is no step
    violation: str = ""  # the broken promise that the simulation found itself


def record(valkey: Valkey, seed: int) -> Trace:
    """Run a schedule of the kinds that the model has, and record it."""
    schedule = Schedule(valkey, seed, modelled=True)
    world, violation = schedule.world, ""
    recorder = Recorder(world.server.client, valkey.text, world.server.keys, world.kafka.logs)
    world.server.client, world.logged = recorder, recorder.logged
    try:
        schedule.run()
    except Violation as broken:
        violation = str(broken)
    finally:
        world.close()
    steps, lanes = tuple(recorder.steps), len(recorder.lanes)
    return Trace(seed, lanes, steps, recorder.repeats, recorder.ends_at, recorder.beside, violation)


def counts(traces: Iterable[Trace]) -> Counter[str]:
    """How often each action happened."""
    return Counter(step["ev"] for trace in traces for step in trace.steps)


# -- TLA+ --------------------------------------------------------------------------------------


def by_lanes(traces: Iterable[Trace]) -> list[list[Trace]]:
    """The traces that one run of TLC can check: it has one set of lanes."""
    found = defaultdict[int, list[Trace]](list)
    for trace in traces:
        found[trace.lanes].append(trace)
    return [found[lanes] for lanes in sorted(found)]


def module(traces: Sequence[Trace]) -> str:
    """The text of `Recorded.tla`, for traces with as many lanes each."""
    processes = sorted({step["p"] for trace in traces for step in trace.steps if "p" in step})
    steps = [",\n".join(f"  {_record(step)}" for step in trace.steps) for trace in traces]
    of_traces = [f"Trace{n} == <<\n{text} >>\n" for n, text in enumerate(steps, 1)]
    return "\n".join(
        [
            "---- MODULE Recorded ----",
            "EXTENDS Lease",
            "O(m, e) == [member |-> m, epoch |-> e]",
            "P(m, n) == [member |-> m, life |-> n]",
            "S(e, from, until) == [epoch |-> e, from |-> from, until |-> until, read |-> FALSE]",
            f"Members == {_tla({member for member, _ in processes})}",
            f"Lanes == 1..{traces[0].lanes}",
            f"Processes == {{{', '.join(map(_process, processes))}}}",
            f"MostLives == {len(processes)}",
            f"MostEpochs == {MOST_EPOCHS}",
            f"MostOffsets == {MOST_OFFSETS}",
            *of_traces,
            f"Traces == <<{', '.join(f'Trace{n}' for n in range(1, len(traces) + 1))}>>",
            "====",
            "",
        ]
    )


def _record(step: Step) -> str:
    return f"[{', '.join(f'{name} |-> {_FORMS.get(name, _tla)(value)}' for name, value in step.items())}]"


def _tla(value: object) -> str:
    match value:
        case str():
            return f'"{value}"'
        case tuple():
            return f"<<{', '.join(map(_tla, value))}>>"
        case set():
            return f"{{{', '.join(map(_tla, sorted(value)))}}}"
        case _:
            return str(value)


def _process(process: tuple[str, int]) -> str:
    return f'P("{process[0]}", {process[1]})'


def _owner(owners: Iterable[tuple[str, int]]) -> str:
    return f"<<{', '.join('Free' if m == NOBODY else f'O({_tla(m)}, {e})' for m, e in owners)}>>"


def _slices(slices: Iterable[tuple[int, int, int]]) -> str:
    return f"<<{', '.join(f'S{s}' if any(s) else 'Nothing' for s in slices)}>>"


_FORMS: Mapping[str, Callable[[Any], str]] = {"p": _process, "owner": _owner, "slices": _slices}


def stopped_at(output: str) -> tuple[int, int] | None:
    """The number of the trace and of the step in the last state that TLC shows, both from 0; None if it shows none."""
    last = dict(_AT.findall(output))
    return (int(last["trace"]) - 1, int(last["cursor"]) - 1) if len(last) == len(("trace", "cursor")) else None


# -- forgeries ---------------------------------------------------------------------------------


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


Forged = list[Step] | None
"""The last steps of a forgery; None where a step gives no occasion."""


def _one_life(step: Step, before: Before) -> Forged:
    member, life = step["p"]
    old = member, life - 1
    return (
        [step, {"ev": "heartbeat", "p": old}] if step["ev"] == "join" and life > 1 and old not in before.gone else None
    )


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
    refused = {n for n in step["refused"] if before.sliced(step["p"], n)} if step["ev"] == "commit" else set()
    batch, now = before.batch.get(step["p"][0], ()), step.get("position", before.position)
    position = tuple(max(at, batch[n - 1][2]) if n in refused else at for n, at in enumerate(now, 1))
    return [{**step, "refused": set(), "position": position}] if position != now else None


def _leave_keeps_unconfirmed(step: Step, before: Before) -> Forged:
    member, now = step["p"][0], step.get("owner", before.owner)
    kept = {n for n in before.reading.get(step["p"], ()) if now[n - 1][0] == member} if step["ev"] == "leave" else set()
    return [{**step, "owner": tuple(FREE if n in kept else o for n, o in enumerate(now, 1))}] if kept else None


def _fresh_positions(step: Step, before: Before) -> Forged:
    if step["ev"] != "plan":
        return None
    later = tuple(
        (epoch, start + 1, until + 1) if epoch else (epoch, start, until) for epoch, start, until in step["slices"]
    )
    return [{**step, "slices": later}] if later != step["slices"] else None


FORGERIES: Mapping[str, Callable[[Step, Before], Forged]] = {
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
"""By the rule that each breaks."""


def forgery(rule: str, traces: Iterable[Trace]) -> Trace | None:
    """The shortest forgery that breaks a rule; None if no record gives an occasion."""
    found = [forged for trace in traces if (forged := _forged(rule, trace))]
    return min(found, key=lambda trace: len(trace.steps), default=None)


def _forged(rule: str, trace: Trace) -> Trace | None:
    before = Before(((NOBODY, 0),) * trace.lanes, (0,) * trace.lanes, (NOBODY,) * trace.lanes)
    for n, step in enumerate(trace.steps):
        if "p" in step and (last := FORGERIES[rule](step, before)):
            return Trace(trace.seed, trace.lanes, (*trace.steps[:n], *last))
        before.after(step)
    return None
