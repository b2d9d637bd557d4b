"""One member of a group without order: it takes the next free offsets of partitions, not ranges of hashes.

    look     the positions of all partitions, and the policies; frees the slices of the last batch, which is committed
    take     the lowest free offsets below the log ends, at most as many as a batch may have (rule: hand-out)
    tasks    the slices that the member still holds, cut in tasks of about equal work

No assignment, no owned ranges, no lanes: a slow key delays only the tasks that read its records.
"""

from collections.abc import Mapping
from dataclasses import replace

from coordinator.member import (
    accepting,
    authorizing,
    committing,
    life,
    log_view,
    losing,
    mirroring,
    obeying,
    pacing,
    standalone,
)
from coordinator.member.batch import Batch
from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen
from coordinator.member.first_positions import place
from coordinator.member.progress_report import behind
from coordinator.member.query import Steps
from coordinator.member.requests import Finish, HandOut, NextSpan
from coordinator.member.service import ALIVE, BEFORE_A_LOOK, FIRST_POSITIONS, Service, settled
from coordinator.member.state import State
from coordinator.plan.planning import OwnedRange, OwnedRanges, anything
from coordinator.progress.leader_epochs import leader_epochs
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import Lane, StreamOffset, ends_of_lanes
from coordinator.redis.replies import Acquired, HandedOut
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition


def look(state: State, seen: Seen, call: Call) -> Decision:
    """Read the positions of all partitions. Raises 88 or 89 if policies forbid sharing (rule: sharing-policies)."""
    state = place(state, seen, call)
    if state.life.verdict:
        return Decision(state, (), LookAgain())
    there = [tp for tp in state.log.partitions if tp not in state.owning.unplaced]
    looked = seen.done(HandOut(dict.fromkeys(there, 0), 0, 0))
    state = mirroring.mirror_policy(state, seen, looked.policy)
    obeying.refuse_demands(looked.policy, state.log.topics, call)
    progress = {tp: Progress((_segment(position, looked.reach[tp]),)) for tp, position in looked.positions.items()}
    acquired = Acquired(looked.reset, looked.topic_ids, {}, progress, {})
    owning = replace(state.owning, acquired=acquired, stale=False, policy=looked.policy, looked_at_ms=looked.now_ms)
    owning = replace(owning, topics_at_ms=log_view.topics_at_ms(state.log, looked.now_ms, seen))
    return Decision(replace(state, owning=owning, turn=replace(state.turn, fresh=True)))


def _segment(position: int, reach: int) -> Segment:
    """The position, and the last offset that is done: a log that was cut below it has lost records."""
    return Segment(WHOLE, position, (OffsetRange(reach - 1, reach),) if reach > position else ())


def take(state: State, seen: Seen, call: Call) -> Decision:
    """Take slices for the next batch, and plan it within the lease; or find that there is nothing to do."""
    work = _work(state)
    ends = {tp: end for tp, end in pacing.ends_of(state).items() if tp not in state.owning.unplaced}
    ready = pacing.ready(work, ends, state.pace, call.limits, seen.now_ms)
    if not (ready and anything(work, ends)):
        return _nothing(state, seen, call)
    state = replace(state, log=log_view.topics_again(state.log, seen, call))
    if log_view.recreated(state.log, state.owning.acquired.topic_ids):
        return Decision(state, (), LookAgain())
    most, size = seen.of(NextSpan(ends, everything=call.limits.everything))
    if call.limits.max_offsets is not None:
        most = min(most, int(call.limits.max_offsets))
    handed = seen.done(HandOut(ends, most, min(size, most)))
    if not handed.slices:
        return _nothing(state, seen, call)
    return _planned(state, handed, seen, call)


def _work(state: State) -> OwnedRanges:
    """Every partition from its position on, as the unit of Spark's limits."""
    return {tp: (OwnedRange(WHOLE, p.stable, ""),) for tp, p in state.owning.acquired.progress.items()}


def _planned(state: State, handed: HandedOut, seen: Seen, call: Call) -> Decision:
    if state.life.lease_end_ms <= seen.now_ms:
        return Decision(state, (), LookAgain())
    lanes = {tp: (Lane(WHOLE, handed.epoch, o[0].start, o),) for tp, o in sorted(handed.slices.items())}
    end = _offset(state, handed.reset, handed.topic_ids, lanes, call)
    pace = replace(state.pace, planned_ms=seen.now_ms, idle_ms=None)
    evidence = state.evidence.with_unconfirmed(end)
    return Decision(replace(state, batch=Batch(end), pace=pace, evidence=evidence), (), Return(end))


def _offset(
    state: State,
    reset: int,
    topic_ids: Mapping[str, str],
    lanes: Mapping[TopicPartition, tuple[Lane, ...]],
    call: Call,
) -> StreamOffset:
    epochs = leader_epochs(ends_of_lanes(lanes), state.log.bounds)
    member = state.life.member
    settings = call.setup.settings
    planned = StreamOffset(settings.group, member, reset, topic_ids, lanes, epochs, by_key=False)
    return replace(planned, filter=settings.filter.digest, founding=state.life.founding)


def _nothing(state: State, seen: Seen, call: Call) -> Decision:
    """No free offset. AvailableNow ends once every partition is at its target; other members may be on the way to it.

    Slices that were left out of the start vanish from the next offset (rule: omit-what-was-skipped).
    """
    acquired = state.owning.acquired
    if state.turn.skipped:
        return Decision(state, (), Return(_offset(state, acquired.reset, acquired.topic_ids, {}, call)))
    state = replace(state, pace=replace(state.pace, idle_ms=seen.now_ms))
    if pacing.waits_for_leaders(state):
        return Decision(state, (), LookAgain(why=pacing.OF_LEADERS))
    if state.pace.targets is None or seen.done(Finish(state.pace.targets)):
        return Decision(state, (), Return(None))
    return Decision(state, (), LookAgain(why=pacing.OF_OTHERS))


def read_all(state: State, seen: Seen, call: Call) -> Decision:
    """Read all slices that the member still holds."""
    batch = authorizing.batch_of(state, call)
    return Decision(replace(state, batch=replace(batch, readable=batch.granted)))


SET_TARGETS = (*ALIVE, log_view.see_logs, standalone.set_targets)
COMMIT = (*ALIVE, accepting.accept, committing.learn, committing.witness, life.join, committing.commit)
NEXT_OFFSET = (
    *COMMIT,
    *BEFORE_A_LOOK,
    look,
    log_view.see_logs,
    losing.settle_losses,
    pacing.adopt_targets,
    take,
)
TASKS = (
    *ALIVE,
    accepting.accept,
    authorizing.arrive,
    life.join,
    authorizing.authorize,
    read_all,
    authorizing.return_tasks,
)


class Cooperative(Service):
    """One member's work on one group without order; see the module."""

    steps = Steps(FIRST_POSITIONS, SET_TARGETS, NEXT_OFFSET, TASKS, (*COMMIT, settled))

    def behind_latest(self, end: StreamOffset) -> dict[str, str]:
        """The lag of the group at the last look: other members read the offsets before a slice."""
        return behind({tp: p.stable for tp, p in self.state.owning.acquired.progress.items()}, self.log_ends())
