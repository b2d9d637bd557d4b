"""Members that an operator drains (rule: drain-hands-over). Transition tests are named by the arrow."""

from dataclasses import replace

import pytest

from coordinator.assignment.assignors.assignor import Assignment
from coordinator.errors import ConflictingOptionsError
from coordinator.redis.group_state import WORKING, GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller, Look
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.draining import chosen, drain
from store_world import LOWER, SESSION, TP, UPPER, WANTED, World

ON_EACH_SERVER = True


@pytest.fixture
def two(world: World) -> tuple[Caller, Caller]:
    """Two members that own a half each."""
    world.found()
    one, two = world.join("m-1", host="h1"), world.join("m-2", host="h2")
    assign(world, one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    for caller, hashes in ((one, LOWER), (two, UPPER)):
        world.store.positions.acquire(caller, {TP: (hashes,)})
    return one, two


def drained_by_hand(world: World, *members: str) -> None:
    drain(OperatorVerbs.of_group(world.client, world.group, now=lambda: world.now), members)


def state(world: World) -> GroupState:
    return replace(read_group(world.client, world.group), now_ms=world.now)


def looks(world: World, caller: Caller) -> Look:
    return world.store.members.look(caller).value


def assign(world: World, caller: Caller, assignment: Assignment) -> None:
    """An assignment that this member computes at its turn."""
    look = looks(world, caller)
    assert look.members == tuple(sorted(assignment))
    assert world.store.members.assign(caller, look.occasion, "test 1", assignment).value


def test_drained_to_working_when_the_others_are_lost(world: World, two: tuple[Caller, Caller]) -> None:
    """Also if no other member computed an assignment in the meantime: the occasion is that of before."""
    drained, _ = two
    drained_by_hand(world, "m-1")
    world.lapse(SESSION)
    world.store.members.heartbeat(drained)
    world.lapse(1)
    look = looks(world, drained)
    assert (look.role, look.members) == (WORKING, ("m-1",))
    assign(world, drained, {"m-1": WANTED})
    assert looks(world, drained).mine == WANTED


def test_drained_to_working_when_its_query_starts_again(world: World, two: tuple[Caller, Caller]) -> None:
    drained_by_hand(world, "m-1")
    again = world.join("m-1", "i2", host="h1")
    look = looks(world, again)
    assert (look.role, look.members) == ("", ("m-1", "m-2")), "the next assignment counts it"


def test_members_are_chosen_by_id_or_host(world: World, two: tuple[Caller, Caller]) -> None:
    assert chosen(state(world), "m-2", None) == ("m-2",)
    assert chosen(state(world), None, "h1") == ("m-1",)
    assert chosen(state(world), "m-9", None) == chosen(state(world), None, "h9") == ()
    world.lapse(SESSION + 1)
    assert chosen(state(world), "m-2", None) == (), "its lease has ended"


def test_a_pinned_member_cannot_be_drained(world: World) -> None:
    world.found()
    world.pin("m-1", LOWER)
    world.pin("m-2", UPPER)
    with pytest.raises(ConflictingOptionsError, match="m-1 is pinned"):
        chosen(state(world), "m-1", None)
