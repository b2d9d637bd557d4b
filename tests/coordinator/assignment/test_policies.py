"""Policies of a group and its topics, as text and in a real Redis (rule: sharing-policies)."""

from dataclasses import replace
from typing import cast

import pytest

from coordinator.assignment.policies import UNKNOWN_POLICY, Policy, checked, policy_of, refuse_demand
from coordinator.errors import CodedError, CoopKafkaError, InvalidOptionError, StateFormatError, UnknownOptionError
from coordinator.redis.keys import GroupKeys
from store_world import World

ON_EACH_SERVER = True

ICS, ORDERS = "accept.individual.commit", "accept.range.fetch:orders"


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        pytest.param({}, Policy(True, frozenset()), id="everything is accepted by default"),
        pytest.param({ICS: "false"}, Policy(False), id="a group that shares nothing"),
        pytest.param({ORDERS: "false"}, Policy(True, frozenset({"orders"})), id="a topic that is not shared"),
        pytest.param({ICS: "true", ORDERS: "true"}, Policy(), id="an explicit value may be the default"),
    ],
)
def test_policies_are_read_from_the_fields_of_a_hash(fields: dict[str, str], policy: Policy) -> None:
    assert policy_of(fields) == policy
    assert policy_of(policy.fields) == policy


def test_a_topic_may_be_shared_if_no_policy_refuses_it() -> None:
    assert Policy().may_share("orders")
    assert not Policy(accept_individual_commit=False).may_share("orders")
    assert not Policy(refused_topics=frozenset({"orders"})).may_share("orders")
    assert Policy(refused_topics=frozenset({"orders"})).may_share("payments")


def test_of_joined_topics_all_may_be_shared_or_none() -> None:
    policy = Policy(refused_topics=frozenset({"orders"}))
    assert policy.joined(("orders", "payments")) == Policy(refused_topics=frozenset({"orders", "payments"}))
    assert policy.joined(("clicks", "payments")) == policy
    assert policy.joined(()) == policy
    of_cluster = Policy(cluster=policy)
    assert of_cluster.joined(("orders", "payments")).in_order("payments"), "refused by the cluster"


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        pytest.param("accept.individual.commits", "true", UnknownOptionError, ICS, id="a name nearly right"),
        pytest.param("accept.range.fetch", "true", UnknownOptionError, ":TOPIC", id="a topic policy without a topic"),
        pytest.param("accept.range.fetch:a b", "true", UnknownOptionError, ":TOPIC", id="no topic has that name"),
        pytest.param("colour", "true", UnknownOptionError, ICS, id="an unknown name"),
        pytest.param(ICS, "yes", InvalidOptionError, "true, false", id="neither true nor false"),
    ],
)
def test_a_wrong_change_is_refused_with_a_remedy(
    name: str, value: str, error: type[CoopKafkaError], words: str
) -> None:
    with pytest.raises(error, match=words):
        checked({name: value})


@pytest.mark.parametrize("fields", [{ICS: "junk"}, {"accept.range.fetch": "true"}, {"x": "true"}])
def test_junk_in_redis_is_a_named_error(fields: dict[str, str]) -> None:
    with pytest.raises(StateFormatError, match="coop-kafka policy"):
        policy_of(fields)


def test_a_policy_is_set_and_set_back_while_the_group_runs(world: World) -> None:
    world.found()
    assert world.store.policies.policy() == Policy()
    assert world.policies.set_policy({ICS: "false", ORDERS: "FALSE"}) == Policy(False, frozenset({"orders"}))
    assert world.policies.set_policy({ICS: ""}) == Policy(True, frozenset({"orders"})), "what is not named stays"
    assert world.policies.set_policy({ORDERS: "true"}) == world.store.policies.policy() == Policy()


def test_one_wrong_change_changes_nothing(world: World) -> None:
    world.found()
    with pytest.raises(InvalidOptionError):
        world.policies.set_policy({ICS: "false", ORDERS: "perhaps"})
    assert world.store.policies.policy() == Policy()


def test_each_change_is_an_event_and_no_change_is_none(world: World) -> None:
    world.found()
    for _ in range(2):
        world.policies.set_policy({ICS: "false"})
    world.policies.set_policy({ICS: ""})
    entries = cast(list[tuple[str, dict[str, str]]], world.redis.xrange(GroupKeys(world.group).events))
    reasons = [fields["why"] for _, fields in entries if fields["event"] == "policy"]
    assert reasons == [f"{ICS} is false", f"{ICS} is at its default"]


def test_a_policy_that_is_set_before_the_group_exists_applies_then(world: World) -> None:
    world.policies.set_policy({ICS: "false"})
    world.found()
    assert world.store.policies.policy() == Policy(accept_individual_commit=False)


CLUSTER = Policy(refused_topics=frozenset({"orders"}))


@pytest.mark.parametrize(
    ("group", "cluster", "shares", "ordered"),
    [
        pytest.param(Policy(), None, True, False, id="the cluster has none"),
        pytest.param(Policy(), Policy(), True, False, id="both allow it"),
        pytest.param(Policy(), CLUSTER, False, True, id="a topic in all groups"),
        pytest.param(CLUSTER, Policy(), False, True, id="a topic in this group"),
        pytest.param(Policy(), Policy(accept_individual_commit=False), False, False, id="the cluster"),
        pytest.param(Policy(), UNKNOWN_POLICY, False, True, id="the cluster's may not be read"),
        pytest.param(Policy(False), CLUSTER, False, True, id="the group, and a topic in all groups"),
    ],
)
def test_the_strictest_level_holds(group: Policy, cluster: Policy | None, shares: bool, ordered: bool) -> None:
    both = replace(group, cluster=cluster)
    assert (both.may_share("orders"), both.in_order("orders")) == (shares, ordered)
    assert both.of_group == group
    assert policy_of(both.fields).may_share("orders") == shares
    assert policy_of(both.fields).in_order("orders") == ordered


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        pytest.param(Policy(cluster=Policy(False)), "--cluster --set accept.individual.commit=true", id="cluster"),
        pytest.param(Policy(cluster=CLUSTER), "--topic orders --set accept.range.fetch=true", id="topic"),
        pytest.param(CLUSTER, "g --set accept.range.fetch:orders=true", id="group"),
    ],
)
def test_the_remedy_names_the_command_of_the_level(policy: Policy, words: str) -> None:
    with pytest.raises(CodedError) as refused:
        refuse_demand(policy, "g", ["bills", "orders"], "it demands parts", "do without")
    assert f"change the policy: coop-kafka policy {words} --execute" in str(refused.value)
    refuse_demand(policy.of_topics, "g", ["bills"], "it demands parts", "do without")
