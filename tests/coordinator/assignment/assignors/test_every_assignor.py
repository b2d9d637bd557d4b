"""Each of our assignors, on random groups: a full tiling, the same result again, and quick."""

import random
import time

import pytest

from assignor_groups import any_group, changed, shares
from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.assignment.assignors.check import check
from coordinator.assignment.assignors.registry import NAMES, assignor
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from seeds import many

SEEDS = {"grouped": 400, "range": 3_400, "roundrobin": 3_400, "copartitioned": 1_000, "rack-aware": 200}
"""Of the lane `--long`, three groups each; of `grouped`, test_grouped.py beside it sees 10,000 more."""
FEW = 40
"""For each change."""


@pytest.mark.parametrize(
    ("name", "seeds"),
    [pytest.param(name, range(FEW), id=name) for name in NAMES]
    + [pytest.param(name, range(FEW, most), id=f"{name}-more", marks=pytest.mark.long) for name, most in SEEDS.items()],
)
def test_any_group_is_tiled_and_the_same_again(name: str, seeds: range) -> None:
    for seed in seeds:
        rnd = random.Random(seed)
        group = any_group(rnd, equal=seed % 2 == 0)
        before: Assignment = {}
        for _ in range(3):
            after = assignor(name).assign(group.members, group.partitions, before)
            check(after, group.members, group.partitions)
            assert assignor(name).assign(group.members[::-1], group.partitions, after) == after
            served = {member for member, size in shares(after).items() if size}
            assert served >= {
                m.member for m in group.members if m.sharing and any(group.partitions[t] for t in m.topics)
            }
            group, before = changed(rnd, group), after


@many(range(100))
@pytest.mark.parametrize("name", NAMES)
def test_an_assignor_continues_from_the_assignment_of_each_other_assignor(name: str, seeds: range) -> None:
    for seed in seeds:
        rnd = random.Random(seed)
        group = any_group(rnd)
        fresh = assignor(name).assign(group.members, group.partitions, {})
        for other in NAMES:
            left = assignor(other).assign(group.members, group.partitions, {})
            check(assignor(name).assign(group.members, group.partitions, left), group.members, group.partitions)
        assert assignor(name).assign(group.members, group.partitions, fresh) == fresh


@pytest.mark.parametrize("name", NAMES)
def test_nobody_gets_nothing(name: str) -> None:
    left: Assignment = {"m-gone": {TopicPartition("t", 0): (WHOLE,)}}
    assert assignor(name).assign([], {"t": 2}, left) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_partitions_and_a_hundred_members_take_well_under_a_second(name: str) -> None:
    rnd = random.Random(1)
    members = [Subscriber(f"m{i}", rnd.randint(1, 16), frozenset({"t"}), rnd.random() < 0.8) for i in range(100)]
    start = time.process_time()
    before = assignor(name).assign(members, {"t": 1000}, {})
    after = assignor(name).assign(members[1:], {"t": 1000}, before)
    check(after, members[1:], {"t": 1000})
    assert time.process_time() - start < 1
