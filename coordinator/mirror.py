"""The mirror: a group's stable offsets as Kafka's own group of the same name holds them (spec 7, 8).

The metadata text beside each offset says of which reset epoch and topic id it is, so that a
re-created topic's old mirror proves nothing. Also decides what positions are proven after a loss.
Pure: `service` reads and writes it through the log.
"""

import re
from collections.abc import Iterable, Mapping

from coordinator.ownership import Facts
from coordinator.ranges import HASH_MAX
from coordinator.subscription import Topic, TopicPartition

_METADATA = re.compile(r"coop-kafka v1 reset=(\d+) topic=(\S+)")

GroupOffsets = Mapping[TopicPartition, tuple[int, str]]


def entry(offset: int, reset: int, topic_id: str) -> tuple[int, str]:
    """A mirror's offset and metadata text."""
    return offset, f"coop-kafka v1 reset={reset} topic={topic_id}"


def is_mirror(offsets: GroupOffsets) -> bool:
    """Whether any of Kafka's group offsets were written by coop-kafka."""
    return any(_METADATA.fullmatch(metadata) for _, metadata in offsets.values())


def usable(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> GroupOffsets:
    """Kafka's group offsets without those that we wrote of a topic that was re-created since."""
    ours = mirrored(offsets, topics)
    return {tp: (o, m) for tp, (o, m) in offsets.items() if tp in ours or not _METADATA.fullmatch(m)}


def mirrored(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> dict[TopicPartition, int]:
    """The offsets among Kafka's group offsets that are ours and of these very topics."""
    found = {tp: (offset, _METADATA.fullmatch(metadata)) for tp, (offset, metadata) in offsets.items()}
    return {tp: offset for tp, (offset, m) in found.items() if m and tp.topic in topics and m[2] == topics[tp.topic].id}


def proven(
    partitions: Iterable[TopicPartition], mirror: Mapping[TopicPartition, int], facts: Facts
) -> dict[TopicPartition, int | None]:
    """The position that mirror or facts prove for each partition, None where nothing does.

    Facts prove a stable offset only where they cover the whole hash space.
    """
    return {tp: _best(mirror.get(tp), _lowest(facts, tp)) for tp in partitions}


def _best(*offsets: int | None) -> int | None:
    return max((o for o in offsets if o is not None), default=None)


def _lowest(facts: Facts, tp: TopicPartition) -> int | None:
    of_tp = facts.get(tp, ())
    covers = sum(f.hashes.size for f in of_tp) == HASH_MAX + 1
    return min(f.position for f in of_tp) if covers else None
