"""The proofs of positions: this process's last offset, and the mirror (rule: recover-by-proof). Pure.

    fact     of the reset epoch in force; of a topic that exists under the same id; below the end of its leader epoch
    mirror   likewise

A partition that Redis does not know, and that a proof covers, is a loss and no first sight.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from coordinator.member.decision import Call, Seen
from coordinator.member.requests import ReadGroupOffsets, ReadLeftOfEpochs, ReadResetEpoch
from coordinator.member.state import State
from coordinator.progress import mirror as mirroring
from coordinator.progress.data_loss import Cut, cuts
from coordinator.progress.ownership import Facts, facts_below
from coordinator.values.subscription import Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class Proofs:
    """Proven positions, and partitions that this process has read and whose position nothing proves."""

    positions: Mapping[TopicPartition, int]
    missing: tuple[TopicPartition, ...] = ()


def proofs_of(state: State, partitions: Collection[TopicPartition], seen: Seen, call: Call) -> Proofs:
    """The proofs of partitions that Redis does not know, while it has the group."""
    reset, known = seen.of(ReadResetEpoch()), state.evidence.known
    found = seen.of(ReadGroupOffsets()) or {}
    offsets = mirroring.of_founding(mirroring.of_this_schema(found, call.setup.settings.group), state.life.founding)
    mirror, _ = mirrored(mirroring.since_reset(offsets, reset), state.log.topics, seen)
    facts = facts_of_these_logs(state, seen) if known.by_key and known.reset == reset else {}
    proven = mirroring.proven(partitions, mirror, facts)
    positions = {tp: position for tp, position in proven.items() if position is not None}
    return Proofs(positions, tuple(sorted((read(state, reset) & {*partitions}) - positions.keys())))


def read(state: State, reset: int) -> frozenset[TopicPartition]:
    """The partitions that this process has read at this reset epoch, of topics that exist."""
    known = state.evidence.known
    return frozenset(tp for tp in known.lanes if known.reset == reset and _is_of(state, tp))


def facts_of_these_logs(state: State, seen: Seen) -> Facts:
    """The facts of topics that exist, as far as their logs still have the records (rule: leader-epoch-facts).

    A fact of a topic proves nothing of the topic that replaced it.
    """
    found = {tp: facts for tp, facts in state.evidence.facts.items() if _is_of(state, tp)}
    epochs = {tp: epoch for tp, epoch in state.evidence.known.leader_epochs.items() if tp in found}
    return facts_below(found, seen.of(ReadLeftOfEpochs(epochs))) if epochs else found


def _is_of(state: State, tp: TopicPartition) -> bool:
    topics = state.log.topics
    return tp.topic in topics and state.evidence.known.topic_ids.get(tp.topic) == topics[tp.topic].id


def mirrored(
    offsets: mirroring.GroupOffsets, topics: Mapping[str, Topic], seen: Seen
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, Cut]]:
    """The mirror's offsets, as far as the logs still have the records below them, and the logs that were cut.

    A log that was cut has other records above the end of the mirror's leader epoch (rule: leader-epoch-facts).
    """
    known = mirroring.extents(offsets, topics)
    left = seen.of(ReadLeftOfEpochs({tp: extent.epoch for tp, extent in known.items()})) if known else {}
    cut = cuts(known, {tp: extent.end for tp, extent in left.items()})
    found = mirroring.mirrored(offsets, topics)
    return {tp: min(offset, cut[tp].end) if tp in cut else offset for tp, offset in found.items()}, cut
