"""Standbys in a real Redis (rule: standby-takes-over). Transition tests are named by the arrow."""

from dataclasses import replace

from coordinator.assignment.assignors.assignor import Assignment
from coordinator.redis.group_state import STANDBY, WORKING
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Look
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.views import view
from store_world import LONGEST, LOWER, SESSION, TP, UPPER, WANTED, World, lane, offset

ON_EACH_SERVER = True
LEASE_OVER = SESSION + 1


def looks(world: World, caller: Caller) -> Look:
    return world.store.members.look(caller).value


def assigned(world: World, caller: Caller, assignment: Assignment) -> Look:
    """The next look of a member that computed an assignment."""
    look = looks(world, caller)
    assert look.occasion, "it is its turn"
    assert look.members == tuple(sorted(assignment))
    world.store.members.assign(caller, look.occasion, "test 1", assignment)
    return looks(world, caller)


def roles(world: World) -> dict[str, str]:
    return dict(read_group(world.client, world.group).standbys)


def shown(world: World) -> dict[str, str]:
    """The state of each member, as `describe` has it."""
    state = replace(read_group(world.client, world.group), now_ms=world.now)
    return {m.member: m.state for m in view(world.group, state).members}


def owner_and_standby(world: World) -> tuple[Caller, Caller]:
    """A member that owns everything, and a standby that has looked."""
    owner = world.join()
    assigned(world, owner, {"m-1": WANTED})
    world.store.positions.acquire(owner, WANTED)
    standby = world.standing_by("m-2")
    assert looks(world, standby).role == STANDBY
    return owner, standby


def test_standby_to_working_when_the_owner_is_leaving_with_an_unconfirmed_batch(founded: World) -> None:
    owner, standby = owner_and_standby(founded)
    assert founded.store.members.leave(owner, WANTED) == 1
    assert looks(founded, standby).members == ("m-2",)
    assert founded.store.positions.acquire(standby, WANTED).value.ownership == {TP: ()}, "the lease runs"


