"""The mirror: a group's stable offsets as Kafka's own group of the same name holds them (rule: mirror-after-reset).

The metadata text beside each offset says of which reset epoch and topic id it is, so that a
re-created topic's old mirror proves nothing, and under which leader epoch the log reached it.
Also decides what positions are proven after a loss.
Pure: `service` reads and writes it through the log.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.ownership import Facts
from coordinator.ranges import HASH_MAX
from coordinator.subscription import Topic, TopicPartition

_METADATA = re.compile(r"coop-kafka v1 reset=(\d+) topic=(\S+)(?: growth=(\d+)-(\d+)@(\d+)-(\d+))?(?: epoch=(\d+))?")

GroupOffsets = Mapping[TopicPartition, tuple[int, str]]


def entry(
    offset: int, reset: int, topic_id: str, growth: Growth | None = None, extent: Extent | None = None
) -> tuple[int, str]:
    """A mirror's offset and metadata text; of a new partition that waits for older ones, with the growth it came by.

    And with the leader epoch of `extent`, if the log reached the offset under it.
    """
    grew = f" growth={growth.old}-{growth.new}@{growth.seen_ms}-{growth.until_ms}" if growth else ""
    under = f" epoch={extent.epoch}" if extent and extent.end >= offset else ""
    return offset, f"coop-kafka v1 reset={reset} topic={topic_id}{grew}{under}"


def extents(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> dict[TopicPartition, Extent]:
    """How far the logs of these very topics reached, by what the mirror tells of leader epochs."""
    found = {tp: (offset, _METADATA.fullmatch(metadata)) for tp, (offset, metadata) in offsets.items()}
    ours = mirrored(offsets, topics)
    return {tp: Extent(int(m[7]), offset) for tp, (offset, m) in found.items() if m and m[7] and tp in ours}


def growths(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> frozenset[Growth]:
    """The growths by which partitions of these very topics came, that waited for older ones when they were mirrored."""
    found = ((tp.topic, _METADATA.fullmatch(metadata)) for tp, (_, metadata) in offsets.items())
    return frozenset(
        Growth(topic, m[2], int(m[3]), int(m[4]), int(m[5]), int(m[6]))
        for topic, m in found
        if m and m[3] and topic in topics and m[2] == topics[topic].id
    )


def outgrown(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> Iterator[tuple[str, int]]:
    """Topics that have more partitions than the mirror is of, with how many these were: 0 to one below."""
    count = Counter(tp.topic for tp in mirrored(offsets, topics))
    for name, topic in topics.items():
        before = {TopicPartition(name, p) for p in range(count[name])}
        if 0 < count[name] < len(topic.partitions) and before <= offsets.keys():
            yield name, count[name]


def is_mirror(offsets: GroupOffsets) -> bool:
    """Whether any of Kafka's group offsets were written by coop-kafka."""
    return any(_METADATA.fullmatch(metadata) for _, metadata in offsets.values())


def latest_reset(offsets: GroupOffsets) -> int:
    """The highest reset epoch among the entries that coop-kafka wrote; 0 without any."""
    return max((_reset(metadata) for _, metadata in offsets.values()), default=0)


def usable(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> GroupOffsets:
    """Kafka's group offsets without those that we wrote of a topic that was re-created since."""
    ours = mirrored(offsets, topics)
    return {tp: (o, m) for tp, (o, m) in offsets.items() if tp in ours or not _METADATA.fullmatch(m)}


def since_reset(offsets: GroupOffsets, reset: int) -> GroupOffsets:
    """The entries of that reset epoch; those of an older one are no facts any more (rule: reset-epoch)."""
    return {tp: (o, m) for tp, (o, m) in offsets.items() if _reset(m) == reset}


def _reset(metadata: str) -> int:
    found = _METADATA.fullmatch(metadata)
    return int(found[1]) if found else 0


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
