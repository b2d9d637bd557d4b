"""The state of a share group (KIP-932), as Kafka's brokers keep it in the topic `__share_group_state`. Pure.

    key          type (0 snapshot, 1 update), group, topic id, partition
    snapshot     start offset, and state batches above it: they replace what was known
    update       start offset (-1: as before), and state batches: they replace what was known of their offsets

A batch is first and last offset, delivery state, delivery count. Everything before the start offset is done, and so are
acknowledged and archived offsets. Fields are big-endian, the values in Kafka's flexible version 0.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from coordinator.errors import StateFormatError
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

TOPIC = "__share_group_state"
_SNAPSHOT, _UPDATE = 0, 1
_DONE = {2, 4}  # acknowledged, archived: rejected, or delivered too often
_BATCH = struct.Struct(">qqbh")
_MOST_OFFSETS = 1_000_000
"""In the batches of a record; a broker keeps a few thousand (group.share.partition.max.record.locks)."""


@dataclass(slots=True)
class _State:
    start: int = -1
    delivery: dict[int, int] = field(default_factory=dict)  # offset -> delivery state


def done(
    records: Iterable[tuple[bytes | None, bytes | None]], group: str, topics: Mapping[str, str]
) -> list[DoneOffsets]:
    """The progress of a group, by keys and values of the topic in their order; `topics` are names by topic id.

    Leaves out topics that Kafka no longer has, and partitions without a start offset. Raises `StateFormatError`.
    """
    states: dict[TopicPartition, _State] = {}
    for key, value in records:
        try:
            found = _key(key or b"")
            if found and found[1] == group and found[2] in topics:
                tp = TopicPartition(topics[found[2]], found[3])
                _apply(states, tp, value, snapshot=found[0] == _SNAPSHOT)
        except (struct.error, IndexError, ValueError) as error:
            raise StateFormatError(
                f"a record of {TOPIC} is not of the format of Kafka 4.2",
                "use a coop-kafka for this Kafka, or begin at a time: startingOffsetsByTimestamp",
            ) from error
    return [_done(tp, state) for tp, state in sorted(states.items()) if state.start >= 0]


def _key(key: bytes) -> tuple[int, str, str, int] | None:
    """Type, group, topic id and partition; None for another type."""
    (kind,) = struct.unpack_from(">h", key)
    if kind not in (_SNAPSHOT, _UPDATE):
        return None
    (size,) = struct.unpack_from(">h", key, 2)
    group, rest = key[4 : 4 + size].decode(), key[4 + size :]
    (partition,) = struct.unpack_from(">i", rest, 16)
    return kind, group, str(UUID(bytes=rest[:16])), partition


def _apply(states: dict[TopicPartition, _State], tp: TopicPartition, value: bytes | None, *, snapshot: bool) -> None:
    if value is None:  # the group was deleted
        states.pop(tp, None)
        return
    if snapshot:
        # version, snapshot epoch, state epoch, leader epoch, start offset, two times
        version, *_, start, _, _ = struct.unpack_from(">hiiiqqq", value)
        batches = _batches(value[struct.calcsize(">hiiiqqq") :])
        states[tp] = _State(start)
    else:
        version, *_, start = struct.unpack_from(">hiiq", value)
        batches = _batches(value[struct.calcsize(">hiiq") :])
    if version != 0:
        raise ValueError("another version")
    state = states.setdefault(tp, _State())
    state.start = start if start >= 0 else state.start
    for first, last, delivery in batches:
        state.delivery.update(dict.fromkeys(range(max(first, state.start), last + 1), delivery))


def _batches(data: bytes) -> Iterator[tuple[int, int, int]]:
    """First offset, last offset and delivery state of each batch: a compact array."""
    count, at = _unsigned(data, 0)
    offsets = 0
    for _ in range(count - 1):
        first, last, delivery, _count = _BATCH.unpack_from(data, at)
        tags, at = _unsigned(data, at + _BATCH.size)
        offsets += last - first + 1
        if tags or last < first or offsets > _MOST_OFFSETS:
            raise ValueError("batches that no broker writes")
        yield first, last, delivery


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length (unsigned varint), and the place behind it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise ValueError("a number of more than 32 bits")


def _done(tp: TopicPartition, state: _State) -> DoneOffsets:
    finished = (offset for offset, delivery in state.delivery.items() if delivery in _DONE and offset >= state.start)
    return DoneOffsets.of(tp, state.start, (OffsetRange(offset, offset + 1) for offset in finished))
