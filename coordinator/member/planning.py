"""The last steps of latestOffset: plan a batch, or find that there is nothing to do. Pure."""

from dataclasses import replace

from coordinator.member.batch import Batch
from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen
from coordinator.member.failing import refuse_a_full_partition
from coordinator.member.inbox import Reach
from coordinator.member.log_view import recreated, topics_again
from coordinator.member.pacing import OF_LEADERS, OF_OTHERS, waits_for_leaders
from coordinator.member.requests import Finish, Heartbeat, ReadReach
from coordinator.member.state import State
from coordinator.plan.planning import plan
from coordinator.progress.leader_epochs import leader_epochs
from coordinator.progress.stream_offset import StreamOffset


def look_closer(state: State, seen: Seen, call: Call) -> Decision:
    """If there is something to read: plan only from fresh ranges, within the lease, and if no topic was recreated.

    Ranges of an earlier call are good enough to see that there is nothing to read.
    rule: fresh-positions; rule: plan-within-lease.
    """
    acquired = state.owning.acquired
    if not _anything(state):
        return Decision(state)
    if not state.turn.fresh:
        return Decision(replace(state, owning=replace(state.owning, stale=True)), (), LookAgain())
    if state.life.lease_end_ms <= seen.now_ms:
        return Decision(state, (Heartbeat(),), LookAgain())
    state = replace(state, log=topics_again(state.log, seen))
    return Decision(state, (), LookAgain()) if recreated(state.log, acquired.topic_ids) else Decision(state)


def _early(end: StreamOffset, start: StreamOffset) -> StreamOffset:
    """A batch whose tasks may end slices early. If the last batch read nothing of an equal plan, another number.

    rule: equal-plans
    """
    again = replace(end, early=start.early).digest == start.digest
    return replace(end, early=start.early + 1 if again else 1)


def _anything(state: State) -> bool:
    return state.turn.skipped or state.pace.idle is None


def end_run(state: State, seen: Seen, call: Call) -> Decision:
    """If there is nothing to read: AvailableNow ends once every partition is at its target.

    Partitions that wait for older ones, or are parked, do not count; nor do hashes that a pinned member does not name
    (rule: available-now). Raises `TooManyFailingKeysError` (rule: deferred-keys-cap).
    """
    if _anything(state):
        return Decision(state)
    if state.pace.targets is None:
        return Decision(state, (), Return(None))
    if waits_for_leaders(state):
        return Decision(state, (), LookAgain(why=OF_LEADERS))
    targets = {tp: o for tp, o in state.pace.targets.items() if tp not in state.growing.closed}
    if seen.of(Finish(targets, call.setup.pinned)):
        return Decision(state, (), Return(None))
    settings = call.setup.settings
    refuse_a_full_partition(state, settings.group, settings.max_deferred_keys)
    return Decision(state, (), LookAgain(why=OF_OTHERS))


def plan_batch(state: State, seen: Seen, call: Call) -> Decision:
    """The next batch: the offset that Spark stores in its checkpoint before it reads the batch."""
    acquired, reading, group = state.owning.acquired, state.reading, call.setup.settings.group
    lanes = plan(reading.work, reading.until, reading.cutting or call.setup.cutting)
    epochs = leader_epochs(lanes, state.log.bounds)
    end = StreamOffset(group or None, state.life.member or None, acquired.reset, acquired.topic_ids, lanes, epochs)
    end = replace(end, filter=call.setup.settings.filter.digest, founding=state.life.founding)
    if call.setup.settings.early_ends and not call.limits.everything and seen.of(ReadReach()) is not Reach.NONE:
        end = _early(end, call.offset)
    state = replace(state, evidence=state.evidence.with_unconfirmed(end))
    if any(row.offsets for rows in end.rows.values() for row in rows):
        batch = Batch(end, reading.trials, state.strikes.strikes)
        state = replace(state, batch=batch, pace=replace(state.pace, planned_ms=seen.now_ms))
    return Decision(state, (), Return(end))
