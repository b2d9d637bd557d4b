"""Lost records: found at each look, then refused with a named error or accepted. Pure.

Only leader epochs show a log that was cut and has grown again. Its extent under an older leader epoch is known from the
last batch in the sink; from Redis, for earlier members; and from the mirror, if Redis was lost.
rule: named-data-loss; rule: leader-epoch-facts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinator.member.decision import RETRY_MS, Call, Decision, LookAgain, Seen
from coordinator.member.kinds import Request
from coordinator.member.log_view import with_epoch_ends
from coordinator.member.low_ends import judged
from coordinator.member.mirroring import mirror
from coordinator.member.requests import (
    Claim,
    Event,
    LogLine,
    ReadExtents,
    ReadProgress,
    Recreate,
    ReportEnds,
)
from coordinator.member.state import Losses, State, StoredEnds
from coordinator.progress import data_loss
from coordinator.progress.data_loss import Aged, Cut, Loss, Recreated, Truncated, Unread
from coordinator.progress.leader_epochs import Extent, extents_of, leader_epochs, parsed
from coordinator.progress.ownership import Fact
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.replies import Acquired
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Bounds, TopicPartition

ENDS_MS = 10_000
"""Log ends in Redis are not older than this, while a member looks."""


def settle_losses(state: State, seen: Seen, call: Call) -> Decision:
    """Refuse or accept lost records, then store the log ends. Equal looks are not checked again.

    The log ends were read after ranges were acquired.
    """
    acquired, bounds = state.owning.acquired, state.log.bounds
    looked_at = (acquired, bounds, state.log.topics, state.life.nonce)
    if state.losses.settled == looked_at and state.shown.ends:
        return _stored(state, state.shown.ends[1], seen)
    if not acquired.progress.keys() <= bounds.keys():
        return Decision(state, (), LookAgain(RETRY_MS, "a topic that the member owns has vanished"))
    state, found, ends = _found(state, acquired, bounds, seen)
    read = [loss for loss in found if not isinstance(loss, Unread)]
    if read and call.setup.settings.fail_on_data_loss:
        raise data_loss.error(read[0])
    if found:
        return _accept(state, acquired, found, seen, call)
    report, settled = _report(state, acquired, bounds, ends), None if state.log.unsure else looked_at
    return _stored(replace(state, losses=replace(state.losses, settled=settled)), report, seen)


def _found(
    state: State, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds], seen: Seen
) -> tuple[State, tuple[Loss, ...], Mapping[TopicPartition, Bounds]]:
    """All losses, and the bounds that show them. A leader epoch that was checked is not read again."""
    own = data_loss.extents(state.losses.completed, acquired.reset, acquired.topic_ids)
    log, own_ends = with_epoch_ends(state.log, own, seen)
    known, reach = _known(state, acquired, bounds, seen)
    log, known_ends = with_epoch_ends(log, known, seen)
    cut = data_loss.lowest(data_loss.cuts_by(known, known_ends, reach), data_loss.cuts(own, own_ends))
    lost = data_loss.lost(bounds, acquired.topic_ids, log.topics, cut)
    log, ends = judged(log, data_loss.reach(acquired.progress), lost, seen)
    found = tuple(data_loss.losses(acquired.progress, ends, acquired.topic_ids, log.topics, cut))
    losses = _checked(state, acquired, bounds, {loss.tp for loss in cut.values()})
    return replace(state, log=log, losses=losses), found, ends


def _known(
    state: State, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds], seen: Seen
) -> tuple[dict[TopicPartition, Extent], Mapping[TopicPartition, int]]:
    """The extents of logs under older leader epochs, and the offsets after the last ones that are done.

    Read if a leader epoch or a range is new to this process.
    """
    new = {
        tp: epoch
        for tp, epoch in _answered_epochs(state, acquired, bounds).items()
        if state.losses.checked.get(tp) != (state.life.nonce, epoch)
    }
    if not new:
        return {}, {}
    texts = seen.of(ReadExtents(tuple(sorted({tp.topic for tp in new}))))
    known = {**state.mirrored.extents, **parsed(texts, acquired.reset, acquired.topic_ids)}
    older = {tp: known[tp] for tp, epoch in new.items() if tp in known and known[tp].epoch < epoch}
    if not older:
        return {}, {}
    reach = data_loss.reach(seen.of(ReadProgress(tuple(sorted(older)))))
    return {tp: extent for tp, extent in older.items() if tp in reach}, reach


def _checked(
    state: State, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds], cut: set[TopicPartition]
) -> Losses:
    completed = state.losses.completed
    checked = {tp: (state.life.nonce, epoch) for tp, epoch in _answered_epochs(state, acquired, bounds).items()}
    return replace(state.losses, checked=checked, completed=completed.without(cut) if cut else completed)


def _answered_epochs(
    state: State, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, int]:
    """The leader epochs of owned partitions, without silent leaders: a check of theirs would have to wait."""
    return leader_epochs({tp: 0 for tp in _owned(acquired) if tp not in state.log.silent}, bounds)


def _owned(acquired: Acquired) -> tuple[TopicPartition, ...]:
    return tuple(tp for tp, p in acquired.progress.items() if p.segments)


def _accept(state: State, acquired: Acquired, found: Sequence[Loss], seen: Seen, call: Call) -> Decision:
    """failOnDataLoss=false: move on to the records that are left, with a log line and an event for each loss."""
    for loss in found:
        for request in _moves(loss, state, acquired, call):
            seen.done(request)
    state = mirror(replace(state, evidence=state.evidence.forgotten()), seen)
    notices: list[Request[Any]] = []
    for loss in found:
        notices += (LogLine(f"group {call.setup.settings.group} lost records: {loss}"), Event("loss", str(loss)))
    return Decision(replace(state, owning=replace(state.owning, stale=True)), tuple(notices), LookAgain(RETRY_MS))


def _moves(loss: Loss, state: State, acquired: Acquired, call: Call) -> Iterator[Request[Any]]:
    """The requests that move positions past a loss. Individual commits may repeat; no lane skips records."""
    topics, bounds = state.log.topics, state.log.bounds
    match loss:
        case Aged(tp, _, beginning):
            group, epochs = call.setup.settings.group, leader_epochs({tp: beginning}, bounds)
            here = StreamOffset(group, None, acquired.reset, acquired.topic_ids, leader_epochs=epochs)
            here = replace(here, founding=state.life.founding)
            yield Claim(here, {tp: (Fact(WHOLE, beginning),)})
        case Truncated(tp, _, end) | Cut(tp, _, end):
            yield Recreate(topics, {tp: end}, _extent_texts(acquired, {tp: bounds[tp]}))
        case Recreated(topic, _, _):
            yield Recreate(topics, {tp: b.beginning for tp, b in bounds.items() if tp.topic == topic})


def _report(
    state: State, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds], ends: Mapping[TopicPartition, Bounds]
) -> StoredEnds:
    """The log ends, and the extents of logs with owned ranges; without partitions whose end is not known now."""
    sure = ends.keys() - state.log.unsure
    extents = _extent_texts(acquired, {tp: bounds[tp] for tp in _owned(acquired) if tp in sure})
    return {tp: b.end for tp, b in ends.items() if tp in sure}, extents


def _stored(state: State, report: StoredEnds, seen: Seen) -> Decision:
    """Store the log ends: after the check for cut logs, before a plan."""
    if state.shown.ends == (state.life.nonce, report) and not _ends_are_old(state, seen):
        return Decision(state)
    shown = replace(state.shown, ends=(state.life.nonce, report), ends_ms=seen.now_ms)
    return Decision(replace(state, shown=shown), (ReportEnds(*report, state.owning.topics_at_ms),))


def _ends_are_old(state: State, seen: Seen) -> bool:
    """Whether equal log ends are stored again, so that their age in Redis shows a member that looks."""
    return state.shown.ends_ms is not None and seen.now_ms - state.shown.ends_ms >= ENDS_MS


def _extent_texts(acquired: Acquired, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, str]:
    """The extents of logs as Redis stores them."""
    return {tp: extent.text(acquired.reset, acquired.topic_ids[tp.topic]) for tp, extent in extents_of(bounds).items()}
