"""The pieces of a stretch tile it, whatever its first block shows."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache.blocks import Block
from spark_coop_source.cache.pieces import FIRST, LONGEST, SharedPieces

stretches = st.builds(
    lambda start, length: OffsetRange(start, start + length), st.integers(0, 2**40), st.integers(1, 20 * FIRST)
)


def test_pieces_tile_the_stretch_and_the_first_one_is_short() -> None:
    pieces = SharedPieces(OffsetRange(5, 5 + 3 * FIRST + 1), length=FIRST)
    starts = [5 + n * FIRST for n in range(4)]
    assert [pieces.at(start) for start in starts] == [
        *(OffsetRange(start, start + FIRST) for start in starts[:3]),
        OffsetRange(starts[3], starts[3] + 1),
    ]
    assert list(pieces.behind(5)) == starts[1:]
    assert list(pieces.behind(5 + FIRST - 1)) == starts[1:]
    assert list(pieces.behind(5 + FIRST)) == starts[2:]
    assert list(pieces.behind(pieces.stretch.until)) == [], "where the task has read everything"


def test_before_the_first_block_only_the_first_piece_is_known() -> None:
    pieces = SharedPieces(OffsetRange(0, 5 * FIRST))
    assert pieces.at(FIRST - 1) == OffsetRange(0, FIRST)
    assert pieces.at(FIRST) == OffsetRange(FIRST, 5 * FIRST)
    assert list(pieces.behind(0)) == []


def test_the_first_block_shows_how_many_offsets_a_piece_has() -> None:
    pieces = SharedPieces(OffsetRange(0, 10**9))
    block = Block("s", OffsetRange(0, 5_000), 500_000)
    assert pieces.learned(block, 10_000_000).length == 100_000
    assert pieces.learned(block, 10_000_000).learned(Block("s", OffsetRange(0, 10), 1), 1).length == 100_000, "once"
    assert pieces.learned(Block("s", OffsetRange(5_000, 5_001), 1), 10_000_000).length == 0, "not the first block"
    assert pieces.learned(block, 1).length == FIRST
    assert pieces.learned(Block("s", OffsetRange(0, 5_000), 0), 10_000_000).length == LONGEST, "a filter drops all"


@given(stretches, st.integers(0, 2**20), st.integers(1, 2**24), st.data())
def test_each_offset_is_in_one_piece(stretch: OffsetRange, size: int, most: int, data: st.DataObject) -> None:
    block = Block("s", OffsetRange(stretch.start, min(stretch.start + 5_000, stretch.until)), size)
    pieces = SharedPieces(stretch).learned(block, most)
    starts = [stretch.start, *pieces.behind(stretch.start)]
    assert [pieces.at(start).start for start in starts] == starts
    assert [pieces.at(start).until for start in starts] == [*starts[1:], stretch.until]
    position = data.draw(st.integers(stretch.start, stretch.until - 1))
    piece = pieces.at(position)
    assert piece.start <= position < piece.until
    assert list(pieces.behind(position)) == [start for start in starts if start > position]
