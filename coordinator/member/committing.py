"""Batches that the sink has completed become progress in Redis. Pure.

    learn     the cost model learns how long the batch took
    witness   Spark passes an offset as start: it is complete in the sink
    commit    Redis commits each lane that is owned at its lane epoch, and refuses the others
              the member asserts a refused lane if this process has read it to its end

rule: commit-before-plan; rule: verdict-per-hash; rule: unread-batch: a sink skips a batch id that it already has, so
no task read a batch that this member never authorized.
"""

from dataclasses import replace

from coordinator.errors import SinkSkippedBatchError
from coordinator.member.accepting import LOW_END, within_logs
from coordinator.member.decision import RETRY_MS, Call, Decision, Fail, LookAgain, Seen
from coordinator.member.failing import look_again
from coordinator.member.kinds import Request
from coordinator.member.lane_report import batch_line
from coordinator.member.requests import Claim, Commit, Event, Learn, LogBatch, LogLine, ReadEnds, ReadSeal, ShowBatch
from coordinator.member.state import Commits, CommitUnderWay, Losses, Owning, State
from coordinator.progress.ends import ended, unread
from coordinator.progress.ownership import Facts, Ownership, completed, facts_within, lane_ranges, narrowed
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.replies import Acquired, Moved


def learn(state: State, seen: Seen, call: Call) -> Decision:
    """Once in each call: the batch that ends here is in the sink."""
    if state.turn.learned:
        return Decision(state)
    batch = replace(state.batch, ended=True) if state.batch else None
    state = replace(state, batch=batch, turn=replace(state.turn, learned=True))
    ended = seen.of(Learn(call.offset))
    if ended is None:
        return Decision(state)
    line = batch_line(state.life.member, ended)
    if ended.failures.failing:
        state = look_again(state)
    shown = state.shown.after(ended)
    effects: tuple[Request[bool], ...] = (ShowBatch(line), LogBatch(line))
    if line.reading_bound and not shown.limit_logged and not ended.failures.kafka_away:
        of = f"group {call.setup.settings.group}, member {line.member}"
        shown, effects = replace(shown, limit_logged=True), (*effects, LogLine(f"{of}: {line.limit_text}"))
    return Decision(replace(state, shown=shown), effects)


def witness(state: State, seen: Seen, call: Call) -> Decision:
    """Decide which parts of the start this member commits."""
    before, start, batch, commits = state, call.offset, state.batch, state.commits
    if state.turn.committed:
        return Decision(state)
    if start == commits.whole:
        return Decision(_done(state, start, all_of_it=True))
    witnessed = batch.readable if batch and batch.end == start else None
    if start != commits.confirmed:  # else its true ends are known
        state = replace(state, evidence=state.evidence.seen(start, witnessed))
    part = start if witnessed is None else narrowed(start, witnessed)
    state, mine, warnings = within_logs(state, part, seen, call)
    if mine is None:
        return Decision(replace(before, log=state.log), (), LookAgain(RETRY_MS, LOW_END))
    if commits.confirmed == start or not start.member:
        return Decision(_done(state, start, all_of_it=mine == start), warnings)
    done, all_of_it = _to_its_ends(state, mine, start, witnessed, seen), mine == start
    if witnessed is not None:  # this process may assert the true ends too
        known = done if all_of_it else _to_its_ends(state, start, start, witnessed, seen)
        state = replace(state, evidence=replace(state.evidence, known=known))
    request = Commit(done, completed(done), "" if call.setup.settings.unread_batches else start.digest)
    commits = replace(commits, under_way=CommitUnderWay(start, request, all_of_it=all_of_it))
    return Decision(replace(state, commits=commits), warnings)


def _to_its_ends(
    state: State, mine: StreamOffset, start: StreamOffset, witnessed: Ownership | None, seen: Seen
) -> StreamOffset:
    """The part `mine` of a batch, up to its true ends (rule: seal-before-sink).

    Its tasks reported them to this process, or an earlier life sealed them. A batch that its member never authorized
    stays as planned: Redis refuses it (rule: unread-batch).
    """
    batch = state.batch
    if not start.early:
        return mine
    if batch and batch.end == start and not batch.may_end_early:
        deferred = seen.of(ReadEnds(start)) if batch.may_defer else None
        return ended(batch.bounded(mine), deferred or {})
    ends = seen.of(ReadEnds(start)) if witnessed is not None else None
    if ends is not None:
        return ended(mine, ends)
    sealed = seen.of(ReadSeal(start.member or "", start.digest))
    if sealed.unread:
        return mine
    return unread(mine) if sealed.ends is None else ended(mine, sealed.ends)


