"""The topic of share groups: snapshots and updates, against a set of offsets. `test_importing` reads a real one."""

import struct
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as some

from coordinator.errors import StateFormatError
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.tools.moving.share_group import done
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

TP, TOPIC = TopicPartition("orders", 0), uuid4()
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
Batch = tuple[int, int, int]


def key(kind: int, group: str = "g", topic: UUID = TOPIC, partition: int = 0) -> bytes:
    return struct.pack(">hh", kind, len(group)) + group.encode() + topic.bytes + struct.pack(">i", partition)


def batches(*some_batches: Batch) -> bytes:
    packed = b"".join(struct.pack(">qqbh", *batch, 1) + b"\0" for batch in some_batches)
    count = len(some_batches) + 1
    return bytes([count & 0x7F | 0x80, count >> 7] if count > 0x7F else [count]) + packed + b"\0"


def snapshot(start: int, *some_batches: Batch) -> tuple[bytes, bytes]:
    return key(0), struct.pack(">hiiiqqq", 0, 1, 1, 1, start, 1, 1) + batches(*some_batches)


def update(start: int, *some_batches: Batch) -> tuple[bytes, bytes]:
    return key(1), struct.pack(">hiiq", 0, 1, 1, start) + batches(*some_batches)


def of_orders(*records: tuple[bytes | None, bytes | None]) -> list[DoneOffsets]:
    return done(records, "g", {str(TOPIC): "orders"})


def test_acknowledged_and_archived_offsets_are_done() -> None:
    records = (
        snapshot(5, (5, 9, AVAILABLE), (10, 12, ACKNOWLEDGED)),
        update(-1, (14, 14, ARCHIVED), (6, 6, ACKNOWLEDGED)),
        update(6),
    )
    (found,) = of_orders(*records)
    assert found == DoneOffsets(TP, 7, (OffsetRange(10, 13), OffsetRange(14, 15)))


def test_a_released_offset_is_not_done() -> None:
    (found,) = of_orders(snapshot(0, (0, 9, ACKNOWLEDGED)), update(-1, (3, 4, AVAILABLE)))
    assert found == DoneOffsets(TP, 3, (OffsetRange(5, 10),))


@dataclass
class Expected:
    start: int
    states: dict[int, int]


BATCH = some.tuples(some.integers(0, 40), some.integers(0, 10), some.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]))


@given(some.lists(some.tuples(some.booleans(), some.integers(0, 8), some.lists(BATCH, max_size=200)), max_size=6))
def test_any_history_shows_exactly_the_done_offsets(history: list[tuple[bool, int, list[Batch]]]) -> None:
    expected, records = Expected(0, {}), [snapshot(0)]
    for whole, advance, given_batches in history:
        start = expected.start + advance  # it never goes back
        made = [(first, first + more, state) for first, more, state in given_batches]
        records.append((snapshot if whole else update)(start, *made))
        expected = Expected(start, {} if whole else expected.states)
        for first, last, state in made:
            expected.states.update(dict.fromkeys(range(first, last + 1), state))
    (found,) = of_orders(*records)
    above = {offset for r in found.above for offset in range(r.start, r.until)}
    finished = {o for o, state in expected.states.items() if state != AVAILABLE and o >= expected.start}
    assert {*range(expected.start, found.position)} | above == finished
    assert not found.above or found.above[0].start > found.position


def test_other_groups_topics_and_deleted_groups_are_left_out() -> None:
    _, value = snapshot(5)
    other_group, other_topic = (key(0, "other"), value), (key(0, "g", uuid4()), value)
    assert of_orders(other_group, other_topic, snapshot(-1)) == []
    assert of_orders(snapshot(5), (key(0), None)) == []
    assert of_orders((struct.pack(">h", 7), b""), snapshot(5)) == [DoneOffsets(TP, 5)]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param((b"", b""), id="no key"),
        pytest.param((key(0)[:-3], b""), id="a key that is cut"),
        pytest.param((key(0), snapshot(5, (1, 2, 2))[1][:-9]), id="a value that is cut"),
        pytest.param((key(1), b"\0\1" + update(5)[1][2:]), id="another version"),
        pytest.param(update(5, (0, 2**40, 2)), id="a batch without an end"),
        pytest.param(update(5, *[(0, 900_000, 2)] * 900), id="batches without an end"),
        pytest.param((key(1), update(5)[1][:-2] + b"\x81" + b"\x80" * 9 + b"\0"), id="a number without an end"),
        pytest.param(update(5, (7, 5, 2)), id="a batch that ends before it begins"),
    ],
)
def test_records_of_another_format_are_refused(record: tuple[bytes, bytes]) -> None:
    with pytest.raises(StateFormatError, match="not of the format of Kafka"):
        of_orders(record)
