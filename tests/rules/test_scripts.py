"""What each script of Redis keeps to (docs/protocol.md#scripts)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from coordinator.errors import StateFormatError
from coordinator.progress.ownership import Fact
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.redis.verb import Reply
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE
from coordinator.values.verdicts import Superseded
from store_world import BIG, LOWER, SESSION, TP, UPPER, WANTED, World, lane, offset

ON_EACH_SERVER = True
BOTH = {
    "delete": lambda verbs: verbs.delete(),
    "restore": lambda verbs: verbs.restore({"meta": {"nonce": "bb", "commit_seq": "3"}}, "a copy"),
}
Verb = Callable[[OperatorVerbs], object]


def test_check_then_write__a_key_of_another_type_is_a_named_error(world: World) -> None:
    """Rule: check-then-write.

    A script checks everything that it reads and everything that it was asked to write, and writes last.
    """
    me = world.owner(p0=43)
    world.redis.set(GroupKeys(world.group).ics(TP), "x")
    with pytest.raises(StateFormatError):
        world.commit(me, offset(lane("aa.1", 43, 44)))
    assert world.positions() == {str(WHOLE): "43"}


def dump(world: World) -> dict[str, object]:
    names = OperatorVerbs.of_group(world.client, world.group).names()
    return {name: world.redis.type(name) for name in names}


def work(world: World) -> dict[str, object]:
    """A member acquires a range, and is lost. The keys of the group then."""
    world.store.positions.acquire(world.join(), WANTED)
    return dump(world)


class LateClient(RedisClient):
    """Something happens before its scripts reach Redis, which then runs each of them twice."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.meanwhile: Callable[[], object] = lambda: None

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        self.meanwhile()
        super().run(verb, keys, args)
        return super().run(verb, keys, args)


@pytest.fixture
def late(world: World) -> Iterator[LateClient]:
    with closing(LateClient(world.url)) as client:
        yield client


@pytest.mark.parametrize("verb", BOTH.values(), ids=BOTH)
def test_whole_group__a_call_after_a_member_has_worked_changes_nothing(
    world: World, late: LateClient, verb: Verb
) -> None:
    """Rule: whole-group. `delete` and `restore` name the keys that an operator has listed."""
    world.found(p0=5)
    left: list[dict[str, object]] = []
    late.meanwhile = lambda: left.extend([work(world)])
    with pytest.raises(Superseded):
        verb(OperatorVerbs.of_group(late, world.group, lambda: world.now + SESSION + 1))
    assert dump(world) == left[0]


@pytest.mark.parametrize("verb", BOTH.values(), ids=BOTH)
def test_whole_group__a_call_that_is_sent_twice_is_done_once(world: World, late: LateClient, verb: Verb) -> None:
    world.found(p0=5)
    work(world)
    verb(OperatorVerbs.of_group(late, world.group, lambda: world.now + SESSION + 1))
    assert world.positions() == {}


def test_numbers_as_text__individual_commits_too_large_for_a_double_are_joined_exactly(world: World) -> None:
    """Rule: numbers-as-text. Scripts compare offsets and hashes as text."""
    me = world.owner({str(WHOLE): f"{BIG + 2}-{BIG + 2} {BIG + 4}-9999999999999999"}, p0=BIG)
    assert world.commit(me, offset(lane("aa.1", BIG, BIG + 1))) == {}
    assert world.positions() == {str(WHOLE): str(BIG + 1)}
    assert world.commit(me, offset(lane("aa.1", BIG, BIG + 2))) == {}
    assert world.positions() == {str(WHOLE): str(BIG + 3)}
    assert world.commit(me, offset(lane("aa.1", BIG, BIG + 4))) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "10000000000000000"}, {})


@pytest.mark.parametrize("first", range(BIG, BIG + 4), ids=["1", "2", "3", "4"])
def test_numbers_as_text__every_offset_too_large_for_a_double_is_counted_exactly(world: World, first: int) -> None:
    me = world.owner({str(WHOLE): f"{first + 2}-{first + 2}"}, p0=first)
    assert world.commit(me, offset(lane("aa.1", first, first + 2))) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): str(first + 3)}, {})


def test_numbers_as_text__positions_too_large_for_a_double_are_compared_exactly(world: World) -> None:
    me = world.owner(p0=BIG - 1)
    end = offset(lane("aa.1", BIG - 1, BIG))
    world.commit(me, end)
    assert world.store.positions.stable(["orders"])[TP] == BIG
    world.store.positions.claim(end, {TP: (Fact(WHOLE, BIG - 1),)})
    assert world.store.positions.stable(["orders"])[TP] == BIG


def test_numbered_calls__a_call_that_arrives_after_the_next_one_changes_nothing(world: World) -> None:
    """Rule: numbered-calls. A member numbers the calls that it makes one after the other."""
    world.found()
    me = world.join()
    first, second, third, later = (replace(me, number=str(n)) for n in (8, 9, 10, 11))
    world.assign(world.join("m-2", "i2"), {"m-2": WANTED})
    world.store.positions.acquire(second, WANTED)
    world.store.positions.acquire(second, WANTED)  # the client itself may send one twice
    end = offset(lane("aa.1", 0, 10))
    world.commit(third, end)
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.authorize(second, end)  # no batch begins that would never end
    assert world.store.members.release(later, WANTED).value == 1
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.acquire(first, WANTED)
    world.store.members.heartbeat(me)  # made meanwhile: it has no number
    assert read_group(world.client, world.group).owners[TP] == (), "nothing is owned that nobody knows of"
    assert not world.redis.exists(GroupKeys(world.group).batches)


def test_owner_reads_own_segments__and_all_only_beside_individual_commits(world: World) -> None:
    """Rule: owner-reads-own-segments. A reply holds only the ranges that its member needs."""
    world.found(p0=43)
    one, two = world.join(), world.join("m-2", "i2")
    world.assign(one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    assert world.store.members.look(two).value.mine == {TP: (UPPER,)}, "nor the assignment of another member"
    world.store.positions.acquire(one, {TP: (LOWER,)})
    for ics, seen in (({}, (UPPER,)), ({str(LOWER): "45-47"}, (LOWER, UPPER))):
        world.set_ics(ics)
        acquired = world.store.positions.acquire(two, {TP: (UPPER,)}).value
        assert [s.hashes for s in acquired.progress[TP].segments] == [UPPER]
        assert tuple(s.hashes for p in acquired.whole.values() for s in p.segments) == seen
