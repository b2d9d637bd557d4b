"""The code at the beginning of a server's error selects our error, never a word in the name of a key."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import redis_servers
from coordinator.errors import CoopKafkaError, RedisAccessError, RedisNotReadyError, StateFormatError
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE
from store_world import TP, WANTED, StoreServer, World

ON_EACH_SERVER = True


@pytest.mark.parametrize("name", ["ZOOM", "NOPERM", "READONLY", "LOADING CLUSTERDOWN", "NOAUTH ACL failure"])
def test_a_damaged_group_whose_name_is_a_code_is_damaged(store_server: StoreServer, name: str) -> None:
    world = World(store_server, name)
    world.found()
    me = world.join()
    world.redis.hset(GroupKeys(world.group).owners(TP), str(WHOLE), "nobody")
    with pytest.raises(
        StateFormatError, match=r"did not write: the entry .* of coop:v1:.*:owners:orders:0 is damaged\. Rem"
    ):
        world.store.positions.acquire(me, WANTED)


def test_a_topic_whose_name_is_a_code_is_damaged(world: World) -> None:
    world.found()
    me = world.join()
    world.redis.hset(GroupKeys(world.group).topics, "OOM ", "junk")
    with pytest.raises(StateFormatError, match=r"OOM .*is damaged"):
        world.store.positions.acquire(me, WANTED)


@contextmanager
def setting(world: World, name: str, value: str) -> Iterator[None]:
    """Another setting of the server, or of every node, for the body of `with`."""
    nodes = redis_servers.nodes_of(world.redis)
    before = nodes[0].config_get(name)[name]
    try:
        for node in nodes:
            node.config_set(name, value)
        yield
    finally:
        for node in nodes:
            node.config_set(name, str(before))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("maxmemory", "its memory is full", id="no memory left"),
        pytest.param("min-replicas-to-write", "too few replicas", id="too few replicas"),
    ],
)
def test_a_server_that_takes_no_writes_now_is_not_ready(world: World, name: str, words: str) -> None:
    with (
        setting(world, name, "1"),
        pytest.raises(RedisNotReadyError, match=f"the Redis at .* takes no writes: .*{words}"),
    ):
        world.found()
    world.found()


def refused(url: str, verb: Callable[[World], object]) -> CoopKafkaError:
    with pytest.raises(CoopKafkaError) as error:
        verb(World(StoreServer(url, RedisClient(url))))
    return error.value


@pytest.mark.parametrize("rule", ["-hset", "-exists", "-type"])
def test_a_user_without_the_right_to_a_scripts_command_is_refused(world: World, rule: str) -> None:
    user = f"confined-{rule[1:]}"
    nodes = redis_servers.nodes_of(world.redis)
    for node in nodes:
        node.execute_command("ACL", "SETUSER", user, "on", ">secret", "~*", "+@all", rule)  # type: ignore[no-untyped-call]
    try:
        error = refused(world.url.replace("://", f"://{user}:secret@"), World.found)
    finally:
        for node in nodes:
            node.execute_command("ACL", "DELUSER", user)  # type: ignore[no-untyped-call]
    assert isinstance(error, RedisAccessError), error
    assert "secret" not in str(error)
