"""When a batch is planned and how far it reads: log ends, AvailableNow's targets, Spark's limits, idle time. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from coordinator.member.decision import Call, Decision, LookAgain, Seen
from coordinator.member.limits import Limits
from coordinator.member.state import Offsets, Pace, State
from coordinator.plan.planning import OwnedRanges, anything, backlog, backlog_ready, levels
from coordinator.subscription import Bounds, TopicPartition

IDLE_MS = 250
"""The time between two looks of an idle query."""


def rest(state: State, seen: Seen, call: Call) -> Decision:
    """Wait for something new, until a look that found nothing is a little old."""
    idle_ms = state.pace.idle_ms
    if idle_ms is None:
        return Decision(state)
    rested = replace(state, pace=replace(state.pace, idle_ms=None))
    left = idle_ms + IDLE_MS - seen.now_ms
    return Decision(rested, (), LookAgain(left)) if left > 0 else Decision(rested)


def adopt_targets(state: State, seen: Seen, call: Call) -> Decision:
    """AvailableNow's targets, but none that the log cannot reach any more.

    A partition that has appeared since has no target here. Another member may wait for it, and so it is read up to
    the target of the others; it is not waited for. So who joined first waits for nothing that others do not read.
    """
    pace, bounds = state.pace, state.log.bounds
    if pace.targets is None:
        return Decision(state)
    targets = {tp: min(target, bounds[tp].end) for tp, target in pace.targets.items() if tp in bounds}
    return Decision(replace(state, pace=replace(pace, targets=targets, of_others=state.owning.targets)))


def ends_of(pace: Pace, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, int]:
    """Where each partition ends for this run."""
    if pace.targets is None:
        return {tp: b.end for tp, b in bounds.items()}
    targets = pace.targets
    return {tp: min(b.end, targets.get(tp, pace.of_others.get(tp, 0))) for tp, b in bounds.items()}


def pace_batch(state: State, seen: Seen, call: Call) -> Decision:
    """How far each partition is read, and whether there is anything to read."""
    work, pace = state.reading.work, state.pace
    until = _until(work, pace, state.log.bounds, call.limits, seen.now_ms)
    state = replace(state, reading=replace(state.reading, until=until))
    if pace.idle == (work, until):
        return Decision(replace(state, pace=replace(pace, idle_ms=seen.now_ms)))
    idle = not anything(work, until)
    pace = replace(pace, idle=(work, until) if idle else None, idle_ms=seen.now_ms if idle else None)
    return Decision(replace(state, pace=pace))


def _until(
    work: OwnedRanges, pace: Pace, bounds: Mapping[TopicPartition, Bounds], limits: Limits, now_ms: int
) -> Offsets:
    """How far each partition is read; 0 everywhere while `minOffsetsPerTrigger` waits for more."""
    ends = ends_of(pace, bounds)
    if not _ready(work, ends, pace, limits, now_ms):
        return dict.fromkeys(ends, 0)
    return levels(work, ends, limits.max_offsets)


def _ready(work: OwnedRanges, ends: Offsets, pace: Pace, limits: Limits, now_ms: int) -> bool:
    """AvailableNow never waits for more: nothing more would come."""
    if pace.targets is not None or limits.min_offsets is None:
        return True
    since = None if pace.planned_ms is None else now_ms - pace.planned_ms
    waiting = backlog(work, ends)
    return backlog_ready(waiting, min_offsets=limits.min_offsets, since_last_ms=since, max_delay_ms=limits.max_delay_ms)
