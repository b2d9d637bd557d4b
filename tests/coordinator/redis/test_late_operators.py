"""Calls of an operator that name all keys of a group, and reach Redis after a member has worked (rule: whole-group)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pytest

from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.verb import Reply
from coordinator.values.verdicts import Superseded
from store_world import SESSION, WANTED, StoreServer, World

Verb = Callable[[OperatorVerbs], object]
BOTH = {
    "delete": lambda verbs: verbs.delete(),
    "restore": lambda verbs: verbs.restore({"meta": {"nonce": "bb", "commit_seq": "3"}}, "a copy"),
}


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
def world(redis_url: str) -> Iterator[World]:
    with closing(StoreServer(redis_url)) as server:
        yield World(server)


@pytest.fixture
def late(redis_url: str) -> Iterator[LateClient]:
    with closing(LateClient(redis_url)) as client:
        yield client


def work(world: World) -> dict[str, object]:
    """A member acquires a range, and is lost. The keys of the group then."""
    world.store.positions.acquire(world.join(), WANTED)
    return dump(world)


def dump(world: World) -> dict[str, object]:
    names = OperatorVerbs.of_group(world.client, world.group).names()
    return {name: world.redis.type(name) for name in names}


@pytest.mark.parametrize("verb", BOTH.values(), ids=BOTH)
def test_a_call_that_comes_after_a_member_has_worked_changes_nothing(
    world: World, late: LateClient, verb: Verb
) -> None:
    world.found(p0=5)
    left: list[dict[str, object]] = []
    late.meanwhile = lambda: left.extend([work(world)])
    with pytest.raises(Superseded):
        verb(OperatorVerbs.of_group(late, world.group, lambda: world.now + SESSION + 1))
    assert dump(world) == left[0]


@pytest.mark.parametrize("verb", BOTH.values(), ids=BOTH)
def test_a_call_that_is_sent_twice_is_done_once(world: World, late: LateClient, verb: Verb) -> None:
    world.found(p0=5)
    work(world)
    verb(OperatorVerbs.of_group(late, world.group, lambda: world.now + SESSION + 1))
    assert world.positions() == {}