def commit(state: State, seen: Seen, call: Call) -> Decision:
    """Commit the start, and handle the lanes that Redis refuses."""
    under_way = state.commits.under_way
    if under_way is None:
        return Decision(state)
    start, request = under_way.start, under_way.request
    mine, facts, moved = request.arguments["offset"], request.arguments["facts"], seen.done(request)
    if moved.unread:
        return _unread(state)
    refused = moved.refused if state.evidence.witnessed is not None else {}
    assertions = facts_within(state.evidence.facts, refused)
    owning = _moved(state.owning, mine, facts, moved)
    state = replace(
        state,
        commits=Commits(None, start),
        owning=owning,
        losses=_completed(state.losses, mine, moved.refused),
        mirrored=replace(state.mirrored, behind=True),
        turn=replace(state.turn, fresh=not owning.stale),
    )
    effects = (Claim(mine, assertions),) if assertions else ()
    return Decision(_done(state, start, all_of_it=under_way.all_of_it), effects)


def _done(state: State, start: StreamOffset, *, all_of_it: bool) -> State:
    """The start is committed, or the part of it that this member owns."""
    return replace(
        state,
        commits=replace(state.commits, whole=start if all_of_it else None),
        evidence=state.evidence.confirmed(),
        turn=replace(state.turn, committed=True, skipped=not all_of_it),
    )


def _unread(state: State) -> Decision:
    """End the query. No slice of the batch was read, so none is unconfirmed, and its ranges are free."""
    state = replace(
        state, evidence=state.evidence.confirmed(), commits=replace(state.commits, under_way=None, whole=None)
    )
    why = "the sink completed a batch that it did not read; nothing of it was committed"
    error = SinkSkippedBatchError(
        "the sink completed a batch without reading it, so its records are unread and not committed: a sink skips "
        "a batch id that it has already, and batch ids begin at 0 with each new checkpoint",
        "set an output of its own for each checkpoint, and start again with a new checkpointLocation (the group keeps "
        "its positions); if two queries ran with one checkpoint, start one of them again; or set "
        "allowUnreadBatches=true if the query drops batches unread on purpose",
    )
    return Decision(state, (Event("skipped", why),), Fail(error))


def _moved(owning: Owning, offset: StreamOffset, facts: Facts, moved: Moved) -> Owning:
    """The owned ranges after the commit. Their positions are known if the batch had all of them."""
    if not (moved.exactly and _is_all_of(owning.acquired, offset)):
        return replace(owning, stale=True)
    progress = {tp: Progress(tuple(Segment(f.hashes, f.position) for f in of_tp)) for tp, of_tp in facts.items()}
    held = owning.acquired
    acquired = replace(held, progress={**held.progress, **progress}, whole={**held.whole, **progress})
    return replace(owning, acquired=acquired, stale=False)


def _is_all_of(acquired: Acquired, offset: StreamOffset) -> bool:
    """Whether `offset` has all owned ranges, at the same lane epochs, in every topic of the group."""
    owned = {tp: owned for tp, owned in acquired.ownership.items() if owned}
    topics = {tp.topic: offset.topic_ids.get(tp.topic) for tp in offset.lanes}
    same = (acquired.reset, acquired.topic_ids) == (offset.reset, topics)
    return same and owned == {tp: lane_ranges(lanes) for tp, lanes in offset.rows.items()}


def _completed(losses: Losses, offset: StreamOffset, refused: Facts) -> Losses:
    """The batch is in the sink. Refused lanes are left out: their new owner handles losses in them."""
    if not refused:
        return replace(losses, completed=offset)
    fenced = {tp: {fact.epoch for fact in of_tp} for tp, of_tp in refused.items()}
    lanes = {
        tp: tuple(lane for lane in of_tp if lane.epoch not in fenced.get(tp, ())) for tp, of_tp in offset.lanes.items()
    }
    return replace(losses, completed=replace(offset, lanes=lanes))
