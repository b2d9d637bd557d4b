"""A pinned member: held by another one, following its own ranges, and the end of AvailableNow."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignment.assignment_text import ranges_text
from coordinator.assignment.policies import Policy
from coordinator.errors import (
    InconsistentGroupProtocolError,
    IndividualCommitNotAllowedError,
    OverlappingRangesError,
    TopicRangeFetchNotAllowedError,
)
from coordinator.member.decision import Call, Decision, LookAgain, Return
from coordinator.member.life import busy, joining
from coordinator.member.owning import follow
from coordinator.member.pinned import held
from coordinator.member.planning import end_run
from coordinator.member.requests import (
    Acquire,
    Finish,
    LogLine,
    LookAtGroup,
    ReadClusterPolicies,
    ReadMetadata,
    ReadPartitionCounts,
    ReadPolicy,
    Release,
)
from coordinator.member.service import CHECK_POLICIES
from coordinator.member.state import Pacing
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import Assigned, TopicPartition
from coordinator.values.verdicts import Held
from states import (
    LEFT,
    LIFE,
    LOG,
    NOW,
    RIGHT,
    TP,
    TP1,
    call,
    decided,
    fails,
    joined,
    look,
    owning,
    refused,
)
from states import held as acquired

POLICIES = CHECK_POLICIES[-1]
THEIRS = HashRange(LEFT.lo, LEFT.hi - 1)
VERDICT = Held("m-2", NOW + 10_000, NOW)
WAITED = replace(LIFE, other=("m-2", NOW + 10_000))
GROWN = replace(LIFE, other=("m-2", NOW + 9_999))


def pinned(*hashes: HashRange, **changes: Any) -> Call:
    """A call of a member that is pinned to these hashes of the partition."""
    return call(subscription=Assigned({TP: hashes}, pinned=True), **changes)


def theirs(*hashes: HashRange) -> tuple[Any, dict[str, str]]:
    """The report of the member in the way; of an assigned one without hashes."""
    return ReadMetadata("m-2"), {"host": "h", **({"pinned": ranges_text({TP: hashes})} if hashes else {})}


def test_another_verdict_or_none__go_on() -> None:
    assert decided(held, joined(), pinned(LEFT)) == Decision(joined())
    assert decided(busy, refused(VERDICT), pinned(LEFT)) == Decision(refused(VERDICT))


def test_held_by_the_same_ranges__wait_as_a_spare_with_one_line() -> None:
    decision = decided(held, refused(VERDICT), pinned(LEFT), theirs(LEFT))
    line = LogLine("group g: member m-2 reads the same ranges; this query is its spare, and waits")
    assert decision == Decision(joined(life=WAITED), (line,), LookAgain(1_000))
    again = decided(held, refused(VERDICT, WAITED), pinned(LEFT), theirs(LEFT))
    assert again == Decision(joined(life=WAITED), (), LookAgain(1_000))


def test_held_by_the_same_ranges_in_other_pieces__wait() -> None:
    middle = HashRange(LEFT.lo, 99), HashRange(100, LEFT.hi)
    assert decided(held, refused(VERDICT, GROWN), pinned(*middle), theirs(LEFT)).outcome == LookAgain(1_000)


def test_a_spare_waits_though_the_lease_grows() -> None:
    decision = decided(held, refused(VERDICT, GROWN), pinned(LEFT), theirs(LEFT))
    assert decision == Decision(joined(life=WAITED), (), LookAgain(1_000))


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="the first time"),
        pytest.param(("m-2", NOW + 10_000), id="its lease has not grown"),
        pytest.param(("m-3", NOW), id="another member than before"),
    ],
)
def test_held_by_a_part_of_the_ranges__wait_while_the_other_may_be_dead(before: tuple[str, int] | None) -> None:
    decision = decided(held, refused(VERDICT, replace(LIFE, other=before)), pinned(LEFT), theirs(THEIRS))
    line = LogLine("group g: member m-2 is in the way of this query, which waits for the end of its lease")
    lines = (line,) if before is None or before[0] != "m-2" else ()
    assert decision == Decision(joined(life=WAITED), lines, LookAgain(200))


def test_the_lease_ends_soon__wait_no_longer_than_that() -> None:
    decision = decided(held, refused(Held("m-2", NOW + 10, NOW)), pinned(LEFT), theirs(LEFT))
    assert decision.outcome == LookAgain(11)


def test_the_member_in_the_way_has_left_since__look_again() -> None:
    decision = decided(held, refused(VERDICT, GROWN), pinned(LEFT), (ReadMetadata("m-2"), {}))
    assert decision == Decision(joined(life=WAITED), (), LookAgain(200))


def test_held_by_a_part_of_the_ranges_and_the_lease_grows__refuse_with_member_ranges_and_remedy() -> None:
    decision = decided(held, refused(VERDICT, GROWN), pinned(LEFT, RIGHT), theirs(THEIRS))
    what = f"names hashes that member m-2 of group 'g' reads: orders-0 {THEIRS}"
    assert decision == Decision(joined(life=WAITED), (), fails(OverlappingRangesError, what))
    remedy = str(decision.outcome.error.remedy)  # type: ignore[union-attr]
    assert remedy == "assign other ranges; or exactly the ranges of m-2, to be its spare; or stop m-2"


def test_a_pinned_member_among_assigned_ones__refuse() -> None:
    decision = decided(held, refused(VERDICT, GROWN), pinned(LEFT), theirs())
    what = "member m-2 of group 'g' is assigned its ranges by the group, and this query is pinned"
    assert decision == Decision(joined(life=WAITED), (), fails(InconsistentGroupProtocolError, what))


def test_an_assigned_member_among_pinned_ones__refuse() -> None:
    decision = decided(held, refused(VERDICT, GROWN), call(), theirs(LEFT))
    what = "member m-2 of group 'g' is pinned, and this query is not"
    assert decision == Decision(joined(life=WAITED), (), fails(InconsistentGroupProtocolError, what))


def test_only_the_form_with_ranges_pins_and_only_in_a_group() -> None:
    assert joining(joined(), pinned(LEFT)).pinned == {TP: (LEFT,)}
    assert joining(joined(), call(subscription=Assigned({TP: (WHOLE,)}))).pinned == {}
    alone = pinned(LEFT).setup
    assert replace(alone, settings=replace(alone.settings, group="")).pinned == {}


def test_more_is_owned_than_named__release_it_at_once() -> None:
    decision = decided(
        follow,
        joined(owning=owning()),
        pinned(LEFT),
        (LookAtGroup(), look({TP: (LEFT,)}, generation=2, protocol="")),
        (Acquire({TP: (LEFT,)}), acquired(10)),
        (Release({TP: (RIGHT,)}), 1),
        (Acquire({TP: (LEFT,)}, again=True), acquired(10, LEFT)),
    )
    assert decision.state.owning.ranges == {TP: (LEFT,)}


def test_the_first_acquisition__release_all_partitions_that_are_not_named() -> None:
    """An earlier life may have acquired them and read nothing: then no offset names them."""
    new = owning(acquired(10, LEFT), stale=True, as_of=None)
    decision = decided(
        follow,
        joined(owning=new),
        pinned(LEFT),
        (LookAtGroup(), look({TP: (LEFT,)})),
        (ReadPartitionCounts(), {"orders": 2, "returns": 1}),
        (Release({TP1: (WHOLE,), TopicPartition("returns", 0): (WHOLE,)}), 1),
        (Acquire({TP: (LEFT,)}), acquired(10, LEFT)),
    )
    assert decision.state.owning.ranges == {TP: (LEFT,)}


def test_the_end_of_available_now_asks_for_the_named_hashes_only() -> None:
    idle = joined(log=LOG, pace=Pacing(targets={TP: 50}, idle=({}, {})))
    decision = decided(end_run, idle, pinned(LEFT), (Finish({TP: 50}, {TP: (LEFT,)}), True))
    assert decision == Decision(idle, (), Return(None))


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        pytest.param(
            Policy(accept_individual_commit=False),
            fails(IndividualCommitNotAllowedError, "the option assign names parts of partitions"),
            id="the group's",
        ),
        pytest.param(
            Policy(refused_topics=frozenset({"orders"})),
            fails(TopicRangeFetchNotAllowedError, "remove the key ranges of the option assign"),
            id="the topic's",
        ),
        pytest.param(Policy(refused_topics=frozenset({"returns"})), Return(None), id="another topic's"),
    ],
)
def test_parts_of_partitions_are_named__as_policies_allow(policy: Policy, outcome: Any) -> None:
    decision = decided(
        POLICIES, joined(), pinned(LEFT), (ReadPolicy(), policy), (ReadClusterPolicies(), ("", Policy()))
    )
    assert decision.outcome == outcome


def test_whole_partitions_are_named__policies_do_not_matter() -> None:
    assert decided(POLICIES, joined(), pinned(WHOLE)).outcome == Return(None)
