"""Packing: every slice once, nothing that belongs together parted, loads as even as they can be."""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.packing import pack, pack_offsets
from coordinator.progress.slices import Slice, weight
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition


def whole(partition: int, length: int, topic: str = "orders") -> Slice:
    return Slice(TopicPartition(topic, partition), WHOLE, OffsetRange(0, length))


def lanes(partition: int, n: int, length: int) -> list[Slice]:
    return [Slice(TopicPartition("orders", partition), hashes, OffsetRange(0, length)) for hashes in cuts(n)]


LOW, HIGH = HashRange(0, 9), HashRange(14, 20)


def part(hashes: HashRange, start: int, until: int, partition: int = 0) -> Slice:
    return Slice(TopicPartition("orders", partition), hashes, OffsetRange(start, until))


A, B, C, D = whole(0, 40), whole(1, 30), whole(2, 20), whole(3, 10)
P0, P1, P2 = lanes(0, 2, 100), lanes(1, 2, 100), lanes(2, 2, 100)


@pytest.mark.parametrize(
    ("slices", "tasks", "max_weight", "expected"),
    [
        pytest.param([], 4, None, (), id="nothing to read needs no task"),
        pytest.param([A], 4, None, ((A,),), id="one slice needs one task"),
        pytest.param([D, C, B, A], 2, None, ((A, D), (B, C)), id="the longest first onto the task with the least"),
        pytest.param([A, B, C, D], 1, None, ((A, B, C, D),), id="one task reads everything"),
        pytest.param(lanes(0, 4, 1), 4, None, (tuple(lanes(0, 4, 1)),), id="one offset is read by one task"),
        pytest.param(
            lanes(0, 3, 2), 4, None, tuple((s,) for s in lanes(0, 3, 2)), id="the lanes of two offsets by a task each"
        ),
        pytest.param([A, B, C, D], 1, 40.0, ((A,), (B,), (C, D)), id="a limit opens tasks beyond the wanted number"),
        pytest.param([A, D], 1, 15.0, ((A,), (D,)), id="a slice above the limit is alone"),
        pytest.param(
            P0 + P1, 2, None, (tuple(P0), tuple(P1)), id="lanes of a partition are together when it costs nothing"
        ),
        pytest.param(
            P0 + P1 + P2,
            3,
            None,
            (tuple(P0), tuple(P1), tuple(P2)),
            id="as many tasks as partitions read a partition each",
        ),
        pytest.param(
            [part(LOW, 0, 10), part(HIGH, 0, 10)],
            2,
            None,
            ((part(HashRange(0, 9), 0, 10),), (part(HIGH, 0, 10),)),
            id="slices without a common hash may be parted",
        ),
        pytest.param(
            [part(LOW, 0, 10, partition=0), part(LOW, 0, 10, partition=1)],
            2,
            None,
            ((part(LOW, 0, 10, partition=0),), (part(LOW, 0, 10, partition=1),)),
            id="the same hashes of two partitions are strangers",
        ),
    ],
)
def test_pack(
    slices: Sequence[Slice], tasks: int, max_weight: float | None, expected: tuple[tuple[Slice, ...], ...]
) -> None:
    packed = pack(slices, tasks=tasks, max_weight=max_weight)
    assert sorted(packed) == sorted(expected)
    assert [weight(task) for task in packed] == sorted((weight(task) for task in packed), reverse=True)


JOINED = ("clicks", "orders")


@given(lanes_of_each=st.integers(1, 6), tasks=st.integers(1, 8), other=st.integers(1, 300))
def test_joined_topics_with_the_same_lanes_fill_as_many_tasks_as_they_have_lanes(
    lanes_of_each: int, tasks: int, other: int
) -> None:
    orders = lanes(0, lanes_of_each, 100)
    clicks = [s._replace(topic_partition=TopicPartition("clicks", 0), offsets=OffsetRange(0, other)) for s in orders]
    packed = pack([*orders, *clicks], tasks=tasks, joined=JOINED)
    assert len(packed) == min(tasks, lanes_of_each)
    assert {len(task) % 2 for task in packed} == {0}, "both sides of each lane"


slices_apart = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 50), st.integers(0, 2)), max_size=6)


@given(lengths_and_gaps=slices_apart, tasks=st.integers(1, 8), most=st.none() | st.integers(1, 40))
def test_offsets_without_order_are_read_once_by_tasks_of_equal_work(
    lengths_and_gaps: list[tuple[int, int, int]], tasks: int, most: int | None
) -> None:
    slices, start = [], 0
    for length, gap, partition in lengths_and_gaps:
        slices.append(part(WHOLE, start, start + length, partition))
        start += length + gap
    packed = pack_offsets(slices, tasks=tasks, max_offsets=most, work=attrgetter("weight"))
    points = [(s.topic_partition, o) for task in packed for s in task for o in range(s.offsets.start, s.offsets.until)]
    assert sorted(points) == sorted(
        (s.topic_partition, o) for s in slices for o in range(s.offsets.start, s.offsets.until)
    )
    lengths = [sum(len(s.offsets) for s in task) for task in packed]
    assert all(lengths)
    assert max(lengths, default=0) <= min(-(-sum(len(s.offsets) for s in slices) // tasks), most or 10**9)
    if most is None:
        assert len(packed) <= tasks


def test_a_dear_partition_gets_more_tasks_without_order() -> None:
    def work(s: Slice) -> float:
        return len(s.offsets) * (9.0 if s.partition == 0 else 1.0)

    packed = pack_offsets([whole(0, 100), whole(1, 100)], tasks=2, max_offsets=None, work=work)
    assert [[(s.partition, len(s.offsets)) for s in task] for task in packed] == [[(0, 56)], [(0, 44), (1, 100)]]


@given(length=st.integers(1, 1000), odd=st.integers(0, 30), tasks=st.integers(1, 4))
def test_a_partition_with_little_of_the_work_is_read_by_one_task_however_many_lanes_it_has(
    length: int, odd: int, tasks: int
) -> None:
    few = [s for p in range(16 * tasks + odd) for s in lanes(p, 3, length)]
    large = lanes(1_000, 4, 1_000 * length * tasks)
    packed = pack(few + large, tasks=tasks)
    readers = Counter(p for task in packed for p in {s.partition for s in task})
    assert {readers[s.partition] for s in few} == {1}
    assert readers[1_000] == tasks, "the lanes of a large one are shared out"


@given(lengths=st.lists(st.integers(1, 1000), max_size=40), tasks=st.integers(1, 8))
def test_no_task_is_ahead_of_another_by_more_than_its_lightest_slice(lengths: list[int], tasks: int) -> None:
    packed = pack([whole(i, n) for i, n in enumerate(lengths)], tasks=tasks)
    assert len(packed) == min(tasks, len(lengths))
    least = min(map(weight, packed), default=0)
    assert all(weight(task) - min(s.weight for s in task) <= least for task in packed)


@given(lengths=st.lists(st.integers(1, 1000), max_size=40), limit=st.integers(1, 3000))
def test_a_task_above_the_limit_is_a_single_slice(lengths: list[int], limit: int) -> None:
    packed = pack([whole(i, n) for i, n in enumerate(lengths)], tasks=2, max_weight=limit)
    assert all(weight(task) <= limit or len(task) == 1 for task in packed)


def test_tasks_beyond_any_number_of_slices_cost_nothing() -> None:
    """`minPartitions` may be any whole number of 31 bits."""
    slices = lanes(0, 8, 1_000)
    assert pack(slices, tasks=2**31 - 1) == pack(slices, tasks=8)
