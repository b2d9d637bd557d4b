"""Assignments under policies: whole partitions where policies forbid sharing, named errors for a bad assignor."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from random import Random

import pytest

from assignor_groups import any_group, some_members, splits, text, whole
from coordinator.assignment.assigning import Computed, assigned, computed
from coordinator.assignment.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignment.assignors.copartitioned import Copartitioned
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.assignors.reverse import Range, RoundRobin
from coordinator.assignment.policies import Policy
from coordinator.errors import ConsumerRangeFetchNotAcceptedError, StateFormatError
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

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


TP = TopicPartition("t", 0)
LOWER, UPPER = cuts(2)
BY_TEXT = TopicPartition("t", "0")  # type: ignore[arg-type]
OF_FLOATS = HashRange(0.0, 2.0**62)  # type: ignore[arg-type]


@dataclass
class Users:
    """A user's assignor that returns or raises the test's value."""

    made: Callable[..., object]
    name: str = "users"
    version: int = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        return self.made(members, partitions, previous)  # type: ignore[return-value]


def raising(error: BaseException) -> Callable[..., object]:
    def made(*_: object) -> object:
        raise error

    return made


class Unreadable(Exception):  # noqa: N818 - a user's
    def __str__(self) -> str:
        raise KeyError("message")


class Endless(dict[str, object]):
    def items(self) -> Iterator[tuple[str, object]]:  # type: ignore[override]
        return ((f"m{i}", {}) for i in count())


def halves(members: Sequence[Subscriber], *_: object) -> object:
    return {members[0].member: {TP: (LOWER,)}, members[1].member: {TP: (UPPER,)}}


def emptied(members: list[Subscriber], partitions: dict[str, int], previous: dict[str, object]) -> object:
    for given in (members, partitions, previous):
        given.clear()
    return {}


def finest(members: Sequence[Subscriber], *_: object) -> object:
    return {members[0].member: {TP: cuts(2**20)}}


BROKEN = [
    pytest.param(raising(KeyError("rack")), "the assignor 'users' failed: KeyError: 'rack'", id="it raises"),
    pytest.param(raising(SystemExit(3)), "'users' failed: SystemExit: 3", id="it ends the process"),
    pytest.param(raising(RecursionError("deep")), "RecursionError", id="it never ends its recursion"),
    pytest.param(raising(ImportError("no numpy")), "no numpy", id="it needs a module that this host does not have"),
    pytest.param(raising(StateFormatError("mine")), "StateFormatError: mine", id="it raises an error of ours"),
    pytest.param(raising(Unreadable()), "its message cannot be read", id="its error has no readable message"),
    pytest.param(
        raising(ValueError("\x1b[2J\n" + 10_000 * "x")), "ValueError:  [2J x", id="its error is long and not one line"
    ),
    pytest.param(lambda *_: None, "NoneType, not Mapping", id="nothing"),
    pytest.param(lambda *_: {}, "no member owns", id="no member owns anything"),
    pytest.param(lambda *_: {"stranger": {TP: (WHOLE,)}}, "not a member", id="a stranger owns everything"),
    pytest.param(lambda *_: {1: {TP: (WHOLE,)}}, "type int, not str", id="a member that is a number"),
    pytest.param(lambda *_: {"m0": [TP]}, "type list, not Mapping", id="partitions without ranges"),
    pytest.param(
        lambda *_: {"m0": {("t", 0): (WHOLE,)}}, "type tuple, not TopicPartition", id="a partition that is none"
    ),
    pytest.param(lambda *_: {"m0": {BY_TEXT: (WHOLE,)}}, "type str, not int", id="a partition by its text"),
    pytest.param(lambda *_: {"m0": {TP: WHOLE}}, "type int, not HashRange", id="a range and no tuple of them"),
    pytest.param(
        lambda *_: {"m0": {TP: (OF_FLOATS,)}},
        "type float, not int",
        id="hashes that are no whole numbers",
    ),
    pytest.param(lambda *_: {"m0": {TP: repeat(WHOLE)}}, "more than 10016 hash ranges", id="ranges without end"),
    pytest.param(finest, "more than 10016 hash ranges", id="a million ranges", marks=pytest.mark.long),
    pytest.param(lambda *_: Endless(), "entries", id="members without end"),
    pytest.param(lambda m, *_: {m[0].member: {TP: (LOWER, LOWER)}}, "overlap", id="ranges that overlap"),
    pytest.param(emptied, "no member owns", id="it empties its arguments"),
]


@pytest.mark.parametrize(("made", "what"), BROKEN)
def test_a_broken_assignor_is_a_named_failure_and_whole_partitions_are_assigned(
    made: Callable[..., object], what: str
) -> None:
    members, partitions, previous = some_members(2, "t"), {"t": 1}, {"m0": {TP: (WHOLE,)}}
    result = computed(Users(made), members, partitions, previous, Policy())
    assert what in result.failure
    assert len(result.failure) <= 300
    assert result.failure.isprintable()
    assert text(result.assignment) == {"t-0": "m0"}
    assert (len(members), partitions, previous) == (2, {"t": 1}, {"m0": {TP: (WHOLE,)}}), "it has changed what is ours"


def test_a_valid_assignment_of_the_users_assignor_is_used_unchanged() -> None:
    members = some_members(2, "t")
    assert computed(Users(halves), members, {"t": 1}, {}, Policy()) == Computed(
        {"m0": {TP: (LOWER,)}, "m1": {TP: (UPPER,)}}
    )
    lists = computed(Users(lambda *_: {"m0": {TopicPartition("t", False): [WHOLE]}}), members, {"t": 1}, {}, Policy())
    assert repr(lists.assignment["m0"]) == repr({TP: (WHOLE,)}), "text in Redis that nobody can read"


def test_a_thousand_partitions_cut_as_finely_as_may_be_are_used() -> None:
    fine = cuts(16)
    made = {"m0": {TopicPartition("t", p): fine for p in range(1_000)}}
    assert computed(Users(lambda *_: made), some_members(1, "t"), {"t": 1_000}, {}, Policy()) == Computed(
        {"m0": made["m0"]}
    )


def test_ctrl_c_while_an_assignor_computes_is_the_users_own() -> None:
    with pytest.raises(KeyboardInterrupt):
        computed(Users(raising(KeyboardInterrupt())), some_members(1, "t"), {"t": 1}, {}, Policy())


def test_a_range_for_a_member_that_does_not_share_is_refused_with_code_90() -> None:
    with pytest.raises(ConsumerRangeFetchNotAcceptedError, match="m0 does not share") as refused:
        assigned(Users(halves), some_members(2, "t", sharing=False), {"t": 1}, {}, Policy())
    assert refused.value.code == 90
    with pytest.raises(ConsumerRangeFetchNotAcceptedError):
        assigned(Users(halves), some_members(2, "t"), {"t": 1}, {}, OFF)
    failure = computed(Users(halves), some_members(2, "t"), {"t": 1}, {}, OFF).failure
    assert "CONSUMER_RANGE_FETCH_NOT_ACCEPTED: code 90: m0 does not share" in failure
