"""Who computes an assignment, by which assignor, and under which policies (docs/protocol.md#ownership)."""

from typing import cast

import pytest

from coordinator.assignment.policies import UNKNOWN_POLICY, Policy
from coordinator.assignment.protocols import Agreement, Protocol, agree
from coordinator.redis.keys import GroupKeys
from store_world import World

ON_EACH_SERVER = True
CLUSTER = Policy(refused_topics=frozenset({"orders"}))


ICS, ORDERS = "accept.individual.commit", "accept.range.fetch:orders"


V0, V1, RANGE = Protocol("mine", 0), Protocol("mine", 1), Protocol("range", 1)


UNREADABLE_WHY = (
    ": a member may not read the topic coop-kafka-policies. Nothing is shared, and each partition is read in order, "
    "until its Kafka user gets READ on the topic"
)


def copies(world: World) -> dict[str, str]:
    fields = cast(dict[str, str], world.redis.hgetall(GroupKeys(world.group).policy))
    return {name.removeprefix("cluster:"): value for name, value in fields.items() if name.startswith("cluster:")}


@pytest.mark.parametrize(
    ("members", "chosen"),
    [
        pytest.param({"A": [V0], "B": [V0], "C": [V0]}, V0, id="phase 1: everybody knows v0"),
        pytest.param({"A": [V1, V0], "B": [V0], "C": [V0]}, V0, id="phase 2: A knows v1 too"),
        pytest.param({"A": [V1, V0], "B": [V1, V0], "C": [V0]}, V0, id="phase 3: B too"),
        pytest.param({"A": [V1, V0], "B": [V1, V0], "C": [V1, V0]}, V1, id="phase 4: all prefer v1"),
        pytest.param({"A": [V1], "B": [V1], "C": [V1]}, V1, id="v0 is dropped later, one by one as well"),
        pytest.param({"A": [V1, V0]}, V1, id="a single member gets its first choice"),
        pytest.param({"A": [V1, V0], "B": [V0, V1], "C": [V0, V1]}, V0, id="the majority of first votes wins"),
        pytest.param({"A": [RANGE, V0], "B": [V0, RANGE]}, V0, id="ties break by name"),
        pytest.param({"A": [V1, V0], "B": [V0, V1]}, V0, id="and then by version"),
        pytest.param(
            {"A": [V1, RANGE, V0], "B": [RANGE, V0], "C": [V0, RANGE]},
            RANGE,
            id="votes count for assignors that all know, not for v1",
        ),
    ],
)
def test_common_assignor__members_vote_only_among_those_that_all_of_them_know(
    members: dict[str, list[Protocol]], chosen: Protocol
) -> None:
    """Rule: common-assignor. Members list assignors by preference."""
    assert agree(members) == Agreement(chosen, {})


def test_cluster_policies__a_group_has_the_latest_ones(world: World) -> None:
    """Rule: cluster-policies.

    Policies of the Kafka cluster, and of topics in all groups, are records of the compacted topic
    coop-kafka-policies.
    """
    world.found()
    copy = world.store.policies.copy
    copy("", Policy())
    assert copies(world) == {}, "no topic of policies, no copy"
    copy("-", UNKNOWN_POLICY)
    assert copies(world) == {"version": "-", ICS: "unknown"}
    copy("", Policy())
    assert copies(world) == {}, "there is none after all"
    copy("id-p 7", CLUSTER)
    assert copies(world) == {"version": "id-p 7", ICS: "true", ORDERS: "false"}
    for late in (("id-p 6", Policy()), ("-", UNKNOWN_POLICY), ("", Policy())):
        copy(*late)
        assert copies(world)[ORDERS] == "false", f"{late[0]!r} is no newer version"
    world.policies.set_policy({ORDERS: "true"})
    assert world.store.policies.policy().in_order("orders"), "the strictest level holds"
    copy("id-p 10", Policy())
    assert copies(world) == {"version": "id-p 10", ICS: "true"}
    copy("id-q 1", Policy(False))
    assert copies(world) == {"version": "id-q 1", ICS: "false"}, "another topic of policies"
    assert not world.kept_for_ever()
    reasons = [why for why in world.events("policy") if "cluster:" in why]
    assert reasons == [
        f"cluster:{ICS} is unknown{UNREADABLE_WHY}",
        f"cluster:{ICS} is at its default",
        f"cluster:{ORDERS} is false",
        f"cluster:{ORDERS} is at its default",
        f"cluster:{ICS} is false",
    ]
