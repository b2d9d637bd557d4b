"""`grouped`: near proportions, exact for equal subscriptions; whole partitions first, few splits, little moved."""

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import lcm

import pytest

from assignor_groups import (
    SPACE,
    Group,
    any_group,
    changed,
    forced,
    least_moved,
    moved,
    shares,
    some_members,
    splits,
    text,
    whole,
)
from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.assignment.assignors.check import check
from coordinator.assignment.assignors.grouped import Grouped
from seeds import many

GROUPED = Grouped()


def m(name: str, *topics: str, capacity: int = 1, sharing: bool = True) -> Subscriber:
    return Subscriber(name, capacity, frozenset(topics), sharing)


@pytest.mark.parametrize(
    ("members", "partitions", "expected"),
    [
        pytest.param(some_members(1, "t"), {"t": 2}, {"t-0": "m0", "t-1": "m0"}, id="one member has everything"),
        pytest.param(
            some_members(2, "t"), {"t": 2}, {"t-0": "m0", "t-1": "m1"}, id="as many as partitions have one whole each"
        ),
        pytest.param(
            some_members(3, "t"), {"t": 1}, {"t-0": "m0<1/3 m1<2/3 m2"}, id="three members share one partition"
        ),
        pytest.param(
            some_members(2, "t"),
            {"t": 3},
            {"t-0": "m0", "t-1": "m1", "t-2": "m0<1/2 m1"},
            id="only the partitions left over from whole ones are split",
        ),
        pytest.param(
            [m("a", "t", capacity=3), m("b", "t")], {"t": 1}, {"t-0": "a<3/4 b"}, id="a range in proportion to capacity"
        ),
        pytest.param(
            [m("a", "t", capacity=3), m("b", "t")],
            {"t": 4},
            {"t-0": "a", "t-1": "a", "t-2": "a", "t-3": "b"},
            id="whole partitions in proportion to capacity",
        ),
        pytest.param(
            [m("a", "t", sharing=False), m("b", "t")],
            {"t": 1},
            {"t-0": "b"},
            id="a member without sharing gets nothing rather than starve one that shares",
        ),
        pytest.param(
            [m("a", "t", sharing=False), m("b", "t")],
            {"t": 3},
            {"t-0": "a", "t-1": "b", "t-2": "b"},
            id="a member without sharing gets whole partitions up to its share",
        ),
        pytest.param(
            some_members(2, "t", sharing=False),
            {"t": 1},
            {"t-0": "m0"},
            id="a partition without sharing goes whole to one member",
        ),
        pytest.param(
            [m("a", "t", "u"), m("b", "t"), m("c", "u")],
            {"t": 3, "u": 3},
            {"t-0": "a", "t-1": "b", "t-2": "b", "u-0": "a", "u-1": "c", "u-2": "c"},
            id="a member of both topics takes the partitions that others leave",
        ),
        pytest.param(
            [m("a", "t", "u"), m("b", "t")],
            {"t": 1, "u": 2},
            {"t-0": "b", "u-0": "a", "u-1": "a"},
            id="a topic is left to members that have no other",
        ),
        pytest.param(
            [m("a", "t", "gone")], {"t": 1}, {"t-0": "a"}, id="a topic that does not exist yet has no partitions"
        ),
        pytest.param(
            [m("a", "t")], {"t": 1, "other": 5}, {"t-0": "a"}, id="a topic without subscribers is not assigned"
        ),
        pytest.param([], {"t": 1}, {}, id="no members, nothing assigned"),
    ],
)
def test_from_nothing(members: list[Subscriber], partitions: dict[str, int], expected: dict[str, str]) -> None:
    assignment = GROUPED.assign(members, partitions, {})
    check(assignment, members, partitions if members else {})
    assert text(assignment) == expected
    assert set(assignment) == {m.member for m in members}


def test_a_second_member_takes_half_of_one_partition_and_leaves_it_again() -> None:
    one = GROUPED.assign(some_members(1, "t"), {"t": 1}, {})
    two = GROUPED.assign(some_members(2, "t"), {"t": 1}, one)
    assert text(two) == {"t-0": "m0<1/2 m1"}
    assert GROUPED.assign(some_members(1, "t"), {"t": 1}, two) == one


def test_a_third_member_takes_only_its_third() -> None:
    two = GROUPED.assign(some_members(2, "t"), {"t": 1}, {})
    three = GROUPED.assign(some_members(3, "t"), {"t": 1}, two)
    assert text(three) == {"t-0": "m0<1/3 m2<2/3 m1"}


def test_new_partitions_move_nothing_that_need_not() -> None:
    two = GROUPED.assign(some_members(2, "t"), {"t": 4}, {})
    grown = GROUPED.assign(some_members(2, "t"), {"t": 8}, two)
    assert moved(two, grown) == 4


def test_other_topics_and_lost_members_in_previous_are_ignored() -> None:
    strange = GROUPED.assign([m("x", "t"), m("m0", "u")], {"t": 3, "u": 2}, {})
    assert GROUPED.assign(some_members(2, "t"), {"t": 3}, strange) == GROUPED.assign(some_members(2, "t"), {"t": 3}, {})


