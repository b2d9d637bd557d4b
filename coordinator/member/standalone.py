"""Standalone mode: assigned partitions with key ranges, without a group and without Redis.

Positions live in the checkpoint only: `start` is in the sink, so the ends of its lanes are the positions. All lanes
have the same lane epoch, and every batch may be read whole.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from coordinator.assignment.rebalance import union
from coordinator.errors import CheckpointMismatchError
from coordinator.member import accepting, log_view, pacing, planning, reading
from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen
from coordinator.member.lane_report import batch_line
from coordinator.member.low_ends import judged
from coordinator.member.query import Query, Steps
from coordinator.member.requests import Learn, LogBatch, LogLine, Pack, ResolveOffsets
from coordinator.member.state import State
from coordinator.plan.planning import plan, with_positions
from coordinator.progress import data_loss
from coordinator.progress.leader_epochs import leader_epochs
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import ALONE, StreamOffset, ends_of_lanes
from coordinator.redis.replies import Acquired
from coordinator.values.subscription import Assigned, TopicPartition


def _given(call: Call) -> Assigned:
    return cast(Assigned, call.setup.subscription)


def _owned(call: Call, partitions: Iterable[TopicPartition]) -> Ownership:
    """The assigned key ranges. No other query can acquire them, so they have one lane epoch."""
    return {tp: tuple(Owned(h, ALONE) for h in _given(call).partitions[tp]) for tp in partitions}


def initial(state: State, seen: Seen, call: Call) -> Decision:
    """Resolve the starting offsets, once in a process: so `latest` is one moment."""
    if state.initial is not None:
        return Decision(state, (), Return(state.initial))
    positions = seen.of(ResolveOffsets(call.setup.starting, state.log.partitions))
    at = {tp: Progress(tuple(Segment(h, o) for h in _given(call).partitions[tp])) for tp, o in positions.items()}
    lanes = plan(with_positions(_owned(call, at), at), dict.fromkeys(at, 0), call.setup.cutting.at({}))
    epochs = leader_epochs(ends_of_lanes(lanes), state.log.bounds)
    offset = StreamOffset(None, topic_ids=state.log.topic_ids, lanes=lanes, leader_epochs=epochs)
    return Decision(replace(state, initial=offset), (), Return(offset))


def set_targets(state: State, seen: Seen, call: Call) -> Decision:
    """AvailableNow: this run ends where the log ends now."""
    return Decision(log_view.begin_run(state, {tp: b.end for tp, b in state.log.bounds.items()}), (), Return(None))


def refuse_others(state: State, seen: Seen, call: Call) -> Decision:
    """`CheckpointMismatchError` for the offset of a group, or of other partitions or key ranges."""
    offset = call.offset
    ranges = {tp: union(lane.hashes for lane in lanes) for tp, lanes in offset.lanes.items()}
    given = {tp: union(hashes) for tp, hashes in _given(call).partitions.items() if hashes}
    if offset.group is not None or ranges != given:
        whose = f"group {offset.group!r}" if offset.group is not None else "other partitions or key ranges"
        raise CheckpointMismatchError(
            f"the checkpoint belongs to {whose}, this query reads assigned partitions without a group",
            "use a new checkpointLocation, or the options that this checkpoint was made with",
        )
    return Decision(state)


def learn(state: State, seen: Seen, call: Call) -> Decision:
    """Once in each call: the batch that ends here is in the sink, so no slice is unconfirmed."""
    if state.turn.learned:
        return Decision(state)
    ended, shown = seen.of(Learn(call.offset)), state.shown
    shown = replace(shown, filtered=shown.filtered + (ended.filtered if ended else 0))
    turn = replace(state.turn, learned=True)
    lines = (LogBatch(batch_line("", ended)),) if ended else ()
    return Decision(replace(state, evidence=state.evidence.confirmed(), turn=turn, shown=shown), lines)


def take_positions(state: State, seen: Seen, call: Call) -> Decision:
    """The positions of the start, moved past lost records where failOnDataLoss is off."""
    start, bounds, topics = call.offset, state.log.bounds, state.log.topics
    progress = {tp: Progress(tuple(Segment(row.hashes, row.until) for row in rows)) for tp, rows in start.rows.items()}
    known = data_loss.extents(start, start.reset, start.topic_ids)
    log, of_epochs = log_view.with_epoch_ends(state.log, known, seen)
    cut = data_loss.cuts(known, of_epochs)
    lost = data_loss.lost(bounds, start.topic_ids, topics, cut)
    log, ends = judged(log, data_loss.reach(progress), lost, seen)
    found = tuple(data_loss.losses(progress, ends, start.topic_ids, topics, cut))
    if found and call.setup.settings.fail_on_data_loss:
        raise data_loss.error(found[0])
    for loss in found:
        progress |= data_loss.moved(loss, progress, bounds)
    acquired = Acquired(0, state.log.topic_ids, _owned(call, progress), progress, {})
    losses = replace(state.losses, logged=found)
    lines = tuple(LogLine(f"lost records: {loss}") for loss in found if loss not in state.losses.logged)
    return Decision(replace(state, log=log, losses=losses, owning=replace(state.owning, acquired=acquired)), lines)


def look_closer(state: State, seen: Seen, call: Call) -> Decision:
    """None if there is nothing to read. If a topic was recreated meanwhile, look again."""
    if state.pace.idle is not None:
        return Decision(
            state, (), LookAgain(why=pacing.OF_LEADERS) if pacing.waits_for_leaders(state) else Return(None)
        )
    ids = state.log.topic_ids
    state = replace(state, log=log_view.topics_again(state.log, seen, call))
    return Decision(state, (), LookAgain()) if log_view.recreated(state.log, ids) else Decision(state)


def see_topics_again(state: State, seen: Seen, call: Call) -> Decision:
    """Read the topics now: a batch is not read from topics that were recreated since its plan."""
    return Decision(replace(state, log=log_view.topics_again(state.log, seen, call)))


def return_tasks(state: State, seen: Seen, call: Call) -> Decision:
    """The tasks of the batch, without topics that were recreated since its plan; see `data_loss.without`."""
    gone = log_view.recreated(state.log, call.offset.topic_ids)
    readable = data_loss.without(call.offset, gone, fail_on_data_loss=call.setup.settings.fail_on_data_loss)
    accepting.refuse_other_filter(readable, call)
    return Decision(state, (), Return(seen.of(Pack(call.offset, readable))))


INITIAL = (log_view.see_topics, initial)
SET_TARGETS = (log_view.see_topics, log_view.see_logs, set_targets)
NEXT_OFFSET = (
    refuse_others,
    learn,
    pacing.rest,
    log_view.see_topics,
    log_view.see_logs,
    take_positions,
    pacing.adopt_targets,
    reading.limit,
    pacing.pace_batch,
    look_closer,
    planning.plan_batch,
)
TASKS = (refuse_others, see_topics_again, return_tasks)


class Standalone(Query):
    """Plans batches of an `assign` subscription; see the module."""

    steps = Steps(INITIAL, SET_TARGETS, NEXT_OFFSET, TASKS)

    def initial(self) -> StreamOffset:
        """The resolved starting offsets."""
        return cast(StreamOffset, self._run(self.steps.first))
