"""The settings under conf/ work on a real server."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest
import redis
from pyspark.sql.streaming.datasource import ReadAllAvailable

from acl_users import OPERATOR, QUERY, AclUser
from command_runs import Run
from coordinator.redis.client import RedisClient
from coordinator.redis.events import follow
from exporters import exporter
from group_life import Life
from own_valkey import OwnValkey
from spark_coop_source.driver import reader_process
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.options.options import validate
from streams import keyed
from topics import Kafka

pytestmark = pytest.mark.server
OF_CLIENTS = {"evalsha", "script|load", "exists", "hgetall", "info", "sadd", "smembers", "srem", "time"} | {
    "xread",
    "xrevrange",
    "zrange",
}
"""Commands that are sent to any server; what is in the scripts comes on top."""
OF_CLUSTER_CLIENTS = {"asking", "cluster|slots", "command"}
ON_KAFKA = {"delete", "reset-offsets", "export", "import"}
Url = Callable[[AclUser], str]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnValkey]:
    """A Valkey for these tests alone, with both users of conf/redis.acl."""
    server = OwnValkey(tmp_path_factory.mktemp("acl"))
    try:
        with closing(redis.Redis.from_url(server.address)) as administrator:
            QUERY.added(administrator)
            OPERATOR.added(administrator)
        yield server
    finally:
        server.stop()


@pytest.fixture
def administrator(own: OwnValkey) -> Iterator[redis.Redis]:
    """Somebody who may do anything, with an empty list of refusals."""
    with redis.Redis.from_url(own.address, decode_responses=True) as client:
        client.acl_log_reset()
        yield client


def refusals(administrator: redis.Redis) -> set[str]:
    """The commands that were refused to anybody; redis-py goes on without `client setinfo`."""
    entries = cast(list[dict[str, Any]], administrator.acl_log())
    return {str(entry["object"]) for entry in entries} - {"client|setinfo"}


def calls_in_scripts() -> set[str]:
    """The commands of the Lua scripts."""
    texts = [script.read_text() for script in Path(str(files("coordinator.redis"))).rglob("*.lua")]
    return {name.lower() for text in texts for name in re.findall(r"redis\.p?call\([^)]*?'([A-Z]+)'", text)} | {"del"}


def test_the_acl_grants_exactly_the_commands_in_use() -> None:
    assert QUERY.granted == OF_CLIENTS | OF_CLUSTER_CLIENTS | calls_in_scripts()
    assert OPERATOR.granted == QUERY.granted | {"scan"}
    assert {*QUERY.rules} - {f"+{command}" for command in QUERY.granted} == {
        *("on", ">change-me", "resetkeys", "~coop:v1:*", "resetchannels", "-@all")
    }


def test_the_life_of_a_group_uses_every_command_that_is_granted(own: OwnValkey, administrator: redis.Redis) -> None:
    administrator.config_resetstat()
    Life(OPERATOR.url(own.address)).live()
    assert refusals(administrator) == set()
    used = {name.removeprefix("cmdstat_") for name in cast(dict[str, object], administrator.info("commandstats"))}
    assert OPERATOR.granted - OF_CLUSTER_CLIENTS <= used


@pytest.fixture
def reader(
    own: OwnValkey, kafka: Kafka, group: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[CoopKafkaStreamReader, str]]:
    """A query of a new group over a topic of five records, under the ACL; its topic."""
    monkeypatch.setattr(reader_process, "exit_on_sigterm", lambda: None)  # this process is pytest's
    topic = kafka.create_topic("acl")
    kafka.produce(topic, keyed(5))
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": QUERY.url(own.address),
    }
    made = CoopKafkaStreamReader(validate(options, streaming=True))
    yield made, topic
    made.stop()


def test_queries_and_the_command_line_work_under_the_acl(
    own: OwnValkey,
    administrator: redis.Redis,
    reader: tuple[CoopKafkaStreamReader, str],
    kafka: Kafka,
    group: str,
    run: Run,
    tmp_path: Path,
) -> None:
    query, topic = reader
    start = query.initialOffset()
    query.prepareForTriggerAvailableNow()
    end = query.latestOffset(start, ReadAllAvailable())
    assert query.partitions(start, end)
    assert query.latestOffset(end, ReadAllAvailable()) == end

    def ran(user: AclUser, *words: str) -> str:
        verb, *more = words
        name = (group,) if verb != "list" else ()
        place = ("--bootstrap-server", kafka.bootstrap) if verb in ON_KAFKA else ()
        given = (verb, *name, *more)
        code, out, err = run(*given, "--redis", user.url(own.address), *place)
        assert code == 0, err
        return out

    assert group in ran(QUERY, "list")
    for verb in ("describe", "gaps", "events", "stuck", "policy"):
        ran(QUERY, verb)
    ran(QUERY, "owner", topic, "key-1")
    ran(QUERY, "top", "--once")
    ran(QUERY, "policy", "--set", "accept.individual.commit=true")
    with exporter(QUERY.url(own.address), kafka.bootstrap) as running:
        assert running.scrape()("coop_kafka_consumer_group_members", group_id=group) == 1
    with closing(RedisClient(QUERY.url(own.address))) as client:
        assert "found" in {event.kind for event in next(follow(client, group, "0-0"))}
    query.stop()
    ran(QUERY, "reset-offsets", "--all-topics", "--to-earliest", "--execute")
    ran(QUERY, "export", "--to", f"{group}-plain", "--execute")
    (tmp_path / "copy.json").write_text(ran(OPERATOR, "backup"))
    ran(OPERATOR, "restore", str(tmp_path / "copy.json"), "--execute")
    ran(OPERATOR, "delete", "--execute")
    ran(QUERY, "import", "--from", f"kafka-group:{group}-plain", "--execute")
    ran(OPERATOR, "delete", "--execute")
    assert refusals(administrator) == set()


@pytest.mark.parametrize("user", [QUERY, OPERATOR], ids=["a query", "an operator"])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("GET other:key", id="read a key that is not ours"),
        pytest.param("HSET other:key a 1", id="write a key that is not ours"),
        pytest.param("HGETALL coop:v1", id="read a key that only begins like ours"),
        pytest.param("GET coop:v1:{g}:meta", id="a command that we do not use"),
        pytest.param("FLUSHALL", id="empty the server"),
        pytest.param("FLUSHDB", id="empty the database"),
        pytest.param("CONFIG SET maxmemory-policy allkeys-lru", id="change the server's settings"),
        pytest.param("KEYS *", id="block the server by listing every key"),
        pytest.param("RANDOMKEY", id="see the name of any key"),
        pytest.param("DBSIZE", id="count the keys of others"),
        pytest.param("SELECT 1", id="reach another database"),
        pytest.param("SWAPDB 0 1", id="exchange databases"),
        pytest.param("COPY coop:v1:{g}:meta coop:v1:{g}:other DB 1", id="copy into another database"),
        pytest.param("EVAL return(1) 0", id="run a script that is not loaded"),
        pytest.param("SCRIPT FLUSH", id="drop the scripts of others"),
        pytest.param("SCRIPT KILL", id="stop a script of others"),
        pytest.param("FUNCTION FLUSH", id="drop the functions of others"),
        pytest.param("FUNCTION LOAD x", id="load a function"),
        pytest.param("FUNCTION LIST", id="see the functions of others"),
        pytest.param("FCALL f 0", id="call a function of others"),
        pytest.param("PUBLISH channel text", id="publish"),
        pytest.param("SUBSCRIBE channel", id="subscribe"),
        pytest.param("CLIENT LIST", id="see other clients"),
        pytest.param("CLIENT KILL ID 1", id="close another client's connection"),
        pytest.param("CLUSTER RESET", id="take the cluster apart"),
        pytest.param("MONITOR", id="see every command"),
        pytest.param("SHUTDOWN NOSAVE", id="stop the server"),
        pytest.param("ACL LIST", id="see other users"),
    ],
)
def test_the_acl_refuses_everything_else(own: OwnValkey, user: AclUser, command: str) -> None:
    refused(own, user, command)


def test_a_query_may_not_list_keys(own: OwnValkey) -> None:
    refused(own, QUERY, "SCAN 0 MATCH coop:v1:*")


def refused(own: OwnValkey, user: AclUser, command: str) -> None:
    with (
        redis.Redis.from_url(user.url(own.address)) as client,
        pytest.raises(redis.exceptions.NoPermissionError),
    ):
        client.execute_command(*command.split())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        pytest.param("maxmemory-policy", "noeviction", id="no position is dropped to make room"),
        pytest.param("appendonly", "yes", id="every change is written down"),
        pytest.param("appendfsync", "everysec", id="the log is synced once a second"),
    ],
)
def test_valkey_runs_with_the_settings_of_its_conf(own: OwnValkey, setting: str, value: str) -> None:
    with redis.Redis.from_url(own.address, decode_responses=True) as client:
        assert client.config_get(setting) == {setting: value}
