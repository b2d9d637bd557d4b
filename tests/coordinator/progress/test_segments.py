"""`Progress` against its oracle: a set of done (offset, hash) points."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.workload import coalesced
from coordinator.errors import StateFormatError
from coordinator.progress.segments import Progress, Rectangle, Segment
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange, union
from progresses import added, ics_text, positions_text, starting_at

SPAN, CELLS = 12, 6
# Six cells of a tiny hash space, spread over the real one, so that both its ends are tested.
BOUNDS = [0, 1, 2, HASH_MAX // 2, HASH_MAX - 1, HASH_MAX, HASH_MAX + 1]

Drawn = tuple[Rectangle, frozenset[tuple[int, int]]]
"""A rectangle, and the points of (offset, cell) in it."""


def cells(first: int, last: int) -> HashRange:
    return HashRange(BOUNDS[first], BOUNDS[last + 1] - 1)


@st.composite
def rectangles(draw: st.DrawFn) -> Drawn:
    first, last = sorted((draw(st.integers(0, CELLS - 1)), draw(st.integers(0, CELLS - 1))))
    start, end = sorted((draw(st.integers(0, SPAN - 1)), draw(st.integers(0, SPAN - 1))))
    points = frozenset((o, c) for o in range(start, end + 1) for c in range(first, last + 1))
    return Rectangle(cells(first, last), OffsetRange(start, end + 1)), points


def done_points(progress: Progress) -> set[tuple[int, int]]:
    points = set()
    for s in progress.segments:
        for c in range(CELLS):
            if BOUNDS[c] in s.hashes:
                points |= {(o, c) for o in range(SPAN) if o < s.position or any(r.start <= o < r.until for r in s.ics)}
    return points


histories = st.lists(rectangles(), max_size=12)


@given(histories)
def test_add_holds_exactly_the_points_that_were_added(history: list[Drawn]) -> None:
    progress, oracle = starting_at(0), set[tuple[int, int]]()
    for rectangle, points in history:
        progress, oracle = added(progress, rectangle), oracle | points
        assert done_points(progress) == oracle
        assert progress.tiles


@given(histories, histories)
def test_all_at_once_is_the_same_as_one_after_the_other(before: list[Drawn], more: list[Drawn]) -> None:
    progress = starting_at(0)
    for rectangle, _ in before:
        progress = added(progress, rectangle)
    one_by_one = progress
    for rectangle, _ in more:
        one_by_one = added(one_by_one, rectangle)
    assert progress.add_all((r.hashes, (r.offsets,)) for r, _ in more) == one_by_one


@given(histories)
def test_stable_is_the_first_offset_that_some_hash_has_not_done(history: list[Drawn]) -> None:
    progress, oracle = starting_at(0), set[tuple[int, int]]()
    for rectangle, points in history:
        progress, oracle = added(progress, rectangle), oracle | points
    assert progress.stable == next((o for o in range(SPAN) if any((o, c) not in oracle for c in range(CELLS))), SPAN)


@given(histories, st.randoms(use_true_random=False))
def test_the_order_and_repetition_of_additions_do_not_matter(history: list[Drawn], rng: random.Random) -> None:
    shuffled = [*history, *history]
    rng.shuffle(shuffled)
    one, other = starting_at(0), starting_at(0)
    for rectangle, _ in history:
        one = added(one, rectangle)
    for rectangle, _ in shuffled:
        other = added(other, rectangle)
    assert coalesced(one) == coalesced(other)


@given(histories)
def test_parsing_the_text_form_returns_the_same_progress(history: list[Drawn]) -> None:
    progress = starting_at(0)
    for rectangle, _ in history:
        progress = added(progress, rectangle)
    assert Progress.parse(positions_text(progress), ics_text(progress)) == progress


@given(histories, rectangles())
def test_within_keeps_the_points_of_those_hashes_only(history: list[Drawn], window: Drawn) -> None:
    progress = starting_at(0)
    for rectangle, _ in history:
        progress = added(progress, rectangle)
    kept = progress.within(window[0].hashes)
    columns = {c for _, c in window[1]}
    assert done_points(kept) == {(o, c) for o, c in done_points(progress) if c in columns}


def inclusive(*ranges: str) -> tuple[OffsetRange, ...]:
    return union(OffsetRange.parse(r) for r in ranges)


# The draft KIP's worked examples. Its last committed offset plus 1 is our position (rule: half-open-offsets).
@pytest.mark.parametrize(
    ("position", "ics", "commit", "then"),
    [
        pytest.param(43, ["45-47", "50-50"], "48-49", (43, ["45-50"]), id="a commit between two ICs joins them"),
        pytest.param(
            43, ["45-47", "50-50"], "43-44", (48, ["50-50"]), id="a commit in the gap moves the position over the IC"
        ),
        pytest.param(43, ["45-47"], "40-41", (43, ["45-47"]), id="a commit wholly below the position changes nothing"),
        pytest.param(43, ["45-47"], "40-43", (44, ["45-47"]), id="a commit that straddles the position is trimmed"),
        pytest.param(43, ["45-47"], "43-60", (61, []), id="a commit over everything leaves no IC"),
    ],
)
def test_worked_examples_of_commits(position: int, ics: list[str], commit: str, then: tuple[int, list[str]]) -> None:
    after = Segment(WHOLE, position, inclusive(*ics)).add(inclusive(commit))
    assert (after.position, after.ics) == (then[0], inclusive(*then[1]))


def test_worked_example_of_gap_amending() -> None:
    segment = Segment(WHOLE, 41, inclusive("43-45", "48-49"))
    missing = segment.remaining(OffsetRange(40, 51))
    assert [str(r) for r in missing] == ["41-42", "46-47", "50-50"]
    assert segment.add(missing) == Segment(WHOLE, 51)


def test_two_interleaved_keys_need_two_positions_and_no_individual_commit() -> None:
    lower, upper = (Rectangle(h, OffsetRange(0, 50)) for h in (cells(0, 2), cells(3, 5)))
    progress = added(added(starting_at(40), lower), upper)
    assert ics_text(progress) == {}
    assert coalesced(progress) == starting_at(50)


@pytest.mark.parametrize(
    "positions",
    [
        pytest.param({str(cells(0, 3)): "1", str(cells(2, 5)): "1"}, id="overlapping segments"),
        pytest.param({"0-1": "5"}, id="hashes that are not 16 digits"),
        pytest.param({str(WHOLE): "-1"}, id="a negative position"),
        pytest.param({str(WHOLE): "9223372036854775808"}, id="a position beyond 2^63"),
        pytest.param({str(WHOLE): "1e3"}, id="a position that is not a whole number"),
        pytest.param({"ffffffffffffffff-ffffffffffffffff": "1"}, id="a hash beyond the space"),
        pytest.param({"0000000000000002-0000000000000001": "1"}, id="an inverted range"),
    ],
)
def test_damaged_text_is_refused_by_name(positions: dict[str, str]) -> None:
    with pytest.raises(StateFormatError):
        Progress.parse(positions)


def test_a_hole_between_segments_is_seen() -> None:
    assert not Progress((Segment(cells(0, 1), 1), Segment(cells(3, 5), 1))).tiles
    assert Progress((Segment(cells(0, 2), 1), Segment(cells(3, 5), 1))).tiles
