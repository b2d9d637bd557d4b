"""The mirror: a group's stable offsets in Kafka's own group of the same name (rule: mirror-after-reset).

The metadata text beside each offset names its reset epoch, topic id and founding. So the mirror of a topic that was
created again proves nothing, nor does that of an earlier group of this name. It also names the leader epoch under which
the log reached the offset, and the group's policies.
Also decides which positions are proven after a loss. Pure: `member.apply` reads and writes the mirror.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from coordinator.errors import StateFormatError
from coordinator.errors.quoting import quoted
from coordinator.progress.growth import PARTITIONS_MAX, Growth
from coordinator.progress.leader_epochs import Extent, Extents
from coordinator.progress.ownership import Facts
from coordinator.values.identifiers import LEADER_EPOCH_MAX, RESET_MAX
from coordinator.values.ranges import HASH_MAX, NUMBER
from coordinator.values.subscription import Topic, TopicPartition

SCHEMA = "1"  # rule: schema-number
_OF_ANY_SCHEMA = re.compile(r"coop-kafka v(\w+) .*")
_GROWTH = rf"(?: growth=({NUMBER})-({NUMBER})@(~?{NUMBER})-({NUMBER}))?"
_EPOCH = rf"(?: epoch=({NUMBER}))?"
_POLICY, _FOUNDING = r"(?: commit=(true|false) fetch=(true|false))?", r"(?: founding=([0-9a-f]+))?"
_METADATA = re.compile(rf"coop-kafka v{SCHEMA} reset=({NUMBER}) topic=(\S+){_GROWTH}{_EPOCH}{_POLICY}{_FOUNDING}")


def _ours(metadata: str) -> re.Match[str] | None:
    """A text that coop-kafka wrote, with numbers that Redis and checkpoints can hold too."""
    found = _METADATA.fullmatch(metadata)
    if not found:
        return None
    reset, old, new, epoch = (int(found[n] or 0) for n in (1, 3, 4, 7))
    grew = found[3] is None or 0 < old < new <= PARTITIONS_MAX
    return found if grew and reset <= RESET_MAX and epoch <= LEADER_EPOCH_MAX else None


GroupOffsets = Mapping[TopicPartition, tuple[int, str]]
MirroredPolicy = tuple[bool, bool] | None
"""accept.individual.commit of a group, and accept.range.fetch of a topic; None: not known."""


def entry(
    offset: int, reset: int, topic_id: str, extent: Extent | None, growth: Growth | None = None
) -> tuple[int, str]:
    """An offset and its metadata text. For a new partition that waits for older ones, with its growth.

    With the leader epoch of `extent`, and not above its end: the log may have been cut and grown again since. A lower
    offset proves less, so nothing is skipped.
    """
    offset = min(offset, extent.end) if extent else offset
    grew = f" growth={growth.old}-{growth.new}@{'~' * growth.late}{growth.seen_ms}-{growth.until_ms}" if growth else ""
    under = f" epoch={extent.epoch}" if extent else ""
    return offset, f"coop-kafka v{SCHEMA} reset={reset} topic={topic_id}{grew}{under}"


def with_policy(plain: tuple[int, str], policy: MirroredPolicy) -> tuple[int, str]:
    """The entry with policies; unchanged if these are unknown."""
    if policy is None:
        return plain
    commit, fetch = (str(value).lower() for value in policy)
    return plain[0], f"{plain[1]} commit={commit} fetch={fetch}"


def with_founding(plain: tuple[int, str], founding: str) -> tuple[int, str]:
    """The entry with the founding of its group (rule: one-founding), after everything else."""
    return plain[0], f"{plain[1]} founding={founding}"


def foundings(offsets: GroupOffsets) -> dict[TopicPartition, str]:
    """The founding that each entry of coop-kafka names."""
    found = {tp: _ours(metadata) for tp, (_, metadata) in offsets.items()}
    return {tp: m[10] for tp, m in found.items() if m and m[10]}


def policies(offsets: GroupOffsets) -> tuple[bool, frozenset[str]] | None:
    """The strictest policies in the mirror: of the group, and the refused topics. None if no entry names them.

    rule: policies-survive
    """
    parsed = ((tp.topic, _ours(metadata)) for tp, (_, metadata) in offsets.items())
    found = [(topic, m[8], m[9]) for topic, m in parsed if m and m[8]]
    if not found:
        return None
    refused = frozenset(topic for topic, _, fetch in found if fetch == "false")
    return all(commit == "true" for _, commit, _ in found), refused


def entries(
    stable: Mapping[TopicPartition, int],
    reset: int,
    topic_ids: Mapping[str, str],
    growths: Iterable[Growth],
    extents: Extents,
    policy: Callable[[str], MirroredPolicy],
    founding: str,
) -> dict[TopicPartition, tuple[int, str]]:
    """The entries of stable offsets, without topics that the group does not know: these are recovered."""
    known = {tp: o for tp, o in stable.items() if tp.topic in topic_ids}
    waiting = (g for g in growths if g.gated and not g.passed(stable))
    came = {(tp, g.topic_id): g for g in waiting for tp in g.newer}
    plain = {
        tp: entry(o, reset, topic_ids[tp.topic], extents.get(tp), came.get((tp, topic_ids[tp.topic])))
        for tp, o in known.items()
    }
    return {tp: with_founding(with_policy(of_tp, policy(tp.topic)), founding) for tp, of_tp in plain.items()}


def extents(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> dict[TopicPartition, Extent]:
    """The extents of these topics' logs, by the leader epochs in the mirror."""
    return {tp: Extent(int(m[7]), offset) for tp, offset, m in _of_topics(offsets, topics) if m[7]}


