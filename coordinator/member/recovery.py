"""Recovery after a loss of state: the group begins again at proven positions (rule: recover-by-proof). Pure.

    proof   the mirror in Kafka's own group, also of topics and partitions that other members read; the last offset that
            reached this process (`proving`)
    fact    of the highest known reset epoch; older facts prove nothing
    growth  the mirror's, and growths that no member recorded
    policy  the strictest of the mirror's and of the last look of this process

A partition without a proof fails the query, or begins at earliest by onStateLoss.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from coordinator.assignment.policies import Policy
from coordinator.member.decision import RETRY_MS, Call, Decision, LookAgain, Seen
from coordinator.member.founding import of_proofs, unreadable
from coordinator.member.log_view import mirrored_topics
from coordinator.member.proving import facts_of_these_logs, mirrored, read
from coordinator.member.requests import (
    LogLine,
    ReadGroupOffsets,
    ReadRedisTime,
    ReadResetEpoch,
    Recover,
    ResolveOffsets,
)
from coordinator.member.state import State
from coordinator.progress import data_loss
from coordinator.progress import mirror as mirroring
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent, Extents
from coordinator.progress.ownership import Fact, Facts
from coordinator.values.hash_map import HashMap
from coordinator.values.offset_spec import Earliest
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, TopicPartition
from coordinator.values.verdicts import Absent, Lost


def recover(state: State, seen: Seen, call: Call) -> Decision:
    """Recover the group if Redis has lost it; `StateLostError` where a position is not proven."""
    verdict, settings = state.life.verdict, call.setup.settings
    if not isinstance(verdict, Lost):
        return Decision(state)
    found = seen.of(ReadGroupOffsets())
    if found is None and isinstance(verdict, Absent) and not state.life.founding:
        raise unreadable(settings.group)
    offsets = mirroring.of_this_schema(found or {}, settings.group)
    topics = mirrored_topics(state.log.topics, offsets, seen)
    founding = of_proofs(state, verdict, mirroring.usable(offsets, topics), settings.group)
    offsets = mirroring.of_founding(offsets, founding)
    reset = max(seen.of(ReadResetEpoch()), mirroring.latest_reset(offsets), state.evidence.known.reset)
    in_force = mirroring.since_reset(offsets, reset)
    proves = state.evidence.known.by_key and state.evidence.known.reset == reset  # a slice proves no position
    facts = facts_of_these_logs(state, seen) if proves else {}
    mirror, cut = mirrored(in_force, topics, seen)  # also of partitions that other members read
    if isinstance(verdict, Absent) and settings.fail_on_data_loss and (own := cut.keys() & {*state.log.partitions}):
        raise data_loss.error(cut[min(own)])
    mine = read(state, reset)
    here = {*state.log.partitions} - state.owning.unplaced
    proven = mirroring.proven(sorted({*here, *mirror, *mine}), mirror, facts)
    if settings.on_state_loss == "earliest":
        unproven = tuple(tp for tp, position in proven.items() if position is None)
        proven |= seen.of(ResolveOffsets(Earliest(), unproven)) if unproven else {}
    growths = _growths(state, offsets, seen, call)
    parts = {tp: facts.get(tp, ()) for tp in mine if proven[tp] is None}
    proofs = {tp: parts.get(tp, position) for tp, position in proven.items()}
    extents = {tp: extent for tp, extent in mirroring.extents(in_force, topics).items() if tp not in cut}
    newest = _newest(state, extents, mirror, facts)
    under = {tp: (extent.text(reset, topics[tp.topic].id), of) for tp, (extent, of) in newest.items()}
    if seen.done(Recover(str(verdict), reset, topics, proofs, growths, _policy(state, offsets), founding, under)):
        return Decision(state, (), LookAgain(RETRY_MS, "other members may prove positions that this one cannot"))
    life = replace(state.life.rejoining(), verdict=None)
    owning = replace(state.owning, placed=frozenset(), growths=growths)  # unproven partitions are placed anew
    why = LogLine(f"group {settings.group}: {verdict}; positions are recovered from their proofs")
    lines = tuple(
        LogLine(f"group {settings.group}: the mirror counts up to there only: {loss}") for loss in cut.values()
    )
    recovered = replace(state, life=life, owning=owning, mirrored=replace(state.mirrored, extents=extents))
    return Decision(recovered, (why, *lines), LookAgain())


def _newest(
    state: State, extents: Extents, mirror: Mapping[TopicPartition, int], facts: Facts
) -> dict[TopicPartition, tuple[Extent, tuple[Fact, ...]]]:
    """Of each partition the extent of its proofs under the newest leader epoch, and the positions that these prove.

    The mirror proves one of all hashes.
    """
    epochs = state.evidence.known.leader_epochs
    newest: dict[TopicPartition, tuple[Extent, tuple[Fact, ...]]]
    newest = {tp: (extent, (Fact(WHOLE, mirror[tp]),)) for tp, extent in extents.items()}
    for tp, of_tp in facts.items():
        mirrored, at = newest.get(tp, (None, ()))
        if tp not in epochs or (mirrored and epochs[tp] < mirrored.epoch):
            continue
        same = (*of_tp, *(at if mirrored and mirrored.epoch == epochs[tp] else ()))
        stacked = HashMap.stacked((f.hashes, f.position) for f in same)
        extent = Extent(epochs[tp], max(f.position for f in same))
        newest[tp] = extent, tuple(Fact(hashes, max(positions)) for hashes, positions in stacked)
    return newest


def _policy(state: State, offsets: mirroring.GroupOffsets) -> Policy | None:
    """The strictest evidence of the policies: the mirror, and the last look of this process. None without any."""
    mirror, last = mirroring.policies(offsets), state.owning.policy
    found = [Policy(*mirror)] if mirror else []
    found += [last.of_group] if state.owning.looked_at_ms and not last.unknown else []
    return reduce(Policy.stricter, found) if found else None


def _growths(state: State, offsets: mirroring.GroupOffsets, seen: Seen, call: Call) -> tuple[Growth, ...]:
    """The growths to record again: those that this process knows, and those of the mirror."""
    known = {g.field for g in state.owning.growths}
    shown = mirroring.growths(offsets, state.log.topics) | _unseen(state, offsets, seen, call)
    return state.owning.growths + tuple(g for g in sorted(shown, key=lambda g: g.field) if g.field not in known)


def _unseen(state: State, offsets: mirroring.GroupOffsets, seen: Seen, call: Call) -> frozenset[Growth]:
    """Growths that no member recorded: the mirror has fewer partitions than the topics. None of given partitions."""
    topics = state.log.topics
    grown = tuple(mirroring.outgrown(offsets, topics))
    if not grown or isinstance(call.setup.subscription, Assigned):
        return frozenset()
    now = seen.of(ReadRedisTime())
    until = now + call.setup.settings.growth_grace_ms
    return frozenset(Growth(t, topics[t].id, old, len(topics[t].partitions), now, until, late=True) for t, old in grown)
