"""Records for `specs/BatchTrace.tla`: each application of a schedule by itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simulation.batch_recorder import UNKNOWN, BatchRecorder, Slices
from simulation.recorder import Step
from traced.model import MOST_OFFSETS, Forged, Trace, Traced, tla

_ACTIONS = (
    *(
        "starts",
        "others",
        "acquire",
        "plan",
        "offset log",
        "authorize",
        "abandon",
        "tasks",
        "attempt",
        "silent",
        "seal",
    ),
    *("sink", "skips", "commit log", "commit", "entry lost", "leave"),
)


def _constants(traces: Sequence[Trace]) -> list[str]:
    batches = max(sum(step["ev"] == "offset log" for step in trace.steps) for trace in traces)
    return [
        f"MostOffsets == {MOST_OFFSETS}",
        f"MostBatches == {batches + 1}",
        f"MostCrashes == {max(len(trace.steps) for trace in traces)}",
    ]


def _digest(digest: int | str) -> str:
    return "Unknown" if digest == UNKNOWN else tla(digest)


@dataclass(slots=True)
class Before:
    """What a record has shown before a step."""

    position: tuple[int, ...]
    mine: frozenset[int] = frozenset()
    digest: int | str = 0
    planned: Slices = ()
    lanes: frozenset[int] = frozenset()  # that are read
    output: dict[int, int] = field(default_factory=dict)

    @classmethod
    def first(cls, lanes: int) -> "Before":
        """Before the first step."""
        return cls((0,) * lanes)

    def after(self, step: Step) -> None:
        """Take a step into account."""
        for what in ("position", "mine", "digest"):
            setattr(self, what, step.get(what, getattr(self, what)))
        match step:
            case {"ev": "plan", "slices": slices}:
                self.planned, self.output = slices, {}
            case {"ev": "authorize", "lanes": lanes}:
                self.lanes, self.output = frozenset(lanes), {}
            case {"ev": "abandon", "lanes": lanes}:
                self.lanes -= lanes
            case {"ev": "attempt", "lane": lane, "end": end}:
                self.output[lane] = end
            case {"ev": "silent", "lane": lane}:
                self.output[lane] = self.planned[lane - 1][1]

    def ends(self) -> tuple[int, ...]:
        """The ends of all tasks so far, of each lane."""
        return tuple(self.output.get(n, 0) for n in range(1, len(self.position) + 1))

    def committed(self) -> tuple[int, ...]:
        """The positions if the batch were committed to its planned ends."""
        lanes = enumerate(zip(self.position, self.planned, strict=True), 1)
        return tuple(max(at, until) if n in self.mine else at for n, (at, (_, until)) in lanes)

    def further(self, reads: tuple[int, ...]) -> tuple[int, ...]:
        """All lanes that may be read, to their planned ends."""
        return tuple(self.planned[n - 1][1] if n in self.lanes else until for n, until in enumerate(reads, 1))


def _commit_before_plan(step: Step, before: Before) -> Forged:
    moved = before.committed() if step["ev"] == "sink" else before.position
    return [step, {"ev": "commit", "unread": False, "position": moved}] if moved != before.position else None


def _cumulative_commit(step: Step, before: Before) -> Forged:
    if step["ev"] != "commit" or step["unread"] or "position" not in step or not any(before.position):
        return None
    lower = tuple(at - (at > 0) for at in before.position)
    return [{**step, "position": lower}]


def _first_end_wins(step: Step, before: Before) -> Forged:
    if step["ev"] != "attempt" or step["end"] == before.planned[step["lane"] - 1][0]:
        return None
    return [step, {"ev": "attempt", "lane": step["lane"], "end": step["end"] - 1}]


def _omit_what_was_skipped(step: Step, before: Before) -> Forged:
    if step["ev"] != "abandon" or "mine" not in step:
        return None
    return [{what: value for what, value in step.items() if what != "mine"}]


def _replay_fixed(step: Step, before: Before) -> Forged:
    if step["ev"] != "tasks" or before.digest == UNKNOWN:
        return None
    further = before.further(step["reads"])
    return [{**step, "reads": further}] if further != step["reads"] else None


def _unknown_is_beginning(step: Step, before: Before) -> Forged:
    if step["ev"] != "tasks" or before.digest != UNKNOWN:
        return None
    further = before.further(step["reads"])
    return [{**step, "reads": further}] if further != step["reads"] else None


def _seal_as_planned(step: Step, before: Before) -> Forged:
    if step["ev"] != "authorize" or not step.get("sealed"):
        return None
    return [{what: value for what, value in step.items() if what not in ("sealed", "seal")}]


def _seal_before_sink(step: Step, before: Before) -> Forged:
    return [{"ev": "sink", "ends": before.ends()}] if step["ev"] == "seal" and step.get("sealed") else None


def _unread_batch(step: Step, before: Before) -> Forged:
    moved = before.committed() if step["ev"] == "commit" and step["unread"] else before.position
    return [{**step, "unread": False, "position": moved}] if moved != before.position else None


def _fresh_positions(step: Step, before: Before) -> Forged:
    if step["ev"] != "plan":
        return None
    later = tuple((start + 1, until + 1) if until else (start, until) for start, until in step["slices"])
    return [{**step, "slices": later}] if later != step["slices"] else None


_FORGERIES: Mapping[str, Callable[[Step, Before], Forged]] = {
    "commit-before-plan": _commit_before_plan,
    "cumulative-commit": _cumulative_commit,
    "first-end-wins": _first_end_wins,
    "omit-what-was-skipped": _omit_what_was_skipped,
    "replay-fixed": _replay_fixed,
    "seal-as-planned": _seal_as_planned,
    "seal-before-sink": _seal_before_sink,
    "unknown-is-beginning": _unknown_is_beginning,
    "unread-batch": _unread_batch,
    "fresh-positions": _fresh_positions,
}

BATCH = Traced("Batch", BatchRecorder, _ACTIONS, _constants, {"digest": _digest}, Before.first, _FORGERIES)
