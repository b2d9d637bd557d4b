"""Before a batch is read, first run or replay: which parts of it this member still owns. Pure.

rule: authorize-every-batch; rule: omit-what-was-skipped.
"""

from dataclasses import replace

from coordinator.member.batch import Batch
from coordinator.member.decision import Call, Decision, Return, Seen
from coordinator.member.kinds import Request
from coordinator.member.log_view import recreated
from coordinator.member.requests import Authorize, Log, Pack
from coordinator.member.state import State
from coordinator.progress import data_loss
from coordinator.progress.ownership import narrowed
from coordinator.progress.stream_offset import StreamOffset


def arrive(state: State, seen: Seen, call: Call) -> Decision:
    """An offset came as the end of a batch: its slices may be written from now on."""
    return Decision(replace(state, evidence=state.evidence.seen(call.offset), batch=batch_of(state, call)))


def batch_of(state: State, call: Call) -> Batch:
    """The batch that ends at the offset of this call; one that an earlier life planned is new to this one."""
    known = state.batch is not None and state.batch.end == call.offset
    return state.batch if state.batch and known else Batch(call.offset)


def authorize(state: State, seen: Seen, call: Call) -> Decision:
    """Ask Redis once for each batch."""
    batch = batch_of(state, call)
    if batch.granted is not None:
        return Decision(state)
    granted = seen.of(Authorize(batch.end))
    owning = replace(state.owning, stale=True)
    return Decision(replace(state, batch=replace(batch, granted=granted), owning=owning))


def readable(state: State, call: Call) -> tuple[StreamOffset, tuple[Request[bool], ...]]:
    """The part of the batch that is read, and a warning if that is not all of it."""
    end, batch, settings = call.offset, batch_of(state, call), call.setup.settings
    gone = recreated(state.log, end.topic_ids)
    part = narrowed(end, batch.readable or {})
    part = data_loss.without(part, gone, fail_on_data_loss=settings.fail_on_data_loss)
    if part == end:
        return part, ()
    what = "part of a batch is owned by others by now, or parked, and is left out"
    return part, (Log(f"group {settings.group}: {what}"),)


def return_readable(state: State, seen: Seen, call: Call) -> Decision:
    """The part of the batch that this member may read."""
    part, warnings = readable(state, call)
    return Decision(state, warnings, Return(part))


def return_tasks(state: State, seen: Seen, call: Call) -> Decision:
    """The same, packed into tasks, which begin now; the same tasks again for the same batch."""
    batch = batch_of(state, call)
    part, warnings = readable(state, call)
    tasks = seen.of(Pack(batch.end, part, trial=batch.trial))
    if batch.began_ms is None:
        batch = replace(batch, began_ms=seen.now_ms)
    return Decision(replace(state, batch=batch), warnings, Return(tasks))
