"""A member computes the group's assignment when it is its turn."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignment.assigning import Computed
from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.assignment.assignors.rack_aware import RackAware
from coordinator.assignment.policies import Policy
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import InconsistentGroupProtocolError
from coordinator.member.decision import Decision, LookAgain
from coordinator.member.owning import follow
from coordinator.member.requests import (
    Assign,
    Compute,
    Event,
    LogLine,
    LookAtGroup,
    ReadAssignment,
    ReadLeaderRacks,
    ReadPartitionCounts,
    ReadPolicy,
    ReadSubscribers,
)
from coordinator.plan.planning import Cutting
from coordinator.values.ranges import WHOLE
from states import LEFT, LIFE, MEMBER, NOW, RIGHT, TP, asks, call, decided, fails, joined, look, owning

STATE = joined(owning=owning())
DUE = look(occasion="1 m-1", members=(MEMBER, "m-2"), protocol="")
ALL = (MEMBER, "m-2")


def member(name: str, *, joined_at: int = 0, protocols: str = "grouped 1", **metadata: str) -> Subscriber:
    reported = {"joined_at": str(joined_at), "protocols": protocols, **metadata}
    return Subscriber(name, 1, frozenset({"orders"}), metadata=reported)


BOTH = (member(MEMBER), member("m-2"))
NO_POLICY = Policy()
HALVES: Assignment = {MEMBER: {TP: (LEFT,)}, "m-2": {TP: (RIGHT,)}}


GROUPED = GroupSettings("g").assignors[0]


def test_our_turn__compute_and_record_the_assignment_then_look_again() -> None:
    decision = decided(
        follow,
        STATE,
        call(),
        (LookAtGroup(), DUE),
        (ReadSubscribers(ALL), BOTH),
        (ReadPartitionCounts(), {"orders": 1}),
        (ReadPolicy(), Policy()),
        (ReadAssignment(), {}),
        (Compute(GROUPED, BOTH, {"orders": 1}, {}, Policy()), Computed(HALVES)),
        (Assign("1 m-1", "grouped 1", HALVES, ""), 2),
    )
    assert decision == Decision(STATE, (), LookAgain())


def test_the_assignor_is_rack_aware__it_knows_the_racks_of_the_leaders() -> None:
    members = tuple(member(m, protocols="rack-aware 1") for m in ALL)
    decision = decided(
        follow,
        STATE,
        call(assignors=(RackAware(),)),
        (LookAtGroup(), DUE),
        (ReadSubscribers(ALL), members),
        (ReadPartitionCounts(), {"orders": 1}),
        (ReadPolicy(), Policy()),
        (ReadAssignment(), {}),
        (ReadLeaderRacks(("orders",)), {TP: "a"}),
    )
    assert decision == asks(STATE, Compute(RackAware({TP: "a"}), members, {"orders": 1}, {}, Policy()))


def test_policies_and_the_assignment_before__the_assignor_knows_them() -> None:
    apart = Policy(accept_individual_commit=False)
    decision = decided(
        follow,
        STATE,
        call(),
        (LookAtGroup(), DUE),
        (ReadSubscribers(ALL), BOTH),
        (ReadPartitionCounts(), {"orders": 1}),
        (ReadPolicy(), apart),
        (ReadAssignment(), HALVES),
    )
    assert decision == asks(STATE, Compute(GROUPED, BOTH, {"orders": 1}, HALVES, apart))


JOINED = call(cutting=Cutting(1, joined=("orders", "payments")))
READS = tuple(replace(m, topics=frozenset({"orders", "payments"})) for m in BOTH)


def due(*there: Subscriber, counts: Mapping[str, int], policy: Policy = NO_POLICY) -> Decision:
    """The decision of a member with joined topics once it has looked."""
    return decided(
        follow,
        STATE,
        JOINED,
        (LookAtGroup(), DUE),
        (ReadSubscribers(ALL), there),
        (ReadPartitionCounts(), counts),
        (ReadPolicy(), policy),
        (ReadAssignment(), {}),
    )


def test_one_joined_topic_has_grown_first__its_new_partitions_have_no_owner() -> None:
    decision = due(*READS, counts={"orders": 1, "payments": 2})
    apart = Policy().joined(("orders", "payments"))
    assert decision == asks(STATE, Compute(GROUPED, READS, {"orders": 1, "payments": 1}, {}, apart))


def test_a_joined_topic_that_no_member_reads_any_more__its_count_does_not_matter() -> None:
    counts = {"orders": 1, "payments": 2}
    assert due(*BOTH, counts=counts) == asks(STATE, Compute(GROUPED, BOTH, counts, {}, Policy()))


def test_one_of_the_joined_topics_may_not_be_shared__no_joined_topic_is() -> None:
    counts = {"orders": 1, "payments": 1}
    apart = Policy(refused_topics=frozenset({"orders", "payments"}))
    decision = due(*READS, counts=counts, policy=Policy(refused_topics=frozenset({"payments"})))
    assert decision == asks(STATE, Compute(GROUPED, READS, counts, {}, apart))


def test_a_member_without_a_range__is_recorded_too() -> None:
    made: Assignment = {MEMBER: {TP: (WHOLE,)}}
    assert assigned(ALL, BOTH, made, 2) == Decision(STATE, (), LookAgain())


def assigned(
    due: tuple[str, ...],
    there: tuple[Subscriber, ...],
    made: Assignment,
    generation: int,
    failure: str = "",
    working: tuple[Subscriber, ...] | None = None,
) -> Decision:
    """The decision once the assignor has made this assignment for those who work, and it was recorded or not."""
    recorded = {m.member: made.get(m.member, {}) for m in there}
    return decided(
        follow,
        STATE,
        call(),
        (LookAtGroup(), replace(DUE, members=due)),
        (ReadSubscribers(due), there),
        (ReadPartitionCounts(), {"orders": 1}),
        (ReadPolicy(), Policy()),
        (ReadAssignment(), {}),
        (Compute(GROUPED, working or there, {"orders": 1}, {}, Policy()), Computed(made, failure)),
        (Assign("1 m-1", "grouped 1", recorded, failure), generation),
    )


def test_a_lease_without_a_member__is_counted_no_more() -> None:
    event = Event("mend", "a lease without a member no longer counts: m-3")
    assert assigned((*ALL, "m-3"), BOTH, HALVES, 2) == Decision(STATE, (event,), LookAgain())


def test_another_was_first__show_nothing() -> None:
    assert assigned((*ALL, "m-3"), BOTH, HALVES, 0) == Decision(STATE, (), LookAgain())


def test_our_own_entry_is_gone__the_next_look_is_fenced() -> None:
    decision = decided(follow, STATE, call(), (LookAtGroup(), DUE), (ReadSubscribers(ALL), (member("m-2"),)))
    assert decision == Decision(STATE, (), LookAgain())


def test_the_assignor_fails__whole_partitions_and_a_warning() -> None:
    made: Assignment = {MEMBER: {TP: (WHOLE,)}, "m-2": {}}
    line = "the assignor grouped 1 failed here, grouped assigns whole partitions: no idea"
    assert assigned(ALL, BOTH, made, 2, "no idea") == Decision(STATE, (LogLine(line),), LookAgain())


def test_a_member_that_shares_no_assignor_with_the_others__is_left_out() -> None:
    us, other = member(MEMBER, joined_at=1), member("m-2", joined_at=2, protocols="other 1")
    made: Assignment = {MEMBER: {TP: (WHOLE,)}}
    assert assigned(ALL, (us, other), made, 2, working=(us,)) == Decision(STATE, (), LookAgain())


def test_no_common_assignor_with_earlier_members__fail() -> None:
    there = (member(MEMBER, joined_at=2), member("m-2", joined_at=1, protocols="other 1"))
    decision = decided(follow, STATE, call(), (LookAtGroup(), DUE), (ReadSubscribers(ALL), there))
    assert decision == Decision(STATE, (), fails(InconsistentGroupProtocolError, "m-1 knows grouped 1, unknown to m-2"))


def test_our_entry_is_of_another_life_with_other_assignors__join_again() -> None:
    there = (member(MEMBER, protocols="other 1"),)
    due = replace(DUE, members=(MEMBER,))
    decision = decided(follow, STATE, call(), (LookAtGroup(), due), (ReadSubscribers((MEMBER,)), there))
    assert decision == Decision(replace(STATE, life=LIFE.rejoining()), (), LookAgain())


def test_a_member_with_a_slow_key__has_less_capacity() -> None:
    slow, quick = member(MEMBER, slow_percent="50"), member("m-2")
    working = (replace(slow, capacity=5), replace(quick, capacity=10))
    assert assigned(ALL, (slow, quick), HALVES, 2, working=working) == Decision(STATE, (), LookAgain())


def test_another_member_computes_the_assignment__follow_the_current_one_until_then() -> None:
    decision = decided(follow, STATE, call(), (LookAtGroup(), look(protocol="")))
    assert decision == Decision(replace(STATE, owning=owning(looked_at_ms=NOW, topics_at_ms=NOW)))


def test_an_assignment_by_an_assignor_that_we_know__follow_it() -> None:
    decision = decided(follow, STATE, call(), (LookAtGroup(), look(protocol="grouped 1")))
    assert decision == Decision(replace(STATE, owning=owning(looked_at_ms=NOW, topics_at_ms=NOW)))


EXCLUDES = look(protocol="other 1")


@pytest.mark.parametrize(
    ("assignment", "names"),
    [
        pytest.param({"m-2": {}}, (MEMBER, "m-2"), id="without us"),
        pytest.param({MEMBER: {}, "m-2": {}}, (MEMBER, "m-2"), id="with us"),
    ],
)
def test_an_assignment_by_an_assignor_that_we_do_not_know__fail(
    assignment: Mapping[str, Any], names: tuple[str, ...]
) -> None:
    there = (member(MEMBER, joined_at=2), member("m-2", joined_at=1, protocols="other 1"))
    decision = decided(
        follow,
        STATE,
        call(),
        (LookAtGroup(), EXCLUDES),
        (ReadAssignment(), assignment),
        (ReadSubscribers(names), there),
    )
    assert decision == Decision(STATE, (), fails(InconsistentGroupProtocolError, "no assignor is common"))


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(BOTH, id="the others know ours by now"),
        pytest.param((), id="all have left"),
    ],
)
def test_the_reason_of_our_exclusion_is_gone__join_again(there: tuple[Subscriber, ...]) -> None:
    decision = decided(
        follow,
        STATE,
        call(),
        (LookAtGroup(), EXCLUDES),
        (ReadAssignment(), {"m-2": {}}),
        (ReadSubscribers((MEMBER, "m-2")), there),
    )
    assert decision == Decision(replace(STATE, life=LIFE.rejoining()), (), LookAgain())
