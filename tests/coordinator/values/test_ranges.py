"""Ranges of hashes and sets of offsets, against sets of plain numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import StateFormatError
from coordinator.values.ranges import (
    HASH_MAX,
    OFFSET_MAX,
    WHOLE,
    HashRange,
    OffsetRange,
    disjoint,
    is_number,
    offsets_of,
    parted,
    subtract,
    union,
)

MOST = 40
PAIRS = st.tuples(st.integers(0, MOST), st.integers(0, MOST)).filter(lambda pair: pair[0] != pair[1])
OFFSETS = PAIRS.map(lambda pair: OffsetRange(min(pair), max(pair)))
HASHES = st.tuples(st.integers(0, MOST), st.integers(0, MOST)).map(lambda pair: HashRange(min(pair), max(pair)))


def numbers(ranges: tuple[OffsetRange, ...] | list[OffsetRange]) -> set[int]:
    return {offset for r in ranges for offset in range(r.start, r.until)}


@given(st.lists(OFFSETS))
def test_a_union_holds_the_same_offsets_in_ranges_that_do_not_touch(ranges: list[OffsetRange]) -> None:
    made = union(ranges)
    assert numbers(made) == numbers(ranges)
    assert disjoint(made)
    assert union(made) == made


@given(OFFSETS, st.lists(OFFSETS).map(union))
def test_a_difference_holds_the_offsets_that_are_not_done(wanted: OffsetRange, done: tuple[OffsetRange, ...]) -> None:
    left = subtract(wanted, done)
    assert numbers(left) == numbers((wanted,)) - numbers(done)
    assert disjoint(left)


@given(st.lists(OFFSETS).map(union), st.integers(0, MOST))
def test_parted_offsets_lie_before_the_bound_or_from_it_on(offsets: tuple[OffsetRange, ...], at: int) -> None:
    before, after = parted(offsets, at)
    assert numbers(before) == {offset for offset in numbers(offsets) if offset < at}
    assert numbers(after) == {offset for offset in numbers(offsets) if offset >= at}


@pytest.mark.parametrize(
    ("ranges", "apart"),
    [
        pytest.param([(0, 2), (3, 4)], True, id="a gap between them"),
        pytest.param([(0, 2), (2, 4)], False, id="they touch"),
        pytest.param([(3, 4), (0, 2)], False, id="they descend"),
    ],
)
def test_disjoint_ranges_ascend_and_do_not_touch(ranges: list[tuple[int, int]], *, apart: bool) -> None:
    assert disjoint([OffsetRange(*pair) for pair in ranges]) == apart


def test_offset_ranges_are_written_inclusive() -> None:
    assert str(OffsetRange(45, 51)) == "45-50"
    assert offsets_of("45-47 50-50") == (OffsetRange(45, 48), OffsetRange(50, 51))


@pytest.mark.parametrize("text", ["", "5", "5-4", "05-6", "1-2  4-5", "4-5 1-2", "1-3 3-4", f"0-{OFFSET_MAX}"])
def test_a_text_that_is_no_set_of_offsets_is_refused(text: str) -> None:
    with pytest.raises(StateFormatError):
        offsets_of(text)


@pytest.mark.parametrize(("start", "until"), [(-1, 3), (3, 3), (4, 3), (0, OFFSET_MAX + 1)])
def test_an_offset_range_is_not_empty_and_within_bounds(start: int, until: int) -> None:
    with pytest.raises(StateFormatError):
        OffsetRange(start, until)


@given(HASHES, HASHES)
def test_an_intersection_holds_the_hashes_of_both(one: HashRange, other: HashRange) -> None:
    common = one.intersection(other)
    both = {h for h in range(MOST + 1) if h in one and h in other}
    assert both == (set() if common is None else set(range(common.lo, common.hi + 1)))


@given(HASHES, st.lists(st.integers(0, MOST + 1)))
def test_the_pieces_of_a_cut_tile_the_range_and_begin_at_the_bounds(hashes: HashRange, bounds: list[int]) -> None:
    pieces = hashes.cut(bounds)
    assert [h for piece in pieces for h in range(piece.lo, piece.hi + 1)] == list(range(hashes.lo, hashes.hi + 1))
    assert {piece.lo for piece in pieces} == {hashes.lo} | {bound for bound in bounds if bound in hashes}


@given(st.integers(0, HASH_MAX), st.integers(0, HASH_MAX))
def test_a_hash_range_comes_back_from_its_text(one: int, other: int) -> None:
    hashes = HashRange(min(one, other), max(one, other))
    assert HashRange.parse(str(hashes)) == hashes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0-f", id="too few digits"),
        pytest.param("0000000000000001-0000000000000000", id="inverted"),
        pytest.param("0000000000000000-8000000000000000", id="beyond 63 bits"),
        pytest.param("0000000000000000-7FFFFFFFFFFFFFFF", id="capital letters"),
    ],
)
def test_a_text_that_is_no_hash_range_is_refused(text: str) -> None:
    with pytest.raises(StateFormatError):
        HashRange.parse(text)


def test_the_whole_space_has_a_share_of_one() -> None:
    assert WHOLE.size == 2**63
    assert WHOLE.share == 1
    assert HashRange(0, HASH_MAX // 4).share == 0.25


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", True), ("17", True), (str(OFFSET_MAX), True), (str(OFFSET_MAX + 1), False), ("017", False), ("-1", False)],
)
def test_a_number_has_no_zeros_in_front_and_is_an_offset(text: str, *, number: bool) -> None:
    assert is_number(text) == number
