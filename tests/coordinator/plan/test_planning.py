"""The plan of a batch: limits, lanes, and that it reads exactly what is owned and not done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.planning import (
    Cutting,
    OwnedRange,
    OwnedRanges,
    backlog,
    bounded,
    levels,
    plan,
    with_positions,
)
from coordinator.progress.growth import Ceilings
from coordinator.progress.ownership import Owned, completed
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cut_bound, cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from progresses import starting_at

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
LOWER, UPPER = cuts(2)


def work(**positions: int) -> OwnedRanges:
    """Partitions a and b, each owned whole, at one position."""
    tps = {"a": A, "b": B}
    ownership = {tps[n]: (Owned(WHOLE, "e.1"),) for n in positions}
    return with_positions(ownership, {tps[n]: starting_at(p) for n, p in positions.items()})


def halves(lower: int, upper: int) -> OwnedRanges:
    progress = Progress((Segment(LOWER, lower), Segment(UPPER, upper)))
    return with_positions({A: (Owned(WHOLE, "e.1"),)}, {A: progress})


def ceilings(*of_halves: int | None) -> OwnedRanges:
    return {A: tuple(OwnedRange(h, 0, "e.1", ceiling) for h, ceiling in zip(cuts(2), of_halves, strict=True))}


@pytest.mark.parametrize(
    ("given_work", "ends", "limit", "expected"),
    [
        pytest.param(work(a=0), {A: 100}, None, {A: 100}, id="without a limit a batch reads to the end"),
        pytest.param(work(a=0), {A: 100}, 100, {A: 100}, id="a limit as large as the backlog changes nothing"),
        pytest.param(work(a=0), {A: 100}, 30, {A: 30}, id="a limit bounds the offsets"),
        pytest.param(
            work(a=0, b=0), {A: 300, B: 100}, 100, {A: 75, B: 25}, id="partitions share in proportion to backlog"
        ),
        pytest.param(work(a=0, b=0), {A: 10**6, B: 1}, 10, {A: 9, B: 1}, id="a small partition is not starved"),
        pytest.param(halves(0, 50), {A: 100}, 20, {A: 40}, id="the lane furthest behind comes first"),
        pytest.param(halves(0, 50), {A: 100}, 30, {A: 55}, id="then both go on together"),
        pytest.param(halves(0, 100), {A: 100}, 10, {A: 20}, id="a lane at the end takes nothing of the limit"),
        pytest.param(ceilings(20, None), {A: 100}, None, {A: 100}, id="a ceiling bounds its own piece only"),
        pytest.param(ceilings(20, None), {A: 100}, 40, {A: 60}, id="others take the rest that a ceiling leaves"),
        pytest.param(ceilings(0, None), {A: 100}, 10, {A: 20}, id="a piece at its ceiling takes nothing of the limit"),
        pytest.param(ceilings(0, 0), {A: 100}, 10, {A: 100}, id="with all at their ceilings there is no work to bound"),
        pytest.param(work(a=7), {A: 100}, 0.001, {A: 8}, id="a tiny limit still moves by one offset"),
    ],
)
def test_levels(
    given_work: OwnedRanges, ends: dict[TopicPartition, int], limit: float | None, expected: dict[TopicPartition, int]
) -> None:
    assert levels(given_work, ends, limit) == expected


@given(
    st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 400),
    st.integers(50, 90),
)
def test_a_limit_bounds_the_sum_of_weights_but_for_one_offset(
    parts: list[tuple[int, bool]], limit: int, end: int
) -> None:
    spaces = cuts(len(parts))
    progress = Progress(tuple(Segment(h, p) for h, (p, _) in zip(spaces, parts, strict=True)))
    owned = tuple(Owned(h, "e.1") for h, (_, mine) in zip(spaces, parts, strict=True) if mine)
    some = with_positions({A: owned}, {A: progress})
    level = levels(some, {A: end}, limit)
    assert backlog(some, level) <= max(limit, 1) + 1e-6 or backlog(some, level) <= 1 + 1e-6
    assert backlog(some, {A: end}) == 0 or backlog(some, level) > 0


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=5),
    st.integers(0, 40),
    st.integers(1, 9),
    st.one_of(st.none(), st.integers(1, 8)),
    st.one_of(st.none(), st.integers(1, 20)),
)
def test_a_plan_reads_every_owned_point_that_is_not_done_exactly_once(
    parts: list[tuple[int, bool]], until: int, slots: int, lanes: int | None, max_records: int | None
) -> None:
    spaces = cuts(len(parts))
    progress = Progress(tuple(Segment(h, p, _ahead(p)) for h, (p, _) in zip(spaces, parts, strict=True)))
    owned = tuple(Owned(h, "e.1") for h, (_, mine) in zip(spaces, parts, strict=True) if mine)
    cutting = Cutting(slots, lanes, max_records_per_partition=max_records)
    planned = plan(with_positions({A: owned}, {A: progress}), {A: until}, cutting).get(A, ())
    probes = [h for n in (1, 2, 3, 5, 7) for h in (cut_bound(i, n) for i in range(n))]
    for probe in probes:
        mine = any(probe in o.hashes for o in owned)
        segment = next(s for s in progress.segments if probe in s.hashes)
        wanted = {
            o for o in range(until) if o >= segment.position and not any(r.start <= o < r.until for r in segment.ics)
        }
        read = [o for lane in planned if probe in lane.hashes for r in lane.offsets for o in range(r.start, r.until)]
        assert sorted(read) == (sorted(wanted) if mine else [])
    assert sum(lane.hashes.size for lane in planned) == sum(o.hashes.size for o in owned)
    offset = StreamOffset(
        "g", "m", topic_ids={A.topic: "id"}, lanes=plan(with_positions({A: owned}, {A: progress}), {A: until}, cutting)
    )
    one_by_one = StreamOffset("g", "m", topic_ids={A.topic: "id"}, lanes=dict(offset.lanes))
    assert offset == one_by_one == StreamOffset.from_json(offset.to_json())
    assert offset.to_json() == one_by_one.to_json()
    assert completed(offset) == completed(one_by_one)


def _ahead(position: int) -> tuple[OffsetRange, ...]:
    return (OffsetRange(position + 3, position + 5),)


def test_an_idle_range_is_one_lane_however_many_lanes_are_asked_for() -> None:
    planned = plan(work(a=5), {A: 5}, Cutting(slots=4, lanes=8))
    assert planned == {A: (Lane(WHOLE, "e.1", 5),)}


def test_one_partition_is_cut_in_as_many_lanes_as_the_slots_need() -> None:
    assert [lane.hashes for lane in plan(work(a=0), {A: 10}, Cutting(slots=4))[A]] == list(cuts(4))


def test_a_piece_is_read_up_to_its_ceiling_and_is_idle_above_it() -> None:
    lanes = plan(ceilings(20, 0), {A: 100}, Cutting(slots=1))[A]
    assert [(lane.position, lane.until) for lane in lanes] == [(0, 20), (0, 0)]


def up_to(lower: int | None, upper: int | None) -> Ceilings:
    return HashMap(zip(cuts(2), (lower, upper), strict=True))


@pytest.mark.parametrize(
    ("own", "of_hashes", "expected"),
    [
        pytest.param(None, HashMap.of(WHOLE, None), [(WHOLE, None)], id="no ceiling"),
        pytest.param(None, HashMap.of(WHOLE, 7), [(WHOLE, 7)], id="one for all hashes"),
        pytest.param(5, HashMap.of(WHOLE, 7), [(WHOLE, 5)], id="its own is lower"),
        pytest.param(
            9,
            up_to(7, None),
            [(cuts(2)[0], 7), (cuts(2)[1], 9)],
            id="cut where they differ",
        ),
        pytest.param(
            None,
            up_to(7, 0),
            [(cuts(2)[0], 7), (cuts(2)[1], 0)],
            id="nothing of one half",
        ),
    ],
)
def test_pieces_are_cut_where_the_ceilings_of_hashes_differ(
    own: int | None, of_hashes: Ceilings, expected: list[tuple[HashRange, int | None]]
) -> None:
    found = bounded([OwnedRange(WHOLE, 3, "e.1", own)], of_hashes)
    assert [(p.hashes, p.ceiling) for p in found] == expected
    assert {(p.position, p.epoch) for p in found} == {(3, "e.1")}


@pytest.mark.parametrize(
    ("partitions", "lanes", "most"),
    [
        pytest.param(1, 512, 4_096, id="many lanes, cut further for one record each"),
        pytest.param(1, 3, 4_096 + 3, id="lanes that do not divide the most"),
        pytest.param(1, None, 4_096, id="no lanes asked for"),
        pytest.param(200, 4_096, 65_536, id="many lanes of many partitions"),
    ],
)
def test_lanes_of_one_record_stay_below_the_most_of_a_batch(partitions: int, lanes: int | None, most: int) -> None:
    whole = {TopicPartition("t", p): (OwnedRange(WHOLE, 0, "e.1"),) for p in range(partitions)}
    planned = plan(whole, dict.fromkeys(whole, 10**9), Cutting(4, lanes, max_records_per_partition=1))
    assert sum(map(len, planned.values())) <= most


def test_lanes_of_one_record_do_not_multiply_by_the_segments_of_a_partition() -> None:
    parts = tuple(OwnedRange(h, at, "e.1") for at, h in enumerate(cuts(1_000)))
    planned = plan({A: parts}, {A: 10**9}, Cutting(4, max_records_per_partition=1))
    assert 4_096 <= len(planned[A]) <= 4_096 + 1_000


def test_a_partition_in_order_is_one_lane() -> None:
    """Rule: partition-order."""
    cutting = Cutting(8, lanes=8, max_records_per_partition=5, in_order=frozenset({"t"}))
    assert [(lane.hashes, lane.until) for lane in plan(work(a=0), {A: 100}, cutting)[A]] == [(WHOLE, 100)]
