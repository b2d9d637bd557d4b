"""Hash maps, against a plain dict of the points of a small space."""

from itertools import pairwise
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from coordinator.progress.ownership import Owned
from coordinator.values.hash_map import HashMap, missing, overlap, touching
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange

T = TypeVar("T")
SPACE = 12  # hashes at the bottom, and the same number at the top
HASHES = st.sampled_from([*range(SPACE), *range(HASH_MAX - SPACE + 1, HASH_MAX + 1)])
RANGES = st.tuples(HASHES, HASHES).map(lambda pair: HashRange(min(pair), max(pair)))
POINTS = [*range(SPACE), SPACE, *range(HASH_MAX - SPACE + 1, HASH_MAX + 1)]


@st.composite
def maps(draw: st.DrawFn) -> HashMap[str]:
    bounds = sorted(draw(st.sets(HASHES)) | {0})
    pieces = WHOLE.cut(bounds)
    return HashMap((h, value) for h in pieces if (value := draw(st.sampled_from(["", "a", "b", "c"]))))


def points(of: HashMap[T]) -> dict[int, T]:
    """The value of each point that has one; fails if ranges overlap or do not ascend."""
    last = -1
    for hashes, _ in of:
        assert last < hashes.lo
        last = hashes.hi
    return {p: value for hashes, value in of for p in POINTS if p in hashes}


@given(maps(), RANGES)
def test_within(some: HashMap[str], hashes: HashRange) -> None:
    assert points(some.within(hashes)) == {p: value for p, value in points(some).items() if p in hashes}


@given(maps(), maps())
def test_minus(some: HashMap[str], other: HashMap[str]) -> None:
    assert points(some.minus(other)) == {p: value for p, value in points(some).items() if p not in points(other)}


@given(maps(), maps())
def test_overlay(some: HashMap[str], other: HashMap[str]) -> None:
    assert points(some.overlay(other)) == points(some) | points(other)


@given(maps())
def test_coalesced(some: HashMap[str]) -> None:
    made = some.coalesced()
    assert points(made) == points(some)
    neighbours = [(a, b) for (h, a), (k, b) in pairwise(made) if h.hi + 1 == k.lo]
    assert all(a != b for a, b in neighbours)
    assert type(made) is HashMap


@given(RANGES, st.sampled_from("ab"))
def test_of(hashes: HashRange, value: str) -> None:
    assert points(HashMap.of(hashes, value)) == {p: value for p in POINTS if p in hashes}


def test_it_equals_the_tuple_of_its_pairs() -> None:
    assert HashMap.of(WHOLE, 7) == ((WHOLE, 7),)


@given(maps(), RANGES)
def test_filled(some: HashMap[str], hashes: HashRange) -> None:
    expected = {p: points(some).get(p, "z") for p in POINTS if p in hashes}
    assert points(some.filled(hashes, "z")) == expected


@given(st.lists(st.tuples(RANGES, st.sampled_from("abc"))))
def test_stacked(values: list[tuple[HashRange, str]]) -> None:
    stacked = HashMap.stacked(values)
    expected = {p: tuple(value for hashes, value in values if p in hashes) for p in POINTS}
    assert points(stacked) == {p: stack for p, stack in expected.items() if stack}
    assert {h.lo for h, _ in values} <= {h.lo for h, _ in stacked}
    assert {h.hi for h, _ in values} <= {h.hi for h, _ in stacked}


@given(RANGES, st.lists(RANGES))
def test_missing(hashes: HashRange, some: list[HashRange]) -> None:
    rest = points(HashMap((part, "a") for part in missing(hashes, some)))
    assert rest.keys() == {p for p in POINTS if p in hashes and not any(p in h for h in some)}


@given(maps(), RANGES)
def test_touching(some: HashMap[str], hashes: HashRange) -> None:
    rows = tuple(Owned(h, value) for h, value in some)
    assert touching(rows, hashes) == tuple(row for row in rows if row.hashes.intersection(hashes))


def test_overlap() -> None:
    low, middle, high = HashRange(0, 4), HashRange(4, 7), HashRange(8, 9)
    assert overlap([low, high]) is None
    assert overlap([middle, high]) is None
    assert overlap([low, middle, high]) == (low, middle)
    assert overlap([high, low]) == (high, low)
    assert overlap([]) is None