@pytest.mark.parametrize("count", [1, 2, 3, 5, 10, 30])
@pytest.mark.parametrize("partitions", [1, 2, 3, 12, 100])
def test_a_join_or_a_leave_moves_less_than_twice_the_necessary_share(count: int, partitions: int) -> None:
    few = GROUPED.assign(some_members(count, "t"), {"t": partitions}, {})
    more = GROUPED.assign(some_members(count + 1, "t"), {"t": partitions}, few)
    fewer = GROUPED.assign(some_members(count, "t"), {"t": partitions}, more)
    quota = Fraction(partitions, count + 1)
    assert quota - 1 < moved(few, more) < 2 * quota
    assert quota - 1 < moved(more, fewer) < 2 * quota


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_joining_one_partition_moves_the_newcomers_share_and_hardly_anything_else(count: int) -> None:
    """Earlier bounds are rounded to units: of 16 for each capacity."""
    few = GROUPED.assign(some_members(count, "t"), {"t": 1}, {})
    more = GROUPED.assign(some_members(count + 1, "t"), {"t": 1}, few)
    assert moved(few, more) <= Fraction(shares(more)[f"m{count}"], SPACE) + Fraction(1, 16)


def test_between_whole_shares_exactly_the_necessary_partitions_move() -> None:
    twelve = GROUPED.assign(some_members(12, "t"), {"t": 60}, {})
    ten = GROUPED.assign(some_members(10, "t"), {"t": 60}, twelve)
    assert moved(twelve, ten) == 10
    assert moved(ten, GROUPED.assign(some_members(12, "t"), {"t": 60}, ten)) == 10


def histories(
    seeds: range, steps: int, *, equal: bool, all_share: bool
) -> Iterator[tuple[Group, Assignment, Assignment]]:
    """(group, previous assignment, assignment) of groups that change again and again."""
    for seed in seeds:
        rnd = random.Random(seed)
        group = any_group(rnd, equal=equal, all_share=all_share)
        before: Assignment = {}
        for _ in range(steps):
            after = GROUPED.assign(group.members, group.partitions, before)
            yield group, before, after
            group, before = changed(rnd, group), after


@many(range(500))
@pytest.mark.parametrize("all_share", [True, False], ids=["all share", "some do not share"])
@pytest.mark.parametrize("equal", [True, False], ids=["equal subscriptions", "unequal subscriptions"])
def test_any_group_is_tiled_the_same_again_and_each_sharing_member_gets_a_share(
    seeds: range, *, equal: bool, all_share: bool
) -> None:
    for group, _, after in histories(seeds, 4, equal=equal, all_share=all_share):
        check(after, group.members, group.partitions)
        assert GROUPED.assign(group.members[::-1], group.partitions, after) == after
        served = {member for member, size in shares(after).items() if size}
        wanting = {s.member for s in group.members if s.sharing and any(group.partitions[t] for t in s.topics)}
        assert served >= wanting


@many(range(1000, 1500))
def test_equal_subscriptions_get_exact_proportions_whole_partitions_first(seeds: range) -> None:
    for group, _, after in histories(seeds, 4, equal=True, all_share=True):
        capacity, partitions = sum(s.capacity for s in group.members), sum(group.partitions.values())
        for s in group.members:
            quota = Fraction(s.capacity * partitions, capacity)
            assert abs(shares(after)[s.member] - quota * SPACE) < 1 + sum(map(len, after[s.member].values()))
            assert whole(after)[s.member] == int(quota)


@many(range(2000, 2500))
def test_splits_are_fewer_than_members_and_ranges_are_few(seeds: range) -> None:
    for group, _, after in histories(seeds, 4, equal=False, all_share=True):
        for topics in _pools(group):
            of_pool = {m: {tp: r for tp, r in owned.items() if tp.topic in topics} for m, owned in after.items()}
            assert splits(of_pool) < max(1, sum(any(owned.values()) for owned in of_pool.values()))
        for owned in after.values():
            assert all(ranges for ranges in owned.values())
        owners = [(tp, len(ranges)) for owned in after.values() for tp, ranges in owned.items()]
        for tp in {tp for tp, _ in owners}:
            here = [n for other, n in owners if other == tp]
            assert sum(here) <= 4 * len(here)


def _pools(group: Group) -> list[set[str]]:
    """The topics with the same subscribers."""
    pools: dict[tuple[str, ...], set[str]] = {}
    for topic in group.partitions:
        pools.setdefault(tuple(s.member for s in group.members if topic in s.topics), set()).add(topic)
    return list(pools.values())


@many(range(6000, 6500))
def test_unequal_subscriptions_are_levelled_to_a_tenth(seeds: range) -> None:
    """A member with a part of a topic has hardly more for each capacity than any other subscriber of it."""
    for group, _, after in histories(seeds, 4, equal=False, all_share=True):
        level = {s.member: Fraction(shares(after)[s.member], s.capacity) for s in group.members}
        for s, other in product(group.members, repeat=2):
            if any(tp.topic in other.topics for tp in after[s.member]):
                assert level[s.member] <= level[other.member] * Fraction(11, 10)


