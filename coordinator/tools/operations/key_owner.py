"""The owner of a key, and the key's position, in each partition that may hold it. Pure."""

from dataclasses import dataclass

from coordinator.errors import UnknownTopicError
from coordinator.redis.group_state import GroupState
from coordinator.values.key_hash import hash_key
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """One partition at one key's hash."""

    topic: str
    partition: int
    usual: bool  # whether Kafka's default partitioner chooses it for the key, at today's number of partitions
    key_hash: str  # 16 hex digits
    hashes: str  # the segment that holds it, "lo-hi"
    position: int  # all records of the key before it are done
    done_above: tuple[str, ...]  # individual commits, inclusive
    epoch: str | None  # lane epoch; None if no member owns the hash
    member: str | None
    host: str | None


def key_owners(
    state: GroupState, topic: str, key: bytes, usual: int | None, partition: int | None
) -> tuple[KeyOwner, ...]:
    """The owner of `key` in each partition of the topic that has positions, or in `partition` only.

    `usual` is the partition that Kafka's default partitioner chooses. Raises `UnknownTopicError` without positions.
    """
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
    lane = (f"{point:016x}", str(hashes), position, tuple(map(str, done)))
    return KeyOwner(tp.topic, tp.partition, usual, *lane, epoch, member, host)


def usual_partition(state: GroupState, topic: str, key: bytes) -> int | None:
    """The partition that Kafka's default partitioner chooses for the key; None for an unknown topic."""
    from coordinator.kafka.partitioning import partition_for  # noqa: PLC0415 - other views need no Kafka client

    known = state.topics.get(topic)
    return partition_for(key, known.partitions, keyless=0) if known else None
