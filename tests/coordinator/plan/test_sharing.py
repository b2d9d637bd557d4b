"""Which offsets several tasks of a batch read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan import sharing
from coordinator.plan.sharing import MOST_PARTS, MOST_STRETCHES, WORTH_IT, SharedStretch, shared_stretches
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

P0 = TopicPartition("orders", 0)
K = 1_000
LOW, HIGH = cuts(2)
Q = cuts(4)


def part(hashes: HashRange, start: int, until: int, partition: int = 0) -> Slice:
    return Slice(TopicPartition("orders", partition), hashes, OffsetRange(start * K, until * K))


def stretch(start: int, until: int, *parts: HashRange, readers: int = 2) -> SharedStretch:
    return SharedStretch(OffsetRange(start * K, until * K), readers, parts)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        pytest.param([[part(WHOLE, 0, 9)]], (), id="a single task shares nothing"),
        pytest.param([[part(WHOLE, 0, 9)], [part(WHOLE, 0, 9, partition=1)]], (), id="partitions share nothing"),
        pytest.param([[part(LOW, 0, 9)], [part(HIGH, 0, 9)]], (stretch(0, 9, LOW, HIGH),), id="two lanes share all"),
        pytest.param(
            [[part(LOW, 0, 6)], [part(HIGH, 4, 9)]],
            (stretch(4, 6, LOW, HIGH),),
            id="offsets of one task are not shared",
        ),
        pytest.param(
            [[part(Q[0], 0, 9)], [part(Q[1], 3, 9)], [part(Q[2], 3, 6)]],
            (stretch(3, 6, *Q[:3], readers=3), stretch(6, 9, *Q[:2])),
            id="where a task ends another stretch begins",
        ),
        pytest.param(
            [[part(Q[0], 0, 9), part(Q[2], 0, 9)], [part(Q[1], 0, 9), part(Q[3], 0, 9)]],
            (stretch(0, 9, *Q),),
            id="a task may read hashes that are not neighbours",
        ),
        pytest.param(
            [[part(Q[0], 0, 5), part(Q[1], 5, 9)], [part(HIGH, 0, 9)]],
            (stretch(0, 9, Q[0], Q[1], HIGH),),
            id="slices of a task one after another are one reading",
        ),
        pytest.param(
            [[part(Q[0], 0, 9), part(Q[1], 0, 9)], [part(Q[3], 0, 9)]],
            (stretch(0, 9, LOW, Q[3]),),
            id="neighbours in a task are one part, unread hashes are no part",
        ),
        pytest.param(
            [
                [Slice(TopicPartition("orders", 0), LOW, OffsetRange(0, WORTH_IT - 1))],
                [Slice(TopicPartition("orders", 0), HIGH, OffsetRange(0, WORTH_IT - 1))],
            ],
            (),
            id="very few offsets are fetched twice",
        ),
        pytest.param(
            [
                [Slice(TopicPartition("orders", 0), LOW, OffsetRange(0, 100))],
                [Slice(TopicPartition("orders", 0), HIGH, OffsetRange(0, 100))],
            ],
            (SharedStretch(OffsetRange(0, 100), 2, (LOW, HIGH)),),
            id="a hundred are not: their records may be large",
        ),
    ],
)
def test_offsets_that_several_tasks_read_are_shared(
    tasks: list[list[Slice]], expected: tuple[SharedStretch, ...]
) -> None:
    assert shared_stretches(tasks).get(P0, ()) == expected


def test_very_many_lanes_are_not_shared() -> None:
    some = {n: [[part(hashes, 0, 9)] for hashes in cuts(n)] for n in (MOST_PARTS, MOST_PARTS + 1)}
    assert [bool(shared_stretches(tasks)) for tasks in some.values()] == [True, False]


def test_of_very_many_stretches_the_longest_are_shared() -> None:
    one = [part(LOW, 0, 1000)]
    other = [Slice(P0, HIGH, OffsetRange(at * K, at * K + 100 + at)) for at in range(MOST_STRETCHES + 5)]
    found = shared_stretches([one, other])[P0]
    assert [len(each.offsets) for each in found] == [105 + i for i in range(MOST_STRETCHES)]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(1, 8)),
        min_size=1,
        max_size=12,
        unique_by=lambda s: s,
    ),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_an_offset_is_shared_by_as_many_as_read_it(lanes: list[tuple[int, int, int]], owners: list[int]) -> None:
    slices = [
        (owners[lane], Slice(TopicPartition("orders", 0), Q[lane], OffsetRange(at, at + n))) for lane, at, n in lanes
    ]
    tasks = [task for task in ([s for owner, s in slices if owner == wanted] for wanted in range(3)) if task]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sharing, "WORTH_IT", 1)
        found = shared_stretches(tasks).get(P0, ())
    for offset in range(17):
        readers = [task for task in tasks if any(s.offsets.start <= offset < s.offsets.until for s in task)]
        of_offset = [each for each in found if each.offsets.start <= offset < each.offsets.until]
        assert [each.readers for each in of_offset] == [len(readers)] * (len(readers) > 1)
        for task in tasks if of_offset else []:
            read = {s.hashes for s in task if s.offsets.start <= offset < s.offsets.until}
            mine = [part for part in of_offset[0].parts if any(part.intersection(lane) for lane in read)]
            assert sum(part.size for part in mine) == sum(lane.size for lane in read), "all of a part, or nothing"