@many(range(3000, 3500))
def test_totals_do_not_depend_on_the_past(seeds: range) -> None:
    for group, _, after in histories(seeds, 3, equal=False, all_share=True):
        fresh = shares(GROUPED.assign(group.members, group.partitions, {}))
        assert all(abs(size - shares(after)[member]) < 50 for member, size in fresh.items())


@pytest.mark.parametrize(
    ("equal", "most"),
    [
        pytest.param(True, Fraction(119, 100), id="equal subscriptions"),
        pytest.param(False, Fraction(126, 100), id="unequal subscriptions"),
    ],
)
def test_a_long_life_moves_little_more_than_the_totals_force(*, equal: bool, most: Fraction) -> None:
    total = least = Fraction()
    for _, before, after in histories(range(4000, 4200), 12, equal=equal, all_share=True):
        if before:
            assert not equal or moved(before, after) <= forced(before, after) + splits(before) + splits(after)
            total, least = total + moved(before, after), least + forced(before, after)
    assert total < least * most, float(total / least)


def test_in_small_groups_hardly_anything_moves_that_need_not() -> None:
    """Beside all assignments in proportion, with as many whole partitions and no more splits: docs/applications.md."""
    found: list[tuple[Fraction, Fraction]] = []
    for seed in range(150):
        rnd = random.Random(seed)
        partitions = {"t": rnd.randint(1, 3)}
        members = [m(f"m{i}", "t", capacity=rnd.choice((1, 1, 1, 2))) for i in range(rnd.randint(1, 3))]
        before = GROUPED.assign(members, partitions, {})
        for step in range(3):
            capacity = sum(each.capacity for each in members)
            members = _with_another(rnd, members, f"n{step}")
            after = GROUPED.assign(members, partitions, before)
            quanta = lcm(capacity, sum(each.capacity for each in members))
            if quanta <= 12 and _in_quanta(before, quanta):
                least = least_moved(before, after, {each.member: each.capacity for each in members}, quanta)
                found.append((moved(before, after), least))
            before = after
    assert len(found) > 250
    assert sum(abs(moves - least) > Fraction(1, 10**9) for moves, least in found) <= 13
    assert sum(moves for moves, _ in found) < sum(least for _, least in found) * Fraction(1_005, 1_000)


def _with_another(rnd: random.Random, members: list[Subscriber], name: str) -> list[Subscriber]:
    """One leaves, one comes, or one changes its capacity; at most three are left."""
    i, what = rnd.randrange(len(members)), rnd.randrange(3)
    if what == 0 and len(members) > 1:
        return members[:i] + members[i + 1 :]
    if what == 1 and len(members) < 3:
        return [*members, m(name, "t", capacity=rnd.choice((1, 1, 2)))]
    return [*members[:i], replace(members[i], capacity=rnd.choice((1, 2, 3))), *members[i + 1 :]]


def _in_quanta(assignment: Assignment, quanta: int) -> bool:
    """Whether every part of a partition is so many parts of it, but for rounding."""
    sizes = (sum(h.size for h in ranges) for owned in assignment.values() for ranges in owned.values())
    parts = (Fraction(size * quanta, SPACE) for size in sizes)
    return all(abs(part - round(part)) < Fraction(1, 10**9) for part in parts)


def test_members_of_one_partition_that_come_and_go_for_long_keep_few_ranges() -> None:
    rnd, names = random.Random(5), ["m0"]
    previous: Assignment = {}
    total = least = Fraction()
    for i in range(1, 300):
        if len(names) == 1 or (len(names) < 10 and rnd.random() < 0.5):
            names.append(f"m{i}")
        else:
            names.remove(rnd.choice(names))
        after = GROUPED.assign([m(name, "t") for name in names], {"t": 1}, previous)
        assert sum(len(r) for owned in after.values() for r in owned.values()) <= 4 * len(names)
        if previous:
            total, least = total + moved(previous, after), least + forced(previous, after)
        previous = after
    assert total < least * Fraction(5, 4)


def test_a_changed_capacity_moves_exactly_its_difference() -> None:
    members = [m("a", "t", capacity=4), m("b", "t", capacity=4)]
    before = GROUPED.assign(members, {"t": 1}, {})
    after = GROUPED.assign([members[0], replace(members[1], capacity=12)], {"t": 1}, before)
    assert text(after) == {"t-0": "a<1/4 b"}
    assert moved(before, after) == Fraction(1, 4)


@many(range(5000, 5500))
@pytest.mark.parametrize("equal", [True, False])
def test_no_member_gets_a_splinter_of_a_partition(seeds: range, *, equal: bool) -> None:
    for group, _, after in histories(seeds, 4, equal=equal, all_share=equal):
        least = SPACE // (sum(s.capacity for s in group.members) * (1 if equal else 16))
        for owned in after.values():
            assert all(sum(h.size for h in ranges) >= least - len(ranges) for ranges in owned.values())
