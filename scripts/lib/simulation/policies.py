"""Policies of the group that change while it lives, and an upgrade from a plain Kafka source to sharing in four steps.

1 the group's policy    2 the topic's    3 queries that start may share    4 the others are restarted, one by one
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from coordinator.assignment.assignment_text import ranges_of
from coordinator.assignment.policies import GROUP_POLICY, TOPIC_POLICY, Policy
from coordinator.errors import CoopKafkaError
from coordinator.ranges import WHOLE
from coordinator.redis.store import RedisStore
from coordinator.settings import GroupSettings
from simulation.actors import Stopped
from simulation.kafka import TOPIC
from simulation.redis_server import Line
from simulation.sink import Violation

if TYPE_CHECKING:
    from simulation.world import World

_ON_TOPIC = f"{TOPIC_POLICY}:{TOPIC}"
DONE = 4


def begin_plain(world: "World") -> None:
    """Nobody may share anything, as with a plain Kafka source."""
    world.upgrade = 0
    _set(world, {GROUP_POLICY: "false", _ON_TOPIC: "false"})


def switch(world: "World") -> None:
    """The next step of the upgrade; after the last, and where there is none, any policy to any value."""
    match world.upgrade:
        case 0:
            _then(world, {GROUP_POLICY: "true"})
        case 1:
            _then(world, {_ON_TOPIC: "true"})
        case 2:
            world.upgrade = 3
            world.trace("UPGRADE: queries that start now may share")
        case 3:
            _restart_one(world)
        case _:
            names = world.random.choice(((GROUP_POLICY,), (_ON_TOPIC,), (GROUP_POLICY, _ON_TOPIC)))
            _set(world, {name: world.random.choice(("true", "false", "")) for name in names})


def _then(world: "World", changes: Mapping[str, str]) -> None:
    if _set(world, changes):
        world.upgrade += 1


def _restart_one(world: "World") -> None:
    old = [d for d in world.running if not d.wishes.sharing]
    if not old:
        world.upgrade = DONE
        world.server.seen["upgraded"] += 1
        return
    driver = world.random.choice(old)
    driver.trace("UPGRADE: is restarted")
    if not driver.ended:
        world.scheduler.throw(driver.main, Stopped())
    for actor in driver.actors:
        world.scheduler.kill(actor)
    world.orphan(driver)
    world.start(driver.checkpoint)


def _set(world: "World", changes: Mapping[str, str]) -> bool:
    store = RedisStore.of(Line(world.server, world.trace), GroupSettings(world.group), now=lambda: world.server.now_ms)
    try:
        world.trace(f"POLICY {store.set_policy(changes)}")
    except CoopKafkaError as error:
        world.trace(f"an operator could not set {changes}: {error}")
        return False
    world.server.seen["policy set"] += 1
    return True


def obeyed(assignment: Mapping[str, str], policy: Policy, shares: Callable[[str], bool]) -> bool:
    """Whether a partition is shared; raises `Violation` where one is shared that may not be."""
    shared = False
    for member, text in assignment.items():
        for tp, hashes in ranges_of(text).items():
            part = bool(hashes) and hashes != (WHOLE,)
            if part and not policy.may_share(tp.topic):
                raise Violation(f"POLICY: {member} is given {hashes} of {tp}, which may not be shared")
            if part and not shares(member):
                raise Violation(f"POLICY: {member} does not share and is given {hashes} of {tp}")
            shared |= part
    return shared


def agreed(assignment: Mapping[str, str], protocol: str, known: Callable[[str], str]) -> None:
    """Raise `Violation` if an assignor assigns ranges to a member that does not know it (rule: common-assignor)."""
    for member, text in assignment.items():
        if any(ranges_of(text).values()) and protocol not in known(member).split(","):
            raise Violation(f"PROTOCOL: {member} is given {text} by {protocol}, and knows {known(member)} only")
