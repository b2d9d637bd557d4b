"""`rack-aware`: balanced as `grouped`, with as many key hashes as possible in the rack of their leader."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor_groups import Group, any_group, changed, moved, shares, text
from coordinator.assignment.assignors.assignor import Assignment, Subscriber, topic_partitions
from coordinator.assignment.assignors.check import check
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.assignors.rack_aware import RackAware, Racks, hashes_at_home, rack_of
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition


def member(name: str, rack: str, capacity: int = 1, *, sharing: bool = True) -> Subscriber:
    return Subscriber(name, capacity, frozenset({"t"}), sharing, metadata={"rack": rack} if rack else {})


def led_by(*racks: str) -> Racks:
    return {TopicPartition("t", p): rack for p, rack in enumerate(racks) if rack}


@pytest.mark.parametrize(
    ("members", "racks", "expected"),
    [
        pytest.param(
            [member("m0", "b"), member("m1", "a")],
            ("a", "a", "b", "b"),
            {"t-0": "m1", "t-1": "m1", "t-2": "m0", "t-3": "m0"},
            id="two racks, each with its half",
        ),
        pytest.param(
            [member("m0", "a"), member("m1", "b")],
            ("a", "a", "a", "a"),
            {"t-0": "m0", "t-1": "m0", "t-2": "m1", "t-3": "m1"},
            id="one rack leads all: capacity comes first",
        ),
        pytest.param(
            [member("m0", "a"), member("m1", "a"), member("m2", "b"), member("m3", "b")],
            ("b", "a"),
            {"t-0": "m2<1/2 m3", "t-1": "m0<1/2 m1"},
            id="more members than partitions: mates share",
        ),
        pytest.param(
            [member("m0", "a", 3), member("m1", "b", 1)],
            ("b", "a", "a", "a"),
            {"t-0": "m1", "t-1": "m0", "t-2": "m0", "t-3": "m0"},
            id="capacities",
        ),
        pytest.param(
            [member("m0", ""), member("m1", "b")],
            ("b", "", "", "b"),
            {"t-0": "m1", "t-1": "m0", "t-2": "m0", "t-3": "m1"},
            id="a member and brokers without a rack",
        ),
    ],
)
def test_members_get_partitions_of_their_rack(
    members: list[Subscriber], racks: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert text(RackAware(led_by(*racks)).assign(members, {"t": len(racks)}, {})) == expected


def test_without_racks_it_is_grouped() -> None:
    for seed in range(200):
        group = any_group(random.Random(seed))
        expected = Grouped().assign(group.members, group.partitions, {})
        assert RackAware().assign(group.members, group.partitions, {}) == expected


def test_leaders_that_change_racks_move_only_what_comes_home() -> None:
    members, count = [member("m0", "a"), member("m1", "b")], {"t": 6}
    before = RackAware(led_by(*"aaabbb")).assign(members, count, {})
    after = RackAware(led_by(*"baaabb")).assign(members, count, before)
    assert text(after) == {"t-0": "m1", "t-1": "m0", "t-2": "m0", "t-3": "m0", "t-4": "m1", "t-5": "m1"}
    assert moved(before, after) == 2


@pytest.mark.parametrize(
    ("fields", "rack"),
    [
        ({"rack": "a", "label.rack": "b", "label.zone": "c"}, "a"),
        ({"rack": "", "label.rack": "b", "label.zone": "c"}, "b"),
        ({"label.zone": "c"}, "c"),
        ({"label.team": "d"}, ""),
    ],
)
def test_the_rack_of_a_member_is_its_option_else_a_label(fields: dict[str, str], rack: str) -> None:
    assert rack_of(Subscriber("m", 1, frozenset(), metadata=fields)) == rack


def in_racks(rnd: random.Random, group: Group) -> tuple[Group, Racks]:
    """Random racks of members and leaders; some have none."""
    racks = ["a", "b", "c", ""][-rnd.randint(1, 4) :]
    members = [replace(m, metadata={"rack": rnd.choice(racks)}) for m in group.members]
    partitions = [tp for t, count in group.partitions.items() for tp in topic_partitions(t, count)]
    led = {tp: rack for tp in partitions if (rack := rnd.choice(racks))}
    return Group(members, group.partitions), led


@given(seed=st.integers(0, 2**32), equal=st.booleans())
def test_any_group_is_balanced_as_by_grouped_and_nearer_to_its_leaders(seed: int, equal: bool) -> None:
    rnd = random.Random(seed)
    before: Assignment = {}
    group = any_group(rnd, equal=equal)
    for _ in range(3):
        placed, racks = in_racks(rnd, group)
        after = RackAware(racks).assign(placed.members, placed.partitions, before)
        grouped = Grouped().assign(placed.members, placed.partitions, before)
        check(after, placed.members, placed.partitions)
        assert near(shares(after), shares(grouped))
        home, theirs = (hashes_at_home(made, placed.members, racks) for made in (after, grouped))
        assert home >= theirs
        again = RackAware(racks).assign(placed.members[::-1], placed.partitions, after)
        assert again == after or hashes_at_home(again, placed.members, racks) > home
        group, before = changed(rnd, placed), after


def near(some: dict[str, int], others: dict[str, int]) -> bool:
    """Equal but for roundings, of less than a hash for each part."""
    return some.keys() == others.keys() and all(abs(some[m] - others[m]) <= 1_000 for m in some)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_all_hashes_are_at_home_if_each_rack_has_its_share_of_the_capacity(
    racks: int, each: int, mates: int, rnd: random.Random
) -> None:
    names = [f"r{i}" for i in range(racks)]
    members = [member(f"m{i:02}", rack) for i, rack in enumerate(names * mates)]
    led = rnd.sample(names * each, racks * each)
    assignment = RackAware(led_by(*led)).assign(members, {"t": len(led)}, {})
    assert hashes_at_home(assignment, members, led_by(*led)) == WHOLE.size * len(led)
