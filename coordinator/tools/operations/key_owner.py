"""The owner of a key, and the key's position, in each partition that may hold it. Pure."""

from dataclasses import dataclass
from typing import Annotated

from coordinator.errors import UnknownTopicError
from coordinator.redis.group_state import GroupState
from coordinator.tools.fields import (
    HashesText,
    HashOfKey,
    Inclusive,
    LaneEpoch,
    Means,
    PartitionNumber,
    TopicField,
)
from coordinator.values.key_hash import hash_key
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """One partition at one key's hash."""

    topic: TopicField
    partition: PartitionNumber
    usual: Annotated[bool, Means("Whether Kafka's default partitioner chooses this partition.", "the star")]
    key_hash: HashOfKey
    hashes: HashesText
    position: Annotated[int, Means("All records of the key before it are processed.", "POSITION")]
    done_above: Annotated[
        tuple[Inclusive, ...],
        Means("Individual commits above it: the first and the last offset of each.", "DONE ABOVE"),
    ]
    epoch: LaneEpoch
    member: Annotated[str | None, Means("The owner; null if it has none.", "MEMBER")]
    host: Annotated[str | None, Means("Host of the owner's driver.", "HOST")]


def key_owners(state: GroupState, topic: str, key: bytes, partition: int | None = None) -> tuple[KeyOwner, ...]:
    """The owner of `key` in each partition of the topic that has positions, or in `partition` only.

    Raises `UnknownTopicError` without positions.
    """
    usual = _usual_partition(state, topic, key)
    found = tuple(
        _owner(state, tp, key, tp.partition == usual)
        for tp in sorted(state.segments)
        if tp.topic == topic and state.segments[tp] and partition in (None, tp.partition)
    )
    if not found:
        place = topic if partition is None else f"{topic}-{partition}"
        known = ", ".join(sorted({tp.topic for tp in state.segments})) or "none"
        raise UnknownTopicError(f"the group has no position in {place}", f"name a topic with positions: {known}")
    return found


def _owner(state: GroupState, tp: TopicPartition, key: bytes, usual: bool) -> KeyOwner:
    point = hash_key(key)
    hashes, position = next((h, p) for h, p in state.segments[tp] if point in h)
    epoch, member = next(((e, m) for h, e, m in state.owners.get(tp, ()) if point in h), (None, None))
    done = sorted(r.offsets for r in state.ics.get(tp, ()) if point in r.hashes and r.offsets.until > position)
    host = state.members.get(member, {}).get("host") if member else None
    lane = (f"{point:016x}", str(hashes), position, tuple(map(Inclusive.of, done)))
    return KeyOwner(tp.topic, tp.partition, usual, *lane, epoch, member, host)


def _usual_partition(state: GroupState, topic: str, key: bytes) -> int | None:
    """The partition that Kafka's default partitioner chooses for the key; None for an unknown topic."""
    from coordinator.kafka.partitioning import partition_for  # noqa: PLC0415 - other views need no Kafka client

    known = state.topics.get(topic)
    return partition_for(key, known.partitions, keyless=0) if known else None
