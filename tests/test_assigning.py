"""An assignment under policies, checked: whole partitions where nobody may share, named errors for a bad assignor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from assignor_groups import any_group, some_members, splits, text, whole
from coordinator.assignment.assigning import assigned
from coordinator.assignment.policies import Policy
from coordinator.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignors.copartitioned import Copartitioned
from coordinator.assignors.grouped import Grouped
from coordinator.assignors.range import Range
from coordinator.assignors.roundrobin import RoundRobin
from coordinator.errors import ConsumerRangeFetchNotAcceptedError, InvalidAssignmentError
from coordinator.key_hash import cuts
from coordinator.subscription import TopicPartition

EVERY = [Grouped(), Range(), RoundRobin(), Copartitioned()]
OFF = Policy(accept_individual_commit=False)


def ids(assignor: Assignor) -> str:
    return assignor.name


@pytest.mark.parametrize("assignor", EVERY, ids=ids)
def test_where_the_group_may_not_share_nothing_is_split(assignor: Assignor) -> None:
    for seed in range(300):
        group = any_group(Random(seed))
        assert splits(assigned(assignor, group.members, group.partitions, {}, OFF)) == 0, seed


@pytest.mark.parametrize("assignor", EVERY, ids=ids)
def test_a_topic_that_may_not_be_shared_is_not_split_and_the_others_are_assigned_as_without_it(
    assignor: Assignor,
) -> None:
    members = some_members(5, "open", "closed")
    policy = Policy(refused_topics=frozenset({"closed"}))
    both = assigned(assignor, members, {"open": 2, "closed": 3}, {}, policy)
    alone = assigned(assignor, some_members(5, "open"), {"open": 2}, {}, Policy())
    closed = {m: {tp: r for tp, r in owned.items() if tp.topic == "closed"} for m, owned in both.items()}
    assert sum(whole(closed).values()) == 3
    assert {p: o for p, o in text(both).items() if p.startswith("open")} == text(alone)


@pytest.mark.parametrize("assignor", EVERY, ids=ids)
def test_members_equal_to_partitions_are_not_touched_by_a_policy(assignor: Assignor) -> None:
    members = some_members(3, "t")
    assert assigned(assignor, members, {"t": 3}, {}, OFF) == assigned(assignor, members, {"t": 3}, {}, Policy())


def test_a_partition_is_split_again_when_it_may_be_shared_again() -> None:
    members = some_members(2, "t")
    halves = assigned(Grouped(), members, {"t": 1}, {}, Policy())
    one = assigned(Grouped(), members, {"t": 1}, halves, OFF)
    again = assigned(Grouped(), members, {"t": 1}, one, Policy())
    assert (splits(halves), splits(one), splits(again)) == (1, 0, 1)


@dataclass
class Broken:
    """A user's assignor that gives a range to whoever comes first, or fails."""

    error: Exception | None = None
    name: str = "broken"
    version: int = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        if self.error:
            raise self.error
        lower, upper = cuts(2)
        tp = TopicPartition("t", 0)
        return {members[0].member: {tp: (lower,)}, members[1].member: {tp: (upper,)}}


def test_a_range_for_a_member_that_does_not_share_is_refused_with_code_90() -> None:
    with pytest.raises(ConsumerRangeFetchNotAcceptedError, match="m0 does not share") as refused:
        assigned(Broken(), some_members(2, "t", sharing=False), {"t": 1}, {}, Policy())
    assert refused.value.code == 90
    with pytest.raises(ConsumerRangeFetchNotAcceptedError):
        assigned(Broken(), some_members(2, "t"), {"t": 1}, {}, OFF)


def test_what_a_users_assignor_raises_is_named() -> None:
    with pytest.raises(InvalidAssignmentError, match="the assignor 'broken' failed: KeyError: 'rack'"):
        assigned(Broken(KeyError("rack")), some_members(2, "t"), {"t": 1}, {}, Policy())
