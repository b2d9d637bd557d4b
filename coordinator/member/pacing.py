"""The pace of batches: log ends, AvailableNow's targets, Spark's limits, idle time. Pure."""

from dataclasses import replace

from coordinator.member.decision import LOOK_MS, Call, Decision, LookAgain, Seen
from coordinator.member.limits import Limits
from coordinator.member.requests import WatchLogs
from coordinator.member.state import Pacing, State
from coordinator.plan.planning import OwnedRanges, anything, backlog, levels
from coordinator.values.subscription import OffsetByPartition, TopicPartition

IDLE_MS = 250
"""The time between two looks of an idle query, if more than new records may give it work; else it is `LOOK_MS`."""
OF_OTHERS = "partitions of other members are not at the targets of this run yet"
"""Why a run with AvailableNow goes on while this member has nothing to read."""
OF_LEADERS = "leaders of partitions that this run must read do not answer"
"""The same, while some of its targets are not known."""


def rest(state: State, seen: Seen, call: Call) -> Decision:
    """Wait until the last look, which found no records, is `IDLE_MS` old, or until there are some.

    A member waits longer while only a new record can give it work: it owns what the assignment gives it, has read that
    to the ends of the logs, and a fetch waits at each of them.
    """
    idle_ms = state.pace.idle_ms
    if idle_ms is None:
        return Decision(state)
    rested = replace(state, pace=replace(state.pace, idle_ms=None))
    if idle_ms + IDLE_MS <= seen.now_ms:
        return Decision(rested)
    work = state.pace.idle[0] if state.pace.idle else {}
    read = _read_to_the_end(state, work) if call.limits.min_offsets is None else {}
    watched_ms = seen.of(WatchLogs(read)) if read else 0
    whole = not state.owning.lacking and read.keys() == {tp for tp, of_tp in work.items() if of_tp}
    only_records = whole and state.pace.targets is None
    often_ms = max(IDLE_MS, min(LOOK_MS, watched_ms)) if only_records else IDLE_MS
    return Decision(rested, (), LookAgain(idle_ms + often_ms - seen.now_ms))


def _read_to_the_end(state: State, work: OwnedRanges) -> dict[TopicPartition, int]:
    """The ends of logs of which the member has read all: it can read a new record. Others would wake it for nothing."""
    bounds = state.log.bounds
    known = {tp: ranges for tp, ranges in work.items() if tp in bounds and tp not in state.log.unsure}
    done = [tp for tp, of_tp in known.items() if of_tp and all(r.position >= bounds[tp].end for r in of_tp)]
    return {tp: bounds[tp].end for tp in done}


def waits_for_leaders(state: State) -> bool:
    """Whether a run must go on because a target, or the position of a partition that has one, is not known yet."""
    return bool(state.pace.late or state.owning.unplaced & (state.pace.targets or {}).keys())


def adopt_targets(state: State, seen: Seen, call: Call) -> Decision:
    """AvailableNow's targets, lowered to the log ends; and those of leaders that have not answered before.

    A partition that appeared later has no target here. It is read up to the target of other members, which may wait
    for it. This member does not wait for it: so no two members wait for each other.
    """
    pace, bounds, alone = state.pace, state.log.bounds, state.log.unsure
    if pace.targets is None:
        return Decision(state)
    known = {tp: target for tp, target in pace.targets.items() if tp in bounds}
    targets = {tp: target if tp in alone else min(target, bounds[tp].end) for tp, target in known.items()}
    late = pace.late & bounds.keys() & alone
    targets |= {tp: bounds[tp].end for tp in (pace.late & bounds.keys()) - late}
    return Decision(replace(state, pace=replace(pace, targets=targets, late=late)))


def ends_of(state: State) -> dict[TopicPartition, int]:
    """The end of each partition in this run; 0 where the log end is not known now (see `LogView.unsure`).

    A run that waits for other members reads to their targets too: otherwise two runs whose targets cross would wait for
    each other. They cross if a leader was silent when one of them began.
    """
    targets, of_others, alone = state.pace.targets, state.owning.targets, state.log.unsure
    ends = {tp: 0 if tp in alone else b.end for tp, b in state.log.bounds.items()}
    if targets is None:
        return ends
    wanted = {**of_others, **targets}
    if state.pace.helps:
        wanted = {tp: max(target, of_others.get(tp, 0)) for tp, target in wanted.items()}
    return {tp: min(end, wanted.get(tp, 0)) for tp, end in ends.items()}


def pace_batch(state: State, seen: Seen, call: Call) -> Decision:
    """Set the end of reading of each partition, and whether there is anything to read."""
    work, pace = state.reading.work, state.pace
    until = _until(work, ends_of(state), pace, call.limits, seen.now_ms)
    state = replace(state, reading=replace(state.reading, until=until))
    if pace.idle == (work, until):
        return Decision(replace(state, pace=replace(pace, idle_ms=seen.now_ms)))
    idle = not anything(work, until)
    pace = replace(pace, idle=(work, until) if idle else None, idle_ms=seen.now_ms if idle else None)
    return Decision(replace(state, pace=pace))


def _until(work: OwnedRanges, ends: OffsetByPartition, pace: Pacing, limits: Limits, now_ms: int) -> OffsetByPartition:
    """The end of reading of each partition; 0 while `minOffsetsPerTrigger` waits for more."""
    if not ready(work, ends, pace, limits, now_ms):
        return dict.fromkeys(ends, 0)
    return levels(work, ends, limits.max_offsets)


def ready(work: OwnedRanges, ends: OffsetByPartition, pace: Pacing, limits: Limits, now_ms: int) -> bool:
    """Whether enough waits for a batch: `minOffsetsPerTrigger`, bounded by `maxTriggerDelay` (Spark's rule).

    The first batch of a query never waits, nor does AvailableNow: nothing more would come.
    """
    if pace.targets is not None or limits.min_offsets is None or pace.planned_ms is None:
        return True
    return now_ms - pace.planned_ms >= limits.max_delay_ms or backlog(work, ends) >= limits.min_offsets
