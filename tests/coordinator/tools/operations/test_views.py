"""A group's state in `describe`: lanes where segments and owners meet, lag, Kafka's state names."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignment.assignment_text import Ranges
from coordinator.progress.growth import Growth
from coordinator.progress.segments import Rectangle
from coordinator.redis.group_state import GroupState, Handed
from coordinator.tools.fields import Inclusive
from coordinator.tools.operations.views import (
    GroupView,
    GrowthView,
    LaneView,
    MemberView,
    PartitionView,
    SlicesView,
    lag,
    view,
)
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)
LOWER, UPPER = cuts(2)
NOW = 1_000_000


def group_state(
    segments: tuple[tuple[HashRange, int], ...] = (),
    owners: tuple[tuple[HashRange, str, str], ...] = (),
    ends: Mapping[TopicPartition, int] | None = None,
    leases_ms: Mapping[str, int] | None = None,
    meta: Mapping[str, str] | None = None,
    assignment: Mapping[str, Ranges] | None = None,
    hung_ms: Mapping[str, int] | None = None,
    leaving: frozenset[str] = frozenset(),
) -> GroupState:
    return GroupState(
        now_ms=NOW,
        meta=meta or {"nonce": "n"},
        leases_ms=leases_ms or {},
        members={"m-1": {"host": "h"}},
        topics={},
        segments={TP: segments} if segments else {},
        owners={TP: owners} if owners else {},
        stable={TP: min(position for _, position in segments)} if segments else {},
        ends=ends or {},
        assignment=assignment or {},
        hung_ms=hung_ms or {},
        leaving=leaving,
    )


def lanes_of(state: GroupState) -> tuple[LaneView, ...]:
    return view("g", state).partitions[0].lanes


def test_a_group_is_seen_whole() -> None:
    state = group_state(
        segments=((LOWER, 24), (UPPER, 8)),
        owners=((WHOLE, "n.1", "m-1"),),
        ends={TP: 30},
        leases_ms={"m-1": NOW + 7},
        meta={"nonce": "n", "generation": "3", "protocol": "grouped 1", "reset_epoch": "12", "recovering_until": "9"},
        assignment={"m-1": {TP: (LOWER, UPPER)}},
    )

    assert view("the group", state) == GroupView(
        group="the group",
        state="Stable",
        generation=3,
        assignor="grouped 1",
        reset=12,
        recovering_ms=0,
        policy={},
        members=(MemberView("m-1", 7, "working", {"host": "h"}),),
        partitions=(
            PartitionView(
                topic="orders",
                partition=0,
                stable=8,
                end=30,
                lag=22,
                gaps=1,
                lanes=(
                    LaneView("0000000000000000-3fffffffffffffff", 24, 6, "n.1", "m-1"),
                    LaneView("4000000000000000-7fffffffffffffff", 8, 22, "n.1", "m-1"),
                ),
            ),
        ),
    )


def test_a_groups_policies_are_shown_without_copies_that_restrict_nothing() -> None:
    copies = {"cluster:version": "f3bb 2", "cluster:accept.individual.commit": "true"}
    told = {"accept.individual.commit": "true", "cluster:accept.range.fetch:orders": "false"}
    state = replace(group_state(segments=((WHOLE, 5),)), policy={**copies, **told})
    assert view("g", state).policy == told


ONE, TWO = {"m-1": NOW + 1}, {"m-1": NOW + 1, "m-2": NOW + 1}
ALL_TO_ONE: Mapping[str, Ranges] = {"m-1": {TP: (WHOLE,)}}
HALVES: Mapping[str, Ranges] = {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}}
STATES: Mapping[str, tuple[GroupState, str]] = {
    "nobody ever joined": (group_state(), "Empty"),
    "the only lease ended this very moment": (group_state(leases_ms={"m-1": NOW}, assignment=ALL_TO_ONE), "Empty"),
    "a member has joined and nothing is assigned": (group_state(leases_ms=ONE), "PreparingRebalance"),
    "a second member has joined since the assignment": (
        group_state(leases_ms=TWO, assignment=ALL_TO_ONE),
        "PreparingRebalance",
    ),
    "an assigned member leaves": (
        group_state(leases_ms=TWO, assignment=HALVES, leaving=frozenset({"m-2"})),
        "PreparingRebalance",
    ),
    "an assigned member hangs": (
        group_state(leases_ms=TWO, assignment=HALVES, hung_ms={"m-2": NOW - 1}),
        "PreparingRebalance",
    ),
    "all is assigned, a range has not been acquired": (
        group_state(((WHOLE, 5),), ((LOWER, "n.1", "m-1"),), leases_ms=TWO, assignment=HALVES),
        "CompletingRebalance",
    ),
    "all is assigned, and owned only at epochs from before a loss of state": (
        group_state(((WHOLE, 5),), ((WHOLE, "old.1", "m-1"),), leases_ms=ONE, assignment=ALL_TO_ONE),
        "CompletingRebalance",
    ),
    "everybody owns what was assigned": (
        group_state(((WHOLE, 5),), ((LOWER, "n.1", "m-1"), (UPPER, "n.2", "m-2")), leases_ms=TWO, assignment=HALVES),
        "Stable",
    ),
}


@pytest.mark.parametrize(("state", "expected"), STATES.values(), ids=STATES)
def test_state(state: GroupState, expected: str) -> None:
    assert view("g", state).state == expected


def test_a_topic_that_has_grown_since_the_assignment_is_about_to_be_assigned() -> None:
    grown = TopicPartition("orders", 1)
    state = group_state(((WHOLE, 5),), ((WHOLE, "n.1", "m-1"),), leases_ms=ONE, assignment=ALL_TO_ONE)
    state = replace(state, segments={**state.segments, grown: ((WHOLE, 0),)})
    assert view("g", state).state == "PreparingRebalance"


def test_a_member_whose_lease_ended_is_shown_as_long_as_it_owns_something() -> None:
    ended = {"m-2": NOW - 50}
    owning = group_state(segments=((WHOLE, 1),), owners=((UPPER, "n.1", "m-2"),), leases_ms=ended)
    assert view("g", owning).members == (MemberView("m-2", 0, "ended", {}),)
    assert view("g", group_state(leases_ms=ended)).members == ()


LAGS: Mapping[str, tuple[int, int | None, int | None]] = {
    "ten offsets are left": (40, 50, 10),
    "nothing is left": (50, 50, 0),
    "the position has passed the end that was seen last": (51, 50, 0),
    "nobody has looked for the end yet": (40, None, None),
}


@pytest.mark.parametrize(("position", "end", "expected"), LAGS.values(), ids=LAGS)
def test_lag(position: int, end: int | None, expected: int | None) -> None:
    assert lag(position, end) == expected


def test_a_range_without_an_owner_is_a_lane_without_a_member() -> None:
    state = group_state(segments=((WHOLE, 5),), owners=((UPPER, "n.2", "m-1"),))

    assert lanes_of(state) == (
        LaneView(str(LOWER), 5, None, None, None),
        LaneView(str(UPPER), 5, None, "n.2", "m-1"),
    )


def test_two_owners_in_one_segment_are_two_lanes_and_an_owner_may_span_segments() -> None:
    first, middle, last = HashRange(0, 9), HashRange(10, 99), HashRange(100, HASH_MAX)
    state = group_state(
        segments=((HashRange(0, 49), 5), (HashRange(50, HASH_MAX), 7)),
        owners=((first, "n.1", "m-1"), (middle, "n.2", "m-2"), (last, "n.3", "m-1")),
    )

    assert [(lane.hashes, lane.position, lane.member) for lane in lanes_of(state)] == [
        (str(first), 5, "m-1"),
        (str(HashRange(10, 49)), 5, "m-2"),
        (str(HashRange(50, 99)), 7, "m-2"),
        (str(last), 7, "m-1"),
    ]


def test_partitions_ascend_by_number() -> None:
    tps = [TopicPartition("orders", n) for n in (10, 9, 2)]
    state = GroupState(NOW, {}, {}, {}, {}, dict.fromkeys(tps, ((WHOLE, 0),)), {}, {}, {})

    assert [p.partition for p in view("g", state).partitions] == [2, 9, 10]


BOUNDS = st.lists(st.integers(1, HASH_MAX), max_size=6)


@given(segment_bounds=BOUNDS, owner_bounds=BOUNDS, owned=st.lists(st.booleans(), min_size=7, max_size=7))
def test_every_hash_is_in_the_one_lane_that_has_its_position_and_its_owner(
    segment_bounds: list[int], owner_bounds: list[int], owned: list[bool]
) -> None:
    segments = tuple((hashes, 10 + i) for i, hashes in enumerate(WHOLE.cut(segment_bounds)))
    ranges = zip(WHOLE.cut(owner_bounds), owned, strict=False)
    owners = tuple((hashes, f"n.{i}", "m-1") for i, (hashes, is_owned) in enumerate(ranges) if is_owned)

    lanes = [(HashRange.parse(lane.hashes), lane) for lane in lanes_of(group_state(segments, owners))]

    for point in {0, HASH_MAX, *(b + d for b in segment_bounds + owner_bounds for d in (-1, 0))}:
        (seen,) = [lane for hashes, lane in lanes if point in hashes]
        (position,) = [p for hashes, p in segments if point in hashes]
        assert seen.position == position
        assert seen.epoch == next((epoch for hashes, epoch, _ in owners if point in hashes), None)


KEPT = "key order across it is kept"
NOT_ALL = "not a multiple, so keys that moved between older partitions may be out of order"
NO_GRACE = "partitionGrowthGrace is 0, so key order across it is not kept"


@pytest.mark.parametrize(
    ("growth", "stable", "seen"),
    [
        pytest.param(
            Growth("orders", "id", 1, 2, NOW - 1, NOW + 9), 99,
            GrowthView("orders", 1, 2, KEPT, ordered=True, grace_left_ms=9, waiting=True),
            id="in the grace new partitions wait",
        ),
        pytest.param(
            Growth("orders", "id", 1, 2, NOW - 9, NOW, (100,)), 99,
            GrowthView("orders", 1, 2, KEPT, ordered=True, grace_left_ms=0, waiting=True),
            id="then until the older ones are at their recorded ends",
        ),
        pytest.param(
            Growth("orders", "id", 1, 2, NOW - 9, NOW, (100,)), 100,
            GrowthView("orders", 1, 2, KEPT, ordered=True, grace_left_ms=0, waiting=False),
            id="and no longer",
        ),
        pytest.param(
            Growth("orders", "id", 2, 3, NOW - 1, NOW + 9), 99,
            GrowthView("orders", 2, 3, NOT_ALL, ordered=False, grace_left_ms=9, waiting=True),
            id="new partitions wait at any growth",
        ),
        pytest.param(
            Growth("orders", "id", 1, 2, NOW - 1, NOW - 1), 99,
            GrowthView("orders", 1, 2, NO_GRACE, ordered=False, grace_left_ms=0, waiting=False),
            id="where nothing is promised nothing waits",
        ),
    ],
)  # fmt: skip
def test_growth(growth: Growth, stable: int, seen: GrowthView) -> None:
    state = replace(group_state(segments=((WHOLE, stable),)), growths=(growth,))
    assert view("g", state).growths == (seen,)


PINNED = {"nonce": "n", "protocol": "pinned", "generation": "2"}
HALVES = {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}}
OWNED = (LOWER, "n.1", "m-1"), (UPPER, "n.2", "m-2")


@pytest.mark.parametrize(
    ("leases", "owners", "assignment", "expected", "unread"),
    [
        pytest.param(("m-1", "m-2"), OWNED, HALVES, "Stable", (), id="each owns what it names"),
        pytest.param(("m-1",), OWNED, HALVES, "Stable", (f"{TP} {UPPER}",), id="one is gone, and no spare has come"),
        pytest.param(("m-1", "m-2"), OWNED[:1], HALVES, "CompletingRebalance", (), id="one has not acquired yet"),
        pytest.param(
            ("m-1", "m-2"), OWNED, {"m-1": HALVES["m-1"]}, "PreparingRebalance", (f"{TP} {UPPER}",), id="one must join"
        ),
        pytest.param((), OWNED, HALVES, "Empty", (f"{TP} {WHOLE}",), id="all are gone"),
    ],
)
def test_a_pinned_group_is_stable_once_its_members_own_what_they_name(
    leases: tuple[str, ...],
    owners: tuple[tuple[HashRange, str, str], ...],
    assignment: Mapping[str, Ranges],
    expected: str,
    unread: tuple[str, ...],
) -> None:
    ends = {"m-1": NOW - 7, "m-2": NOW - 7} | dict.fromkeys(leases, NOW + 7)
    state = group_state(((WHOLE, 5),), owners, leases_ms=ends, meta=PINNED, assignment=assignment)
    seen = view("g", state)
    assert (seen.state, seen.unread) == (expected, unread)
    assert view("g", replace(state, meta={"nonce": "n", "protocol": "grouped 1"})).unread == ()


def without_order(handed: tuple[Handed, ...], leases_ms: Mapping[str, int], **more: object) -> GroupState:
    """A group without order at offset 40, with the offsets 50 to 54 done above."""
    of_group = group_state(segments=((WHOLE, 40),), ends={TP: 70}, leases_ms=leases_ms)
    done = {TP: (Rectangle(WHOLE, OffsetRange(50, 55)),)}
    return replace(of_group, meta={"nonce": "n", "ordering": "none"}, ics=done, handed={TP: handed}, **more)  # type: ignore[arg-type]


def test_a_group_without_order_shows_who_reads_which_offsets_and_since_when() -> None:
    handed = Handed(OffsetRange(40, 45), "n.9", "m-1"), Handed(OffsetRange(45, 58), "n.10", "m-2")
    state = without_order(handed, TWO, members={"m-1": {"longest.batch.ms": "5000"}}, hung_ms={"m-1": NOW + 2_000})
    seen = view("g", state)
    assert (seen.state, seen.ordering) == ("Stable", "none")
    assert (seen.partitions[0].stable, seen.partitions[0].lag, seen.partitions[0].gaps) == (40, 30, 1)
    assert seen.partitions[0].slices == (
        SlicesView((Inclusive(40, 44),), "n.9", "m-1", 3.0),
        SlicesView((Inclusive(45, 49), Inclusive(55, 57)), "n.10", "m-2", None),
    )


def test_slices_that_are_done_or_void_are_not_shown() -> None:
    done, void = Handed(OffsetRange(50, 55), "n.9", "m-1"), Handed(OffsetRange(60, 65), "other.9", "m-1")
    assert view("g", without_order((done, void), ONE)).partitions[0].slices == ()


def test_a_member_whose_lease_ended_is_shown_while_it_holds_offsets() -> None:
    handed = (Handed(OffsetRange(40, 45), "n.9", "m-2"),)
    (_, gone) = view("g", without_order(handed, {"m-1": NOW + 1, "m-2": NOW - 1})).members
    assert (gone.member, gone.state) == ("m-2", "ended")
    assert [m.member for m in view("g", without_order((), {"m-1": NOW + 1, "m-2": NOW - 1})).members] == ["m-1"]
