"""Standalone mode: given partitions with key ranges, no group, no Redis; positions live in the checkpoint only.

`start` is sink-complete, so its lanes' ends are the positions. Nothing is shared: every lane has the same epoch, and
every batch may be read whole. The steps run on the stream reader's main thread, like those of `service`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from coordinator.assignment.rebalance import union
from coordinator.clock import Clock
from coordinator.cost.steering import Steering
from coordinator.errors import CheckpointMismatchError
from coordinator.member import log_view, pacing, planning, reading
from coordinator.member.apply import World
from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen, Setup
from coordinator.member.inbox import Inbox
from coordinator.member.limits import Limits
from coordinator.member.requests import Learn, Log, Pack, ResolveOffsets
from coordinator.member.state import Life, State
from coordinator.member.turns import Turns
from coordinator.offset_spec import OffsetSpec
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting, plan, with_positions
from coordinator.ports import Log as KafkaLog
from coordinator.progress import data_loss
from coordinator.progress.leader_epochs import leader_epochs
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import ALONE, StreamOffset
from coordinator.replies import Acquired, Joining
from coordinator.settings import GroupSettings, StandaloneSettings
from coordinator.subscription import Assigned, Bounds, TopicPartition
from coordinator.telemetry import SliceCost

Positions = Mapping[TopicPartition, Progress]


def _given(call: Call) -> Assigned:
    return cast(Assigned, call.setup.subscription)


def _owned(call: Call, partitions: Iterable[TopicPartition]) -> Ownership:
    """The given key ranges; nobody can take them away, so they have one lane epoch."""
    return {tp: tuple(Owned(h, ALONE) for h in _given(call).partitions[tp]) for tp in partitions}


def initial(state: State, seen: Seen, call: Call) -> Decision:
    """The resolved starting offsets; resolved once in a process, so that `latest` is one moment."""
    if state.initial is not None:
        return Decision(state, (), Return(state.initial))
    positions = seen.of(ResolveOffsets(call.setup.starting, state.log.partitions))
    at = {tp: Progress(tuple(Segment(h, o) for h in _given(call).partitions[tp])) for tp, o in positions.items()}
    lanes = plan(with_positions(_owned(call, at), at), dict.fromkeys(at, 0), call.setup.cutting.at())
    epochs = leader_epochs(lanes, state.log.bounds)
    offset = StreamOffset(None, topic_ids=state.log.topic_ids, lanes=lanes, leader_epochs=epochs)
    return Decision(replace(state, initial=offset), (), Return(offset))


def set_targets(state: State, seen: Seen, call: Call) -> Decision:
    """AvailableNow: this run ends where the log ends now."""
    targets = {tp: b.end for tp, b in state.log.bounds.items()}
    return Decision(replace(state, pace=replace(state.pace, targets=targets)), (), Return(None))


def refuse_others(state: State, seen: Seen, call: Call) -> Decision:
    """`CheckpointMismatchError` for the offset of a group, or of other partitions or key ranges."""
    offset = call.offset
    ranges = {tp: union(lane.hashes for lane in lanes) for tp, lanes in offset.lanes.items()}
    given = {tp: union(hashes) for tp, hashes in _given(call).partitions.items() if hashes}
    if offset.group is not None or ranges != given:
        whose = f"group {offset.group!r}" if offset.group is not None else "other partitions or key ranges"
        raise CheckpointMismatchError(
            f"the checkpoint belongs to {whose}, this query reads given partitions without a group",
            "use a new checkpointLocation, or the options that this checkpoint was made with",
        )
    return Decision(state)


def learn(state: State, seen: Seen, call: Call) -> Decision:
    """Once in each call: the batch that ends here is in the sink, so nothing is unconfirmed."""
    if state.turn.learned:
        return Decision(state)
    seen.of(Learn(call.offset))
    turn = replace(state.turn, learned=True)
    return Decision(replace(state, evidence=state.evidence.confirmed(), turn=turn))


def take_positions(state: State, seen: Seen, call: Call) -> Decision:
    """The positions of the start, moved past lost records where failOnDataLoss is off."""
    start, bounds, topics = call.offset, state.log.bounds, state.log.topics
    progress: dict[TopicPartition, Progress] = {
        tp: Progress(tuple(Segment(x.hashes, x.until) for x in lanes)).coalesced() for tp, lanes in start.lanes.items()
    }
    known = data_loss.extents(start, start.reset, start.topic_ids)
    log, ends = log_view.with_epoch_ends(state.log, known, seen)
    found = tuple(data_loss.losses(progress, bounds, start.topic_ids, topics, data_loss.cuts(known, ends)))
    if found and call.setup.settings.fail_on_data_loss:
        raise data_loss.error(found[0])
    progress = _after(found, progress, bounds)
    acquired = Acquired(0, state.log.topic_ids, _owned(call, progress), progress, {})
    state = replace(state, log=log, owning=replace(state.owning, acquired=acquired))
    return Decision(state, tuple(Log(f"lost records: {loss}") for loss in found))


def _after(
    found: Iterable[data_loss.Loss], progress: Positions, bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, Progress]:
    moved = dict(progress)
    for loss in found:
        moved |= data_loss.moved(loss, progress, bounds)
    return moved


def look_closer(state: State, seen: Seen, call: Call) -> Decision:
    """None if there is nothing to read; a topic that was re-created meanwhile is looked at again."""
    if state.pace.idle is not None:
        return Decision(state, (), Return(None))
    ids = state.log.topic_ids
    state = replace(state, log=log_view.topics_again(state.log, seen))
    return Decision(state, (), LookAgain()) if log_view.recreated(state.log, ids) else Decision(state)


def see_topics_again(state: State, seen: Seen, call: Call) -> Decision:
    """Read the topics now: a batch must not be read from topics that were re-created since it was planned."""
    return Decision(replace(state, log=log_view.topics_again(state.log, seen)))


def readable(state: State, call: Call) -> StreamOffset:
    """All of the batch, but topics that were re-created since; `DataLossError` for them under failOnDataLoss."""
    gone = log_view.recreated(state.log, call.offset.topic_ids)
    return data_loss.without(call.offset, gone, fail_on_data_loss=call.setup.settings.fail_on_data_loss)


def return_readable(state: State, seen: Seen, call: Call) -> Decision:
    """What of the batch may be read."""
    return Decision(state, (), Return(readable(state, call)))


def return_tasks(state: State, seen: Seen, call: Call) -> Decision:
    """The tasks of the batch."""
    return Decision(state, (), Return(seen.of(Pack(call.offset, readable(state, call), trial=False))))


INITIAL = (log_view.see_topics, initial)
SET_TARGETS = (log_view.see_topics, log_view.see_logs, set_targets)
NEXT_OFFSET = (
    refuse_others,
    learn,
    pacing.rest,
    log_view.see_topics,
    log_view.see_logs,
    pacing.adopt_targets,
    take_positions,
    reading.limit,
    pacing.pace_batch,
    look_closer,
    planning.plan_batch,
)
AUTHORIZE = (refuse_others, see_topics_again, return_readable)
TASKS = (refuse_others, see_topics_again, return_tasks)


class Standalone:
    """Plans batches of an `assign` subscription; see the module."""

    def __init__(
        self,
        assigned: Assigned,
        starting: OffsetSpec,
        cutting: Cutting,
        *,
        log: KafkaLog,
        clock: Clock,
        settings: StandaloneSettings,
    ) -> None:
        group = GroupSettings(
            "",
            fail_on_data_loss=settings.fail_on_data_loss,
            batch_budget_ms=settings.batch_budget_ms,
            max_lead_ms=settings.max_lead_ms,
            concurrency=settings.concurrency,
        )
        self._setup, self._inbox = Setup(group, assigned, starting, cutting, Joining({})), Inbox()
        guesses = Steering(clock, cutting, self._setup.budget, concurrency=settings.concurrency)
        self._turns = Turns(State(Life("")), World(group, assigned, None, log, guesses, self._inbox, clock), clock)

    def initial(self) -> StreamOffset:
        """The resolved starting offsets; resolved once in a process, so that `latest` is one moment."""
        return cast(StreamOffset, self._turns.run(INITIAL, Call(self._setup)))

    def set_targets(self) -> None:
        """AvailableNow: this run ends where the log ends now."""
        self._turns.run(SET_TARGETS, Call(self._setup))

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """The offset of the next batch after `start`; None if there is nothing to read."""
        return cast(StreamOffset | None, self._turns.run(NEXT_OFFSET, Call(self._setup, start, limits)))

    def hear(self, costs: Iterable[SliceCost]) -> None:
        """Receive reports of executors on the batch under way."""
        self._inbox.receive(costs)

    def tasks(self, end: StreamOffset) -> tuple[Task, ...]:
        """The tasks of the batch that ends at `end`."""
        return cast(tuple[Task, ...], self._turns.run(TASKS, Call(self._setup, end)))

    def authorize(self, end: StreamOffset) -> StreamOffset:
        """All of the batch, since no other member can own it; not topics that were re-created since."""
        return cast(StreamOffset, self._turns.run(AUTHORIZE, Call(self._setup, end)))

    def log_ends(self) -> dict[TopicPartition, int]:
        """The log ends at the last look."""
        return {tp: b.end for tp, b in self._turns.state.log.bounds.items()}
