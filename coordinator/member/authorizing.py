"""Authorizes each batch before it is read, first run or replay: the parts that this member still owns. Pure.

rule: authorize-every-batch; rule: omit-what-was-skipped.
"""

from dataclasses import replace

from coordinator.member.accepting import refuse_other_filter
from coordinator.member.batch import Batch
from coordinator.member.decision import Call, Decision, Return, Seen
from coordinator.member.inbox import Reach
from coordinator.member.kinds import Request
from coordinator.member.log_view import recreated
from coordinator.member.obeying import in_order, obeyed
from coordinator.member.requests import Authorize, LogLine, Pack, ReadPolicy, ReadProgress, ReadReach
from coordinator.member.state import State
from coordinator.progress import data_loss
from coordinator.progress.ownership import narrowed
from coordinator.progress.stream_offset import StreamOffset


def arrive(state: State, seen: Seen, call: Call) -> Decision:
    """An offset arrives as the end of a batch: tasks may write its slices from now on."""
    return Decision(replace(state, evidence=state.evidence.seen(call.offset), batch=batch_of(state, call)))


def batch_of(state: State, call: Call) -> Batch:
    """The batch that ends at the offset of this call; a new one if an earlier life planned it."""
    known = state.batch is not None and state.batch.end == call.offset
    return state.batch if state.batch and known else Batch(call.offset, replayed=True)


def authorize(state: State, seen: Seen, call: Call) -> Decision:
    """Ask Redis once for each batch. Until all tasks are known to report their ends: rule: seal-as-planned."""
    batch = batch_of(state, call)
    if batch.granted is not None:
        return Decision(state)
    early = bool(batch.end.early)
    replayed, as_planned = early and batch.replayed, early and seen.of(ReadReach()) is not Reach.ALL
    answer = seen.done(Authorize(batch.end, replayed=replayed, as_planned=as_planned))
    batch = replace(batch, granted=answer.owned, as_planned=answer.as_planned)
    if replayed:
        batch = replace(batch, ends=answer.ends, unknown=answer.unknown)
    if batch.replayed and not call.setup.settings.replay_acknowledged:
        batch = replace(batch, done=seen.of(ReadProgress(tuple(batch.end.lanes))))
    return Decision(replace(state, batch=batch, owning=replace(state.owning, stale=True)))


def _readable(state: State, call: Call) -> tuple[StreamOffset, tuple[Request[bool], ...]]:
    """The part of the batch to read, and a warning if parts are left out."""
    end, batch, settings = call.offset, batch_of(state, call), call.setup.settings
    part = narrowed(end, batch.readable or {})
    part = data_loss.without(part, recreated(state.log, end.topic_ids), fail_on_data_loss=settings.fail_on_data_loss)
    bounded = batch.bounded(part)
    read, notes = batch.unacknowledged(bounded), []
    if part != end:
        notes.append("part of a batch is left out: other members own it, it is parked, or its positions were reset")
    if read.slices != bounded.slices:
        notes.append("a replay leaves out records that were acknowledged")
    return read, tuple(LogLine(f"group {settings.group}: {note}") for note in notes)


def return_tasks(state: State, seen: Seen, call: Call) -> Decision:
    """The part of the batch that this member may read, packed into tasks; refused if its filter is not the batch's.

    The tasks begin now; a repeated call has the same tasks.
    """
    batch = batch_of(state, call)
    part, warnings = _readable(state, call)
    refuse_other_filter(part, call)
    policy = state.owning.policy
    if not state.owning.looked_at_ms and batch.replayed and batch.end.by_key:
        policy = obeyed(seen.of(ReadPolicy()), call)
    tasks = seen.of(Pack(batch.end, part, apart=frozenset(batch.trials), in_order=in_order(state, policy)))
    began_ms = seen.now_ms if batch.began_ms is None else batch.began_ms
    return Decision(replace(state, batch=replace(batch, began_ms=began_ms)), warnings, Return(tasks))
