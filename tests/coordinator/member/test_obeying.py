"""A member obeys policies: refused demands, rejected ranges, and partition order (rule: partition-order)."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignment.policies import NO_POLICY, UNKNOWN_POLICY, UNREADABLE, Policy
from coordinator.errors import IndividualCommitNotAllowedError, TopicRangeFetchNotAllowedError
from coordinator.member.decision import RETRY_MS, LookAgain, Return, Seen
from coordinator.member.obeying import check_start, copy_cluster_policies, one_end
from coordinator.member.owning import follow
from coordinator.member.poison import without_parked
from coordinator.member.requests import (
    Acquire,
    CopyPolicies,
    LookAtGroup,
    Mirror,
    OffsetsOfARecord,
    ReadClusterPolicies,
    ReadPolicy,
)
from coordinator.member.state import ClusterPolicies, Mirrored, State, Strikes
from coordinator.plan.planning import OwnedRange
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned
from states import (
    EPOCH,
    LEFT,
    NEXT_EPOCH,
    NONCE,
    NOW,
    RIGHT,
    TP,
    Answer,
    asks,
    call,
    decided,
    fails,
    held,
    joined,
    look,
    owning,
    owns,
    struck,
)

ORDERED, UNSHARED = Policy(refused_topics=frozenset({"orders"})), Policy(accept_individual_commit=False)
PARTS = {TP: (LEFT,)}
NO_TOPIC = (ReadClusterPolicies(), ("", NO_POLICY))


def knows(policy: Policy) -> State:
    """A member that has mirrored these policies."""
    return owns(mirrored=Mirrored(policy=policy))


@pytest.mark.parametrize(
    ("written", "known"),
    [
        pytest.param(True, UNSHARED, id="written"),
        pytest.param(False, UNSHARED, id="plain consumers live in the group: no mirror"),
        pytest.param(None, NO_POLICY, id="it failed: again at the next look"),
    ],
)
def test_policies_have_changed__the_mirror_first(written: bool | None, known: Policy) -> None:
    """Rule: policies-survive."""
    seen = look(policy=UNSHARED, generation=2)
    decision = decided(follow, owns(), call(), (LookAtGroup(), seen), (Mirror((TP,), ("orders",)), written))
    assert decision.effects == (Acquire({TP: (WHOLE,)}),)
    answers = (LookAtGroup(), seen), (Mirror((TP,), ("orders",)), written), (Acquire({TP: (WHOLE,)}), held())
    assert decided(follow, owns(), call(), *answers).state.mirrored.policy == known


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        pytest.param(UNSHARED, {}, id="the group shares nothing"),
        pytest.param(ORDERED, {}, id="the topic is read in order"),
        pytest.param(NO_POLICY, {"sharing": False}, id="the query takes whole partitions only"),
    ],
)
def test_a_forbidden_range_in_the_assignment_in_force__reject_it_and_make_another_one_due(
    policy: Policy, settings: dict[str, Any]
) -> None:
    state = knows(policy)
    decision = decided(follow, state, call(**settings), (LookAtGroup(), look(PARTS, policy=policy)))
    event, line = decision.effects
    what = "CONSUMER_RANGE_FETCH_NOT_ACCEPTED: code 90: generation 1 assigns orders-0 "
    assert (event.arguments["kind"], event.arguments["ranges"]) == ("rejected", PARTS)
    assert what in event.arguments["why"]
    assert what in line.arguments["text"]
    assert decision.outcome == LookAgain(RETRY_MS)
    assert decision.state.life.nonce == "", "to join again makes another assignment due"
    assert decision.state.owning == state.owning, "nothing of it is acquired"


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(look(PARTS), id="policies allow it"),
        pytest.param(look(PARTS, policy=UNSHARED, protocol=""), id="it is out of date, so it may be of other policies"),
        pytest.param(look({TP: (LEFT, RIGHT)}, policy=UNSHARED), id="a whole partition in two parts"),
        pytest.param(look({}, policy=UNSHARED), id="nothing is assigned"),
    ],
)
def test_no_forbidden_range__acquire_it(seen: Any) -> None:
    decision = decided(follow, knows(seen.policy), call(), (LookAtGroup(), seen))
    assert decision == asks(decision.state, Acquire(seen.mine or {TP: ()}))


def test_in_partition_order__the_whole_partition_becomes_one_range() -> None:
    decision = decided(follow, knows(ORDERED), call(), (LookAtGroup(), look(policy=ORDERED, generation=2)))
    assert decision == asks(decision.state, Acquire({TP: (WHOLE,)}, one=frozenset({"orders"})))


@pytest.mark.parametrize(
    ("policy", "query", "outcome"),
    [
        pytest.param(
            ORDERED,
            {"takes": "keys"},
            fails(TopicRangeFetchNotAllowedError, "the function is called key by key"),
            id="key by key",
        ),
        pytest.param(UNSHARED, {"takes": "keys"}, None, id="key by key, and only the group's policy is off"),
        pytest.param(
            ORDERED,
            {"subscription": Assigned({TP: (LEFT,)}, pinned=True)},
            fails(TopicRangeFetchNotAllowedError, "the option assign names parts"),
            id="pinned to a part: the topic's policy",
        ),
        pytest.param(
            UNSHARED,
            {"subscription": Assigned({TP: (LEFT,)}, pinned=True)},
            fails(IndividualCommitNotAllowedError, "the option assign names parts"),
            id="pinned to a part: the group's policy",
        ),
        pytest.param(
            ORDERED, {"ordering": "none"}, fails(TopicRangeFetchNotAllowedError, "ordering=none is set"), id="no order"
        ),
        pytest.param(ORDERED, {"demanding": True}, None, id="a query that demands parts follows the assignment"),
    ],
)
def test_a_policy_changes_while_a_query_runs__it_ends_if_it_cannot_follow(
    policy: Policy, query: dict[str, Any], outcome: Any
) -> None:
    seen = look(PARTS, policy=policy, protocol="")
    decision = decided(follow, knows(policy), call(**query), (LookAtGroup(), seen))
    if outcome is None:
        assert decision.effects[0].kind.verb == "acquire"
    else:
        assert decision.outcome == outcome


@pytest.mark.parametrize(
    ("policy", "query", "outcome"),
    [
        (ORDERED, {"takes": "keys"}, fails(TopicRangeFetchNotAllowedError, "pass it to map_batches")),
        (UNSHARED, {"takes": "keys"}, Return(None)),
        (ORDERED, {"ordering": "none", "demanding": True}, fails(TopicRangeFetchNotAllowedError, "ordering=none")),
        (ORDERED, {"demanding": True}, fails(TopicRangeFetchNotAllowedError, "sharing=required is set")),
    ],
)
def test_a_start_that_demands_parts__is_refused(policy: Policy, query: dict[str, Any], outcome: Any) -> None:
    assert decided(check_start, joined(), call(**query), (ReadPolicy(), policy), NO_TOPIC).outcome == outcome


def test_the_policies_are_unreadable_and_optional__what_redis_has_stays() -> None:
    answer = ReadClusterPolicies(), (UNREADABLE, NO_POLICY)
    (line,) = decided(copy_cluster_policies, joined(), call(), answer).effects
    assert "The policies that Redis has hold" in line.arguments["text"]


def test_a_start_that_demands_parts__the_cluster_forbids_them() -> None:
    answers = (ReadPolicy(), NO_POLICY), (ReadClusterPolicies(), ("id-p 1", ORDERED))
    decision = decided(check_start, joined(), call(demanding=True), *answers)
    assert decision.outcome == fails(TopicRangeFetchNotAllowedError, "coop-kafka policy --topic orders --set")


def test_a_start_that_demands_nothing__asks_for_no_policy() -> None:
    assert decided(check_start, joined(), call()).outcome == Return(None)


def part(hashes: Any, position: int, ceiling: int | None = None, epoch: str = EPOCH) -> OwnedRange:
    return OwnedRange(hashes, position, epoch, ceiling)


ENDS = {TP: 100}


@pytest.mark.parametrize(
    ("parts", "ceilings"),
    [
        pytest.param((part(WHOLE, 10),), (100,), id="one range: to the end"),
        pytest.param((part(WHOLE, 10, 40),), (40,), id="one range with a quota"),
        pytest.param((part(LEFT, 10), part(RIGHT, 30, epoch=NEXT_EPOCH)), (100, 100), id="two ranges: one end"),
        pytest.param((part(LEFT, 10, 20), part(RIGHT, 10, 40)), (20, 20), id="the lowest end holds for both"),
        pytest.param((part(LEFT, 10, 20), part(RIGHT, 30)), (20, 30), id="a range that is ahead waits"),
        pytest.param((part(LEFT, 10, 10), part(RIGHT, 10)), (10, 10), id="one stands still, so both do"),
        pytest.param((part(LEFT, 10),), (10,), id="another member has the rest: wait for it"),
    ],
)
def test_ranges_of_a_partition_in_order_end_together(parts: tuple[OwnedRange, ...], ceilings: tuple[int, ...]) -> None:
    state = joined(owning=owning(policy=ORDERED))
    _, limited = one_end(state, {TP: parts}, ENDS, None, call())  # type: ignore[arg-type]
    assert tuple(p.ceiling for p in limited[TP]) == ceilings
    assert [(p.hashes, p.position, p.epoch) for p in limited[TP]] == [(p.hashes, p.position, p.epoch) for p in parts]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(joined(owning=owning(held())), id="no policy"),
        pytest.param(joined(owning=owning(policy=UNSHARED)), id="the group's policy does not ask for order"),
    ],
)
def test_other_ranges_keep_their_ends(state: Any) -> None:
    work = {TP: (part(LEFT, 10, 20), part(RIGHT, 10))}
    assert one_end(state, work, ENDS, None, call()) == (state, work)  # type: ignore[arg-type]


TOPIC, UNREADABLE_ANSWER = ("id-p 1", ORDERED), (UNREADABLE, UNKNOWN_POLICY)
READ = ClusterPolicies(NOW - 4_999, TOPIC, NONCE)


@pytest.mark.parametrize(
    ("known", "reads", "copies"),
    [
        pytest.param(ClusterPolicies(), True, True, id="first"),
        pytest.param(READ, False, False, id="read less than 5 s ago, and copied"),
        pytest.param(replace(READ, read_ms=NOW - 5_000), True, False, id="as before"),
        pytest.param(replace(READ, read_ms=NOW - 5_000, found=("", NO_POLICY)), True, True, id="changed"),
        pytest.param(replace(READ, copied_at="n-0"), False, True, id="a loss of state: copied again"),
    ],
)
def test_the_policies_of_the_cluster_are_copied_before_a_look(
    known: ClusterPolicies, *, reads: bool, copies: bool
) -> None:
    """Rule: cluster-policies."""
    answers: list[Answer] = [(ReadClusterPolicies(), TOPIC)] if reads else []
    decision = decided(copy_cluster_policies, joined(cluster_policies=known), call(), *answers)
    assert decision.state.cluster_policies == ClusterPolicies(NOW if reads else known.read_ms, TOPIC, NONCE)
    assert decision.effects == ((CopyPolicies(*TOPIC),) if copies else ())


def test_the_policies_of_the_cluster_are_unreadable__one_warning_names_the_right() -> None:
    answer = ReadClusterPolicies(), UNREADABLE_ANSWER
    copy, line = decided(copy_cluster_policies, joined(), call(), answer).effects
    assert copy == CopyPolicies(*UNREADABLE_ANSWER)
    assert "may not read the topic coop-kafka-policies, which need not exist" in line.arguments["text"]
    assert "Remedy: grant the user READ on the topic" in line.arguments["text"]
    known = joined(cluster_policies=ClusterPolicies(NOW - 5_000, UNREADABLE_ANSWER, NONCE))
    assert decided(copy_cluster_policies, known, call(), answer).effects == ()


def test_a_start_that_demands_parts__the_policies_of_the_cluster_are_unreadable() -> None:
    answers = (ReadPolicy(), NO_POLICY), (ReadClusterPolicies(), UNREADABLE_ANSWER)
    decision = decided(check_start, joined(), call(demanding=True), *answers)
    assert decision.outcome == fails(IndividualCommitNotAllowedError, "may not read the topic coop-kafka-policies")


def test_in_partition_order_a_struck_lane_limits_its_whole_partition() -> None:
    """All its records are one lane."""
    state = joined(owning=owning(policy=ORDERED), strikes=Strikes((struck(10, 20, LEFT),), NOW))
    work = {TP: (part(WHOLE, 10),)}
    seen = Seen(NOW, ((OffsetsOfARecord((TP, WHOLE)), 1),))
    state, limited = without_parked(state, work, ENDS, seen, call())
    assert (state.reading.trials, limited) == ({(TP, WHOLE): 1}, {TP: (part(WHOLE, 10, 20),)})
