"""Members in a real Redis: assigned, released, taken, fenced, expired. Transition tests are named by the arrow."""

import pytest

from coordinator.assignment.assignment_text import Ranges
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import SETTLE_MS, Leaving
from coordinator.redis.snapshot import read_group
from coordinator.values.ranges import WHOLE
from store_world import OTHER, SESSION, TP, WANTED, World

ON_EACH_SERVER = True


def test_an_assignment_for_members_of_which_one_has_left_since_is_not_recorded(world: World) -> None:
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    look = world.store.members.look(one).value
    world.store.members.leave(two, {})
    assert world.store.members.assign(one, look.occasion, "test 1", {"m-1": {}, "m-2": WANTED}).value == 0
    assert world.store.members.assignment() == {}


STOPPED, CUT_OFF = Leaving.of("", 0), Leaving.of("a task on h2 has not stopped", 0)


@pytest.mark.parametrize(
    ("leaving", "ends_ms"),
    [
        pytest.param(STOPPED, SETTLE_MS, id="all tasks have stopped: others wait a moment"),
        pytest.param(Leaving.of("", 1_500), SETTLE_MS - 1_500, id="less if the end took a while already"),
        pytest.param(Leaving.of("", 9_000), 0, id="never less than nothing"),
        pytest.param(CUT_OFF, 3 * SETTLE_MS, id="a task may read on: others wait for the lease"),
    ],
)
def test_others_wait_for_unconfirmed_ranges_as_long_as_the_leave_says(
    world: World, leaving: Leaving, ends_ms: int
) -> None:
    """Rule: leave-keeps-unconfirmed. A lease of three times the moment."""
    me = world.owner()
    key = GroupKeys(world.group)
    world.redis.zadd(key.leases, {"m-1": world.now + 3 * SETTLE_MS})
    world.redis.hset(key.meta, "session_ms", str(3 * SETTLE_MS))
    assert world.store.members.leave(me, WANTED, leaving) == 1
    state = read_group(world.client, world.group)
    assert state.leases_ms == {"m-1": world.now + ends_ms}
    assert state.leaving == {"m-1"}
    assert last_events(world.client, world.group, 1)[0].why.endswith(
        f"wait for the end of the lease: {leaving.writers}"
    )


def test_a_leave_lengthens_no_lease(world: World) -> None:
    me = world.owner()
    world.store.members.leave(me, WANTED, STOPPED)
    assert read_group(world.client, world.group).leases_ms == {"m-1": world.now + SESSION}


@pytest.mark.parametrize("unconfirmed", [WANTED, {TP: ()}], ids=["in a batch", "between batches"])
def test_the_slices_of_a_member_that_left_in_order_are_no_evidence(world: World, unconfirmed: Ranges) -> None:
    """Rule: strike-needs-evidence. Neither its next life nor another member strikes them."""
    me = world.owner()
    world.store.poison.working(me, f"orders 0 {WHOLE} 0-9;")
    world.store.members.leave(me, unconfirmed, STOPPED)
    world.lapse(2 * SESSION)
    world.store.poison.strike("m-1")
    world.join(incarnation="i2")
    assert world.store.poison.strikes() == ()


def test_finish_tells_others_the_targets_that_were_not_known_at_the_join(world: World) -> None:
    world.found(p0=5, p1=7)
    one = world.aiming("m-1", {TP: 5})
    two = world.aiming("m-2", {TP: 6})
    assert world.store.members.finish(one, {TP: 5, OTHER: 8}).value is False
    assert world.store.members.look(two).value.targets == {TP: 6, OTHER: 8}


def test_a_member_that_leaves_computes_nothing_for_the_others(world: World) -> None:
    world.found()
    one, two = world.join("m-1"), world.join("m-2", "i2")
    world.store.positions.acquire(one, WANTED)
    world.store.members.leave(one, {TP: (WHOLE,)})
    assert world.store.members.look(one).value.occasion == ""
    assert world.store.members.look(two).value.members == ("m-2",)
