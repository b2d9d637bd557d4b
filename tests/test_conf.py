"""The settings under conf/ do what they say, on a real server."""

import os
from collections.abc import Iterator

import pytest
import redis

from broker_jars import ROOT

LINE = (ROOT / "conf" / "redis.acl").read_text().split()


@pytest.fixture
def own_redis(redis_url: str) -> str:
    """Our own Valkey, where a test may add users."""
    if os.environ.get("COOP_REDIS"):
        pytest.skip("COOP_REDIS names a server of yours: this test needs our own, with the settings of conf/")
    return redis_url


@pytest.fixture
def confined(own_redis: str) -> Iterator[redis.Redis]:
    """A client who may do what the line in conf/redis.acl says."""
    _, user, *rules = LINE
    with redis.Redis.from_url(own_redis) as administrator:
        administrator.execute_command("ACL", "SETUSER", user, *rules)
        with redis.Redis.from_url(own_redis, username=user, password="change-me", decode_responses=True) as client:
            yield client
        administrator.execute_command("ACL", "DELUSER", user)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("PING", id="connect"),
        pytest.param("HSET coop:v1:{acl}:meta state Empty", id="write a hash"),
        pytest.param("HGETALL coop:v1:{acl}:meta", id="read a hash"),
        pytest.param("ZADD coop:v1:{acl}:leases 1 m", id="write a lease"),
        pytest.param("XADD coop:v1:{acl}:events MAXLEN 1000 * event join", id="write an event"),
        pytest.param("XREVRANGE coop:v1:{acl}:events + - COUNT 1", id="show events"),
        pytest.param("XREAD COUNT 1 BLOCK 1 STREAMS coop:v1:{acl}:events $", id="follow events"),
        pytest.param("SREM coop:v1:groups acl", id="forget a deleted group"),
        pytest.param("PEXPIREAT coop:v1:{acl}:meta 1", id="let a group expire"),
        pytest.param("DEL coop:v1:{acl}:leases coop:v1:{acl}:events", id="delete a group"),
        pytest.param("INFO server", id="see the server's run id"),
        pytest.param("TIME", id="see the server's clock"),
        pytest.param("SCAN 0 MATCH coop:v1:*", id="look for groups"),
    ],
)
def test_the_acl_line_allows_what_we_need(confined: redis.Redis, command: str) -> None:
    confined.execute_command(*command.split())  # type: ignore[no-untyped-call]  # redis-py gives no types


def test_the_acl_line_allows_our_scripts(confined: redis.Redis) -> None:
    script = "redis.call('HSET', KEYS[1], 'at', redis.call('TIME')[1]); return redis.call('INFO', 'server')"
    assert "run_id" in str(confined.eval(script, 1, "coop:v1:{acl}:meta"))
    confined.delete("coop:v1:{acl}:meta")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("GET other:key", id="read a key that is not ours"),
        pytest.param("SET other:key 1", id="write a key that is not ours"),
        pytest.param("FLUSHALL", id="empty the server"),
        pytest.param("CONFIG SET maxmemory-policy allkeys-lru", id="change the server's settings"),
        pytest.param("KEYS *", id="block the server by listing every key"),
        pytest.param("SHUTDOWN NOSAVE", id="stop the server"),
        pytest.param("ACL LIST", id="see other users"),
    ],
)
def test_the_acl_line_forbids_everything_else(confined: redis.Redis, command: str) -> None:
    with pytest.raises(redis.exceptions.NoPermissionError):
        confined.execute_command(*command.split())  # type: ignore[no-untyped-call]  # redis-py gives no types


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        pytest.param("maxmemory-policy", "noeviction", id="no position is dropped to make room"),
        pytest.param("appendonly", "yes", id="every change is written down"),
        pytest.param("appendfsync", "everysec", id="what is written down is synced once a second"),
    ],
)
def test_valkey_runs_as_its_conf_says(own_redis: str, setting: str, value: str) -> None:
    with redis.Redis.from_url(own_redis, decode_responses=True) as client:
        assert client.config_get(setting) == {setting: value}