def test_standby_to_working_when_the_batch_of_the_owner_hangs_and_the_owner_is_the_standby_then(world: World) -> None:
    world.found()
    first = world.standing_by("m-1")
    assigned(world, first, {"m-1": WANTED})
    epoch = world.store.positions.acquire(first, WANTED).value.ownership[TP][0].epoch
    world.store.positions.authorize(first, offset(lane(epoch, 0, 10)))
    second = world.standing_by("m-2")
    for _ in range(LONGEST // SESSION + 1):
        world.lapse(SESSION)
        world.store.members.heartbeat(first, reading=True)
        role = looks(world, second).role
    assert (role, roles(world)) == (WORKING, {"m-1": STANDBY, "m-2": WORKING})
    assert looks(world, first).role == STANDBY


def test_one_standby_works_for_each_lost_member(founded: World) -> None:
    one, two = founded.join("m-1"), founded.join("m-2")
    assigned(founded, one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    standbys = [founded.standing_by(f"m-{number}") for number in (3, 4, 5)]
    founded.lapse(LEASE_OVER - 1)
    founded.store.members.heartbeat(two)
    for standby in standbys:
        founded.store.members.heartbeat(standby)
    founded.lapse(1)
    look = looks(founded, standbys[1])
    assert look.members == ("m-2", "m-4"), "the one that looks lives for certain"
    assert {looks(founded, s).role for s in (standbys[0], standbys[2])} == {STANDBY}
    founded.outlive(standbys[0])
    assert looks(founded, standbys[0]).members == ("m-3",), "nothing else is alive"
    assert looks(founded, standbys[2]).role == WORKING, "two members worked at the last assignment"


def test_a_working_member_that_looks_first_lets_a_standby_take_over(founded: World) -> None:
    one, two = founded.join("m-1"), founded.join("m-2")
    assigned(founded, one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    standby = founded.standing_by("m-3")
    founded.lapse(LEASE_OVER - 1)
    founded.store.members.heartbeat(two)
    founded.store.members.heartbeat(standby)
    founded.lapse(1)
    assert looks(founded, two).members == ("m-2", "m-3")
    assert looks(founded, standby).role == WORKING


def test_a_dead_standby_takes_nothing_over(founded: World) -> None:
    one, two = founded.join("m-1"), founded.join("m-2")
    assigned(founded, one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    founded.standing_by("m-3")
    founded.outlive(two)
    assert looks(founded, two).members == ("m-2",)
    assert (roles(founded), founded.events("takeover")) == ({"m-3": STANDBY}, [])


def test_an_ordinary_member_that_joins_takes_the_place_instead(founded: World) -> None:
    _, standby = owner_and_standby(founded)
    founded.lapse(LEASE_OVER)
    founded.join("m-3")
    assert looks(founded, standby).role == STANDBY


def test_no_standby_takes_over_if_its_lease_has_ended_or_it_is_leaving(founded: World) -> None:
    owner, standby = owner_and_standby(founded)
    leaving = founded.standing_by("m-3")
    founded.redis.sadd(GroupKeys(founded.group).leaving, "m-3")
    founded.outlive(leaving)
    other = founded.join("m-4", role="")
    founded.store.members.leave(other, {})
    looks(founded, leaving)
    assert roles(founded) == {"m-2": STANDBY, "m-3": STANDBY}
    assert looks(founded, standby).role == WORKING, "it lives"
    assert looks(founded, owner).role == "", "an ordinary member has no role"


def test_a_group_of_standbys_has_one_working_member(founded: World) -> None:
    standbys = [founded.standing_by(f"m-{number}") for number in (1, 2, 3)]
    assert [looks(founded, s).role for s in standbys] == [WORKING, STANDBY, STANDBY]
    assert assigned(founded, standbys[0], {"m-1": WANTED}).mine == WANTED
    assert shown(founded) == {"m-1": WORKING, "m-2": STANDBY, "m-3": STANDBY}


def test_a_life_that_follows_within_the_lease_goes_on_working(founded: World) -> None:
    first, second = founded.standing_by("m-1"), founded.standing_by("m-2")
    assigned(founded, first, {"m-1": WANTED})
    again = founded.standing_by("m-1", "i2")
    assert [looks(founded, caller).role for caller in (second, again)] == [STANDBY, WORKING]


def test_a_life_that_follows_a_takeover_is_the_standby(founded: World) -> None:
    first, second = founded.standing_by("m-1"), founded.standing_by("m-2")
    assigned(founded, first, {"m-1": WANTED})
    founded.outlive(second)
    assert assigned(founded, second, {"m-2": WANTED}).role == WORKING
    assert looks(founded, founded.standing_by("m-1", "i2")).role == STANDBY
    assert looks(founded, second).role == WORKING
    assert shown(founded) == {"m-1": STANDBY, "m-2": WORKING}


def test_a_standby_acquires_nothing_by_an_assignment_that_is_older_than_its_role(founded: World) -> None:
    one, two = founded.join("m-1"), founded.join("m-2")
    assigned(founded, one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    founded.store.members.leave(two, {TP: ()})
    founded.join("m-3")
    again = founded.standing_by("m-2", "i2")
    assert founded.store.members.assignment()["m-2"] == {TP: (UPPER,)}
    assert looks(founded, again).mine == {}


def test_the_same_life_that_joins_again_keeps_its_role(founded: World) -> None:
    """After a loss of state Redis knows no role: the life does."""
    assert looks(founded, founded.standing_by("m-1", role=WORKING)).role == WORKING
    assert looks(founded, founded.standing_by("m-2", role=WORKING)).role == WORKING
    assert looks(founded, founded.standing_by("m-3")).role == STANDBY


def test_a_member_that_leaves_or_no_longer_wants_to_be_a_standby_has_no_role(founded: World) -> None:
    owner, standby = owner_and_standby(founded)
    founded.store.members.leave(standby, {})
    assert roles(founded) == {}
    founded.standing_by("m-2", "i2")
    founded.join("m-2", "i3")
    assert roles(founded) == {}
    assert looks(founded, owner).members == ("m-1", "m-2")


def test_any_other_text_than_standby_keeps_no_member_from_work(founded: World) -> None:
    owner, standby = owner_and_standby(founded)
    founded.redis.hset(GroupKeys(founded.group).standbys, mapping={"m-2": "\x1b", "m-gone": STANDBY})
    assert looks(founded, owner).members == ("m-1", "m-2")
    assert looks(founded, standby).role == "\x1b"


def test_the_roles_expire_with_the_group(founded: World) -> None:
    owner_and_standby(founded)
    assert founded.kept_for_ever() == []
