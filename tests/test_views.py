"""What `describe` shows of a group's state: lanes where segments and owners meet, lag, Kafka's state names."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group_state import GroupState
from coordinator.key_hash import cuts
from coordinator.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.subscription import TopicPartition
from coordinator.views import GroupView, LaneView, MemberView, PartitionView, lag, view

TP = TopicPartition("orders", 0)
LOWER, UPPER = cuts(2)
NOW = 1_000_000


def group_state(
    segments: tuple[tuple[HashRange, int], ...] = (),
    owners: tuple[tuple[HashRange, str, str], ...] = (),
    ends: Mapping[TopicPartition, int] | None = None,
    leases_ms: Mapping[str, int] | None = None,
) -> GroupState:
    return GroupState(
        now_ms=NOW,
        meta={},
        leases_ms=leases_ms or {},
        members={"m-1": {"host": "h"}},
        topics={},
        segments={TP: segments} if segments else {},
        owners={TP: owners} if owners else {},
        stable={TP: min(position for _, position in segments)} if segments else {},
        ends=ends or {},
    )


def lanes_of(state: GroupState) -> tuple[LaneView, ...]:
    return view("g", state).partitions[0].lanes


def test_a_group_is_seen_whole() -> None:
    state = group_state(
        segments=((LOWER, 24), (UPPER, 8)), owners=((WHOLE, "n.1", "m-1"),), ends={TP: 30}, leases_ms={"m-1": NOW + 7}
    )

    assert view("the group", state) == GroupView(
        group="the group",
        state="Stable",
        members=(MemberView("m-1", 7, {"host": "h"}),),
        partitions=(
            PartitionView(
                topic="orders",
                partition=0,
                stable=8,
                end=30,
                lag=22,
                lanes=(
                    LaneView("0000000000000000-3fffffffffffffff", 24, 6, "n.1", "m-1"),
                    LaneView("4000000000000000-7fffffffffffffff", 8, 22, "n.1", "m-1"),
                ),
            ),
        ),
    )


STATES: Mapping[str, tuple[Mapping[str, int], str]] = {
    "nobody ever joined": ({}, "Empty"),
    "the only lease ended this very moment": ({"m-1": NOW}, "Empty"),
    "a lease runs for one more millisecond": ({"m-1": NOW + 1}, "Stable"),
    "one of two leases runs": ({"m-1": NOW - 1, "m-2": NOW + 1}, "Stable"),
}


@pytest.mark.parametrize(("leases_ms", "state"), STATES.values(), ids=STATES)
def test_state(leases_ms: Mapping[str, int], state: str) -> None:
    assert view("g", group_state(leases_ms=leases_ms)).state == state


def test_a_member_whose_lease_ended_is_shown_as_long_as_it_owns_something() -> None:
    ended = {"m-2": NOW - 50}
    owning = group_state(segments=((WHOLE, 1),), owners=((UPPER, "n.1", "m-2"),), leases_ms=ended)
    assert view("g", owning).members == (MemberView("m-2", 0, {}),)
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


def test_a_range_that_nobody_owns_is_a_lane_without_a_member() -> None:
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
