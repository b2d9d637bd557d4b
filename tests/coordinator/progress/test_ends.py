"""True ends of batches, against sets of their points (offset, hash)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import StateFormatError
from coordinator.progress.ends import Ends, ended, ends_of, parsed, text_of, unread
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 3), TopicPartition("clicks", 0)
CELLS = 8  # hash ranges of equal size; a lane is some neighbours
WIDTH = (HASH_MAX + 1) // CELLS


def hashes(first: int, last: int) -> HashRange:
    """The hashes of the cells `first` to `last`."""
    return HashRange(first * WIDTH, (last + 1) * WIDTH - 1)


@st.composite
def batches(draw: st.DrawFn) -> StreamOffset:
    """A batch of two partitions: lanes side by side, with gaps in the hashes and in the offsets."""
    lanes: dict[TopicPartition, tuple[Lane, ...]] = {}
    for tp in (OTHER, TP):
        bounds = sorted(draw(st.sets(st.integers(1, CELLS - 1))))
        cut = zip([0, *bounds], [*bounds, CELLS], strict=True)
        lanes[tp] = tuple(draw(_lane(first, until - 1)) for first, until in cut if draw(st.booleans()))
    return StreamOffset("g", "m-1", 0, {"orders": "id-1", "clicks": "id-2"}, lanes, early=1)


@st.composite
def _lane(draw: st.DrawFn, first: int, last: int) -> Lane:
    marks = sorted(draw(st.sets(st.integers(0, 12), max_size=4)))
    reads = tuple(OffsetRange(a, b) for a, b in zip(marks[::2], marks[1::2], strict=False))
    position = reads[0].start if reads else draw(st.integers(0, 12))
    return Lane(hashes(first, last), f"a1.{draw(st.integers(1, 2))}", position, reads)


@st.composite
def batches_with_tasks(draw: st.DrawFn) -> tuple[StreamOffset, list[tuple[list[Slice], Ends]]]:
    """A batch, its slices in tasks by lane, and the ends of each task."""
    batch = draw(batches())
    tasks: list[list[Slice]] = [[], [], []]
    number: dict[object, int] = {}
    for s in batch.slices:
        tasks[number.setdefault(s.lane, draw(st.integers(0, 2)))].append(s)
    return batch, [(slices, draw(st.fixed_dictionaries({}, optional={TP: _ENDS, OTHER: _ENDS}))) for slices in tasks]


def _two_ends(cut: int, low: int, high: int) -> HashMap[int]:
    """Ends of the hashes below and above a cell; a task may have ended between two keys."""
    return HashMap(((hashes(0, cut - 1), low), (hashes(cut, CELLS - 1), high)))


_ENDS = st.builds(_two_ends, st.integers(1, CELLS - 1), st.integers(0, 13), st.integers(0, 13))

Point = tuple[TopicPartition, int, int]


def points(slices: list[Slice] | tuple[Slice, ...]) -> set[Point]:
    """The offsets of each cell."""
    return {
        (s.topic_partition, offset, cell)
        for s in slices
        for offset in range(s.offsets.start, s.offsets.until)
        for cell in range(s.hashes.lo // WIDTH, (s.hashes.hi + 1) // WIDTH)
    }


def _beyond(point: Point, ends: Ends) -> bool:
    tp, offset, cell = point
    return any(cell * WIDTH in h and offset >= end for h, end in ends.get(tp, ()))


@given(batches_with_tasks())
def test_a_batch_ends_where_the_task_of_each_hash_ended(
    drawn: tuple[StreamOffset, list[tuple[list[Slice], Ends]]],
) -> None:
    batch, tasks = drawn
    read = {p for slices, ends in tasks for p in points(slices) if not _beyond(p, ends)}
    assert points(ended(batch, ends_of(tasks)).slices) == read


@given(batches_with_tasks())
def test_a_seal_holds_the_ends_of_a_batch(drawn: tuple[StreamOffset, list[tuple[list[Slice], Ends]]]) -> None:
    ends = ends_of(drawn[1])
    assert parsed(text_of(ends)) == ends


@given(batches_with_tasks())
def test_positions_hashes_and_lane_epochs_stay(drawn: tuple[StreamOffset, list[tuple[list[Slice], Ends]]]) -> None:
    batch, tasks = drawn

    def positions(offset: StreamOffset) -> set[tuple[TopicPartition, int, str, int]]:
        return {
            (tp, cell, lane.epoch, lane.position)
            for tp, lane in offset
            for cell in range(lane.hashes.lo // WIDTH, (lane.hashes.hi + 1) // WIDTH)
        }

    assert positions(ended(batch, ends_of(tasks))) == positions(unread(batch)) == positions(batch)
    assert unread(batch).slices == ()


WHOLE_ENDS: Ends = {TP: HashMap.of(hashes(0, 7), 7)}


def test_tasks_that_read_all_of_their_slices__no_early_end() -> None:
    s = Slice(TP, hashes(0, 3), OffsetRange(5, 9))
    assert ends_of([([s], {TP: HashMap.of(hashes(0, 7), 9)}), ([s._replace(hashes=hashes(4, 7))], {})]) == {}


def test_equal_ends_of_neighbours__one_range_in_the_seal() -> None:
    one, two = (Slice(TP, h, OffsetRange(5, 9)) for h in (hashes(0, 3), hashes(4, 7)))
    assert text_of(ends_of([([two], WHOLE_ENDS), ([one], WHOLE_ENDS)])) == f"orders 3 {hashes(0, 7)} 7;"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("orders 3", id="cut off"),
        pytest.param(f"orders 3 {hashes(0, 7)} 7;junk", id="more text"),
        pytest.param(f"orders 3 {hashes(0, 7)} {2**63 - 1};", id="an offset that no log has"),
        pytest.param(f"orders 3 {hashes(0, 7)} {'9' * 5000};", id="an offset of thousands of digits"),
        pytest.param("orders 3 0000000000000009-0000000000000001 7;", id="a range that is inverted"),
    ],
)
def test_a_damaged_seal_is_a_named_error(text: str) -> None:
    assert parsed(text_of(WHOLE_ENDS)) == WHOLE_ENDS
    with pytest.raises(StateFormatError):
        parsed(text)


_LAYERS = st.lists(st.tuples(st.integers(0, CELLS - 1), st.integers(0, CELLS - 1), st.integers(0, 9)), max_size=12)


@given(_LAYERS)
def test_the_lowest_end_of_a_hash_counts(drawn: list[tuple[int, int, int]]) -> None:
    """A replay adds lower ends to a seal (rule: replay-may-defer)."""
    ends = [(hashes(min(a, b), max(a, b)), end) for a, b, end in drawn]
    of_tp = parsed("".join(f"orders 3 {h} {end};" for h, end in ends)).get(TP, ())
    for cell in range(CELLS):
        wanted = min((end for h, end in ends if cell * WIDTH in h), default=None)
        assert next((end for h, end in of_tp if cell * WIDTH in h), None) == wanted
    assert all(left.hi < right.lo for (left, _), (right, _) in pairwise(of_tp))
