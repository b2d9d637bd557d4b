"""The last steps of latestOffset: show the lanes, plan a batch, or find that there is nothing to do. Pure."""

from dataclasses import replace
from operator import itemgetter

from coordinator.assignment.settings import GroupSettings
from coordinator.member.batch import Batch
from coordinator.member.decision import LOOK_MS, Call, Decision, LookAgain, Return, Seen
from coordinator.member.failing import refuse_a_full_partition
from coordinator.member.inbox import Reach
from coordinator.member.kinds import Request
from coordinator.member.lane_report import Planned, slow_part
from coordinator.member.log_view import recreated, topics_again
from coordinator.member.obeying import in_order
from coordinator.member.pacing import OF_LEADERS, OF_OTHERS, waits_for_leaders
from coordinator.member.requests import DescribeLanes, Finish, Heartbeat, LogLine, ReadReach, ShowLanes
from coordinator.member.state import Shown, State
from coordinator.plan.planning import plan
from coordinator.progress.leader_epochs import leader_epochs
from coordinator.progress.stream_offset import StreamOffset, ends_of_lanes
from coordinator.redis.lane_lines import apart_s

FAR_S = 60
"""Lanes of a partition that are further apart are worth a line, if `maxLaneLead` bounds none."""


def show_lanes(state: State, seen: Seen, call: Call) -> Decision:
    """Show the lanes: once a second at most, and only changes (rule: reports-decide-nothing).

    The first batch of a process is shown in any case. It may take long, and an earlier look found nothing to read.
    """
    shown, reading, now = state.shown, state.reading, seen.now_ms
    first = state.pace.planned_ms is None and state.pace.idle is None
    if not first and shown.looked_at_ms is not None and now - shown.looked_at_ms < LOOK_MS:
        return Decision(state)
    shown = replace(shown, looked_at_ms=now)
    same = reading.quotas == shown.quotas and shown.nonce == state.life.nonce
    if same and not shown.lanes.load_percent and not any(line.lag for line in shown.lanes.lines):
        return Decision(replace(state, shown=shown))  # an idle query may have very many lanes
    lanes = seen.of(DescribeLanes(_planned(state), shown.ended))
    slow = round(100 * slow_part(reading.quotas, call.setup.budget))
    request = ShowLanes(lanes.lines, slow, lanes.backlog_ms, lanes.load_percent)
    if (state.life.nonce, request) != (shown.nonce, shown.request) and seen.done(request):
        shown = replace(shown, nonce=state.life.nonce, request=request)
    shown, effects = _apart(replace(shown, quotas=reading.quotas, lanes=lanes, slow_percent=slow), call.setup.settings)
    return Decision(replace(state, shown=shown), effects)


def _apart(shown: Shown, settings: GroupSettings) -> tuple[Shown, tuple[Request[bool], ...]]:
    """One line in a query's life where a watermark behind the read may take the rows of a slow lane for late."""
    if settings.max_lead_ms or shown.apart_logged or not (apart_of := apart_s(shown.lanes.lines)):
        return shown, ()
    tp, apart = max(apart_of.items(), key=itemgetter(1))
    if apart <= FAR_S:
        return shown, ()
    text = (
        f"group {settings.group}: lanes of {tp} are {apart} s apart, so a watermark of less would drop rows of the slow"
        " ones. Remedy: if the query has a watermark, set maxLaneLead to at most its delay; otherwise nothing"
    )
    return replace(shown, apart_logged=True), (LogLine(text),)


def _planned(state: State) -> Planned:
    r = state.reading
    bounds = r.cutting.bounds if r.cutting else None
    return Planned(r.quotas, r.until, state.strikes.strikes, bounds or {}, r.ceilings)


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
    state = replace(state, log=topics_again(state.log, seen, call))
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

    Partitions that wait for older ones, or are parked, do not count; nor do hashes that a pinned member does not name,
    nor what partition order keeps behind a parked record (rule: available-now). Raises `TooManyFailingKeysError`
    (rule: deferred-keys-cap).
    """
    if _anything(state):
        return Decision(state)
    if state.pace.targets is None:
        return Decision(state, (), Return(None))
    if waits_for_leaders(state):
        return Decision(state, (), LookAgain(why=OF_LEADERS))
    targets = {tp: o for tp, o in state.pace.targets.items() if tp not in state.growing.closed}
    if seen.done(Finish(targets, call.setup.pinned, in_order(state, state.owning.policy))):
        return Decision(state, (), Return(None))
    settings = call.setup.settings
    refuse_a_full_partition(state, settings.group, settings.max_deferred_keys)
    return Decision(replace(state, pace=replace(state.pace, helps=True)), (), LookAgain(why=OF_OTHERS))


def plan_batch(state: State, seen: Seen, call: Call) -> Decision:
    """The next batch: the offset that Spark stores in its checkpoint before it reads the batch."""
    acquired, reading, group = state.owning.acquired, state.reading, call.setup.settings.group
    lanes = plan(reading.work, reading.until, reading.cutting or call.setup.cutting)
    epochs = leader_epochs(ends_of_lanes(lanes), state.log.bounds)
    end = StreamOffset(group or None, state.life.member or None, acquired.reset, acquired.topic_ids, lanes, epochs)
    end = replace(end, filter=call.setup.settings.filter.digest, founding=state.life.founding)
    if call.setup.settings.early_ends and not call.limits.everything and seen.of(ReadReach()) is not Reach.NONE:
        end = _early(end, call.offset)
    state = replace(state, evidence=state.evidence.with_unconfirmed(end), pace=replace(state.pace, helps=False))
    if any(row.offsets for rows in end.rows.values() for row in rows):
        batch = Batch(end, reading.trials, state.strikes.strikes)
        state = replace(state, batch=batch, pace=replace(state.pace, planned_ms=seen.now_ms))
    return Decision(state, (), Return(end))