def growths(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> frozenset[Growth]:
    """The growths of these topics whose new partitions waited for older ones when the mirror was written."""
    found = (x for x in _of_topics(offsets, topics) if x[2][3])
    return frozenset(
        Growth(tp.topic, m[2], int(m[3]), int(m[4]), int(m[5].lstrip("~")), int(m[6]), late=m[5].startswith("~"))
        for tp, _, m in found
    )


def outgrown(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> Iterator[tuple[str, int]]:
    """Topics with more partitions than the mirror has, and that smaller number. The mirror has all below it."""
    count = Counter(tp.topic for tp in mirrored(offsets, topics))
    for name, topic in topics.items():
        before = {TopicPartition(name, p) for p in range(count[name])}
        if 0 < count[name] < len(topic.partitions) and before <= offsets.keys():
            yield name, count[name]


def of_this_schema(offsets: GroupOffsets, group: str) -> GroupOffsets:
    """Kafka's group offsets; `StateFormatError` if coop-kafka wrote one in another form, which may prove more."""
    for tp, (_, metadata) in sorted(offsets.items()):
        found = _OF_ANY_SCHEMA.fullmatch(metadata)
        if found and not _ours(metadata):
            raise StateFormatError(
                f"Kafka's group {group!r} holds an offset of {tp} in schema {found[1]!r} of the mirror, "
                f"this coop-kafka reads schema {SCHEMA!r} as it writes it: {quoted(metadata)}",
                "use the version of coop-kafka that wrote it, or delete Kafka's group of that name",
            )
    return offsets


def of_other_topics(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> dict[str, str]:
    """The topics that have another id in entries of coop-kafka, with that id."""
    parsed = ((tp.topic, _ours(metadata)) for tp, (_, metadata) in sorted(offsets.items()))
    return {name: m[2] for name, m in parsed if m and name in topics and m[2] != topics[name].id}


def is_mirror(offsets: GroupOffsets) -> bool:
    """Whether coop-kafka wrote any of Kafka's group offsets."""
    return any(_ours(metadata) for _, metadata in offsets.values())


def plain(offsets: GroupOffsets) -> dict[TopicPartition, int]:
    """The offsets that another program has committed."""
    return {tp: offset for tp, (offset, metadata) in offsets.items() if not _ours(metadata)}


def latest_reset(offsets: GroupOffsets) -> int:
    """The highest reset epoch among the entries that coop-kafka wrote; 0 without any."""
    return max((_reset(metadata) for _, metadata in offsets.values()), default=0)


def usable(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> GroupOffsets:
    """Kafka's group offsets without entries of coop-kafka for topics that were created again."""
    ours = mirrored(offsets, topics)
    return {tp: (o, m) for tp, (o, m) in offsets.items() if tp in ours or not _ours(m)}


def of_founding(offsets: GroupOffsets, founding: str) -> GroupOffsets:
    """The offsets without entries of another group of this name (rule: one-founding). Empty: every founding counts."""
    theirs = {tp for tp, found in foundings(offsets).items() if founding not in ("", found)}
    return {tp: entry for tp, entry in offsets.items() if tp not in theirs}


def since_reset(offsets: GroupOffsets, reset: int) -> GroupOffsets:
    """The entries of that reset epoch. Entries of an older one are no facts (rule: reset-epoch)."""
    return {tp: (o, m) for tp, (o, m) in offsets.items() if _reset(m) == reset}


def _reset(metadata: str) -> int:
    found = _ours(metadata)
    return int(found[1]) if found else 0


def names(offsets: GroupOffsets) -> frozenset[str]:
    """The topics of the entries that coop-kafka wrote."""
    return frozenset(tp.topic for tp, (_, metadata) in offsets.items() if _ours(metadata))


def mirrored(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> dict[TopicPartition, int]:
    """The entries that coop-kafka wrote among Kafka's group offsets, for exactly these topics."""
    return {tp: offset for tp, offset, _ in _of_topics(offsets, topics)}


def _of_topics(
    offsets: GroupOffsets, topics: Mapping[str, Topic]
) -> Iterator[tuple[TopicPartition, int, re.Match[str]]]:
    """Partition, offset and parsed metadata of the same entries."""
    for tp, (offset, metadata) in offsets.items():
        found = _ours(metadata)
        if found and tp.topic in topics and found[2] == topics[tp.topic].id:
            yield tp, offset, found


def proven(
    partitions: Iterable[TopicPartition], mirror: Mapping[TopicPartition, int], facts: Facts
) -> dict[TopicPartition, int | None]:
    """The proven position of each partition, by mirror or facts; None without a proof.

    Facts prove a stable offset only if they cover the whole hash space.
    """
    whole = {tp: of_tp for tp, of_tp in facts.items() if sum(f.hashes.size for f in of_tp) == HASH_MAX + 1}
    of_facts = {tp: min(f.position for f in of_tp) for tp, of_tp in whole.items()}
    return {tp: max((p[tp] for p in (mirror, of_facts) if tp in p), default=None) for tp in partitions}
