"""Policies of the group and of the cluster that change, and an upgrade from a plain Kafka source to sharing.

1 the group's policy    2 the topic's    3 queries that start may share    4 the others are restarted, one by one
"""

from collections.abc import Mapping

from coordinator.assignment.policies import GROUP_POLICY, TOPIC_POLICY
from coordinator.errors import CoopKafkaError
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.policies import RedisPolicies
from simulation.applications import UPGRADED, Applications
from simulation.kafka import TOPIC
from simulation.redis_server import Line
from simulation.world import World

_ON_TOPIC = f"{TOPIC_POLICY}:{TOPIC}"


def begin_plain(world: World, apps: Applications) -> None:
    """Forbid sharing everywhere, as with a plain Kafka source."""
    apps.upgrade = 0
    _set(world, {GROUP_POLICY: "false", _ON_TOPIC: "false"})


def switch(world: World, apps: Applications) -> None:
    """Take the next step of the upgrade. After the last, and where there is none, set any policy to any value."""
    match apps.upgrade:
        case 0:
            _then(world, apps, {GROUP_POLICY: "true"})
        case 1:
            _then(world, apps, {_ON_TOPIC: "true"})
        case 2:
            apps.upgrade = 3
            world.trace("UPGRADE: queries that start now may share")
        case 3:
            _restart_one(world, apps)
        case _ if world.chance(0.4):
            _set_for_all_groups(world)
        case _:
            names = world.random.choice(((GROUP_POLICY,), (_ON_TOPIC,), (GROUP_POLICY, _ON_TOPIC)))
            _set(world, {name: world.random.choice(("true", "false", "")) for name in names})


def _then(world: World, apps: Applications, changes: Mapping[str, str]) -> None:
    if _set(world, changes):
        apps.upgrade += 1


def _restart_one(world: World, apps: Applications) -> None:
    old = [d for d in apps.running if not d.wishes.sharing]
    if not old:
        apps.upgrade = UPGRADED
        world.server.seen["upgraded"] += 1
        return
    driver = world.random.choice(old)
    driver.trace("UPGRADE: is restarted")
    apps.restart(driver)


def _set_for_all_groups(world: World) -> None:
    """An administrator sets policies of the Kafka cluster. The topic of policies keeps all changes."""
    names = world.random.choice(((GROUP_POLICY,), (_ON_TOPIC,), (GROUP_POLICY, _ON_TOPIC)))
    changes = {name: world.random.choice(("true", "true", "false")) for name in names}
    world.trace(f"POLICY of all groups {changes}")
    world.kafka.cluster_policies.append(changes)
    world.server.seen["cluster policy set"] += 1


def allow_all(world: World) -> None:
    """Pinned members demand parts of partitions, and in partition order a parked record stops its partition."""
    world.kafka.cluster_policies.append({GROUP_POLICY: "true", _ON_TOPIC: "true"})
    _set(world, {GROUP_POLICY: "true", _ON_TOPIC: "true"})


def allow_again(world: World) -> None:
    """A recovery has restored a policy that forbids: the operator follows the errors of the queries."""
    state = world.invariants.state
    if state.forbids and state.run_id != "0":
        allow_all(world)


def _set(world: World, changes: Mapping[str, str]) -> bool:
    line = Line(world.server, world.trace)
    policies = RedisPolicies(ScriptCalls(line, world.group, now=lambda: world.server.now_ms))
    try:
        world.trace(f"POLICY {policies.set_policy(changes)}")
    except CoopKafkaError as error:
        world.trace(f"an operator could not set {changes}: {error}")
        return False
    world.server.seen["policy set"] += 1
    return True
