"""Hostile arguments and answers of the command line: each ends in one line that names cause and remedy."""

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import redis

from command_runs import Run
from coordinator.errors import InvalidOptionError, RedisConfigurationError, StoreError
from coordinator.plan.poison import Strike
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.redis.lane_lines import CostKind, LaneLine
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import store_of
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from topics import Kafka

NASTY = "\x1b]0;owned\x07\x9b31m\u202e\x7f\u2028"
"""Sets a terminal's title, colours, turns the direction of writing, deletes, begins a line."""
SHOWN = r"\x1b]0;owned\x07\x9b31m\u202e\x7f\u2028"
PLAIN_ESCAPES = "\x1b[31mred\x1b[0m"
FAR = 10**17


def seeded(url: str, name: str, topic: str, text: str) -> None:
    """A group with a member at work and one of everything that is printed, `text` in all names and texts."""
    tp, member = TopicPartition("topic-to-name", 0), "member-to-name"
    keys, lane = GroupKeys(name), LaneLine(tp, WHOLE, 5, 9, 12, True, 3.5, 100.0, CostKind.SURE, 9, f"budget{text}")
    with closing(RedisClient(url)) as client, closing(redis.Redis.from_url(url, decode_responses=True)) as plain:
        store = store_of(ScriptCalls(client, name, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        store.positions.create("aa", {tp.topic: Topic(tp.topic, "id-1", (0,))}, {tp: 5})
        fields = {"host": f"h{text}", "driver_pid": f"7{text}", "label.zone": text, "topics": tp.topic}
        seen = store.members.join(Caller(member, "i1"), "", Joining(fields, f"app{text}")).seen
        me = Caller(member, "i1", seen.nonce, str(seen.seq))
        store.positions.acquire(me, {tp: (WHOLE,)})
        store.reports.lanes(me, [lane], 45)
        store.reports.event(f"loss{text}", text)
        plain.hset(keys.growth, f"{tp.topic} 1 3", "id-1 1 99999999999999")
        strike = Strike(tp, WHOLE, OffsetRange(5, 6), 2, 1_000, member, parked=True)
        plain.hset(keys.strikes, strike.field, strike.text)
        rename(plain, keys.meta.removesuffix("meta"), {tp.topic: topic, member: f"m{text}"})


def rename(plain: Any, prefix: str, names: dict[str, str]) -> None:
    """Put names into a group that no script of ours writes."""

    def put(text: str) -> str:
        return reduce(lambda done, name: done.replace(*name), names.items(), text)

    for key in plain.scan_iter(f"{prefix}*"):
        match plain.type(key):
            case "hash":
                fields = {put(field): put(text) for field, text in plain.hgetall(key).items()}
                plain.delete(key)
                plain.hset(put(key), mapping=fields)
            case "zset":
                scores = {put(name): score for name, score in plain.zrange(key, 0, -1, withscores=True)}
                plain.delete(key)
                plain.zadd(put(key), scores)


@pytest.fixture(scope="module")
def nasty(redis_url: str) -> str:
    """A group of whose names and texts each would drive a terminal."""
    name, text = f"group {NASTY} {secrets.token_hex(4)}", NASTY.replace("\u2028", "")  # which is a space to Lua
    seeded(redis_url, name, f"orders{text}", text)
    return name


@pytest.fixture
def known(redis_url: str) -> str:
    """A sound group with a member at work."""
    name = f"known {secrets.token_hex(4)}"
    seeded(redis_url, name, "orders", "-x")
    return name


@pytest.fixture
def fill(redis_url: str, kafka: Kafka, tmp_path: Path) -> Callable[..., list[str]]:
    """Puts today's servers and files in the place of the words in a row."""

    def filled(arguments: tuple[str, ...], group: str = "nosuch") -> list[str]:
        words = {"GROUP": group, "REDIS": redis_url, "SERVER": redis_url.removesuffix("/0"), "KAFKA": kafka.bootstrap}
        found = [re.sub("|".join(words), lambda match: words[match[0]], word) for word in arguments]
        for i, word in enumerate(found):
            if word.startswith("FILE:"):
                (tmp_path / "given").write_bytes(word.removeprefix("FILE:").encode("latin-1"))
                found[i] = str(tmp_path / "given")
        return found

    return filled


def check_line(err: str, name: str, what: str, remedy: str) -> None:
    """One line that names the error, its cause and the remedy, in words of the command."""
    assert err.count("\n") == 1, err
    assert err.startswith(f"{name}: "), err
    cause, _, to_do = err.partition(" Remedy: ")
    assert what in cause, err
    assert remedy in to_do, err
    assert not re.search(r"redisUrl|redis\.url|kafka\.bootstrap|kafka\.s|Traceback", err), err
    assert err[:-1].isprintable(), err


AT = ("--redis", "REDIS")
BOTH = (*AT, "--bootstrap-server", "KAFKA")
RESET = ("reset-offsets", "GROUP", *BOTH, "--all-topics")

# Rows: arguments, exit code, name of the error, a piece of its message, a piece of its remedy.
USAGE = {
    "no verb of that name, which would colour the terminal": (
        ("\x1b[31mx",), 2, "WRONG_USAGE", "No such command", "coop-kafka --help"),
    "no option of that name, with an escape sequence": (
        ("describe", "GROUP", *AT, "--\x1b]0;x\x07"), 2, "WRONG_USAGE", r"\x1b]0;x\x07", "coop-kafka describe --help"),
    "an argument too many, with an escape sequence": (
        ("describe", "GROUP", *AT, "\x1b[31m"), 2, "WRONG_USAGE", r"\x1b[31m", "coop-kafka describe --help"),
    "no Redis": (("describe", "GROUP"), 2, "WRONG_USAGE", "--redis", "coop-kafka describe --help"),
    "no group": (("describe", *AT), 2, "WRONG_USAGE", "GROUP", "coop-kafka describe --help"),
    "a group without a name": (("describe", "", *AT), 2, "WRONG_USAGE", "name of the group is empty", "--help"),
    "a group name that is not UTF-8": (("gaps", "g\udcff", *AT), 2, "INVALID_OPTION", "not UTF-8", "write it in UTF-8"),
    "a group name that breaks a line": (("gaps", "a\nb", *AT), 1, "UNKNOWN_GROUP", r"'a\nb'", "coop-kafka list"),
    "more events than Redis can count": (
        ("events", "GROUP", *AT, "--last", "100000000000000000000"), 2, "WRONG_USAGE", "--last", "events --help"),
    "fewer events than none": (("events", "GROUP", *AT, "--last", "-1"), 2, "WRONG_USAGE", "--last", "events --help"),
    "a refresh every not-a-number of seconds": (
        ("top", "GROUP", *AT, "--every", "nan"), 2, "WRONG_USAGE", "--every", "top --help"),
    "a refresh once in a million years": (
        ("top", "GROUP", *AT, "--every", "1e300"), 2, "WRONG_USAGE", "--every", "top --help"),
    "no lanes to show": (("top", "GROUP", *AT, "--lanes", "0"), 2, "WRONG_USAGE", "--lanes", "top --help"),
    "a key of half a byte": (
        ("owner", "GROUP", "t", "abc", "--hex", *AT), 2, "INVALID_OPTION", "'abc' is not in hex digits", "6f7264"),
    "a range that is none": (
        ("release", "GROUP", "orders:0", "junk", "--reason", "x", *AT), 2, "WRONG_USAGE",
        "'junk' is not a hash range",
        "release --help"),
    "a range that is inverted": (
        ("release", "GROUP", "orders:0", f"{'7' * 16}-{'0' * 16}", "--reason", "x", *AT), 2, "WRONG_USAGE",
        "not a hash range",
        "release --help"),
    "an empty range, which is not the same as all": (
        ("release", "GROUP", "orders:0", "", "--reason", "x", *AT), 2, "WRONG_USAGE", "is not a hash range",
        "release --help"),
    "a partition below zero": (
        ("release", "GROUP", "orders:-1", "--reason", "x", *AT), 2, "INVALID_OPTION", "is not TOPIC:PARTITION",
        "pass orders:0"),
    "a topic without a partition": (
        ("release", "GROUP", "orders", "--reason", "x", *AT), 2, "INVALID_OPTION", "is not TOPIC:PARTITION",
        "pass orders:0"),
    "no reason": (("release", "GROUP", "--all", "--reason", "\t", *AT), 2, "WRONG_USAGE", "is empty", "release --help"),
    "a policy that there is not": (
        ("policy", "GROUP", "--set", "x=true", *AT), 2, "UNKNOWN_OPTION", "policy 'x' does", "individual.commit"),
    "a policy of a topic that would colour the terminal": (
        ("policy", "GROUP", "--set", "accept.range.fetch:\x1b[31m=true", *AT), 2, "UNKNOWN_OPTION", r"\x1b[31m",
        "accept.range.fetch:TOPIC"),
    "a policy that is neither true nor false": (
        ("policy", "GROUP", "--set", "accept.individual.commit=maybe", *AT), 2, "INVALID_OPTION", "'maybe'",
        "to true, false"),
    "a policy of no level": (("policy", *AT), 2, "WRONG_USAGE", "exactly one of GROUP, --cluster", "--help"),
    "a policy of two levels": (
        ("policy", "GROUP", "--cluster", *BOTH), 2, "WRONG_USAGE", "exactly one of GROUP, --cluster", "--help"),
    "a policy of a group, without Redis": (
        ("policy", "GROUP", "--bootstrap-server", "KAFKA"), 2, "WRONG_USAGE", "GROUP needs --redis", "--help"),
    "a policy of the cluster, without Kafka": (
        ("policy", "--cluster", *AT), 2, "WRONG_USAGE", "need --bootstrap-server", "--help"),
    "a policy of a topic, set for the cluster": (
        ("policy", "--cluster", "--bootstrap-server", "KAFKA", "--set", "accept.range.fetch=false"), 2,
        "UNKNOWN_OPTION", "does not belong to --cluster", "set accept.individual.commit with --cluster"),
    "a policy of a topic that no topic can have": (
        ("policy", "--topic", "a b\x1b[31m", "--bootstrap-server", "KAFKA"), 2, "INVALID_OPTION",
        "is not the name of a topic", "name one topic"),
    "a policy of all groups that is neither true nor false": (
        ("policy", "--cluster", "--bootstrap-server", "KAFKA", "--set", "accept.individual.commit=1"), 2,
        "INVALID_OPTION", "neither true nor false", "to true, false"),
    "a policy without a value": (
        ("policy", "GROUP", "--set", "accept.individual.commit", *AT), 2, "WRONG_USAGE", "is not NAME=VALUE", "--help"),
    "a time before 1970, which to Kafka is the end of the log": (
        (*RESET, "--to-datetime", "1969-12-31T23:59:59.999"), 2, "WRONG_USAGE", "is before 1970", "--help"),
    "a time before 1970 by its zone": (
        (*RESET, "--to-datetime", "1970-01-01T00:00:00+01:00"), 2, "WRONG_USAGE", "is before 1970", "--help"),
    "a time that is none": ((*RESET, "--to-datetime", "yesterday"), 2, "WRONG_USAGE", "'yesterday' is not a time",
        "--help"),
    "two places at once": ((*RESET, "--to-latest", "--to-offset", "5"), 2, "WRONG_USAGE", "exactly one of", "--help"),
    "an offset below zero": ((*RESET, "--to-offset", "-1"), 2, "WRONG_USAGE", "--to-offset", "reset-offsets --help"),
    "a topic that Kafka could not have": (
        ("reset-offsets", "GROUP", *BOTH, "--topic", "a b", "--to-latest"), 2, "INVALID_OPTION", "'a b' is not",
        "orders:0,1"),
    "a topic and all topics": (
        (*RESET, "--topic", "orders", "--to-latest"), 2, "WRONG_USAGE", "--all-topics", "reset-offsets --help"),
    "a broker without a port": (
        ("delete", "GROUP", *AT, "--bootstrap-server", "broker"), 2, "INVALID_OPTION", "--bootstrap-server",
        "host:port"),
    "no broker in the list": (
        ("delete", "GROUP", *AT, "--bootstrap-server", " , "), 2, "INVALID_OPTION", "--bootstrap-server",
        "broker1:9092"),
    "a security protocol that there is not": (
        ("delete", "GROUP", *BOTH, "--command-config", "FILE:security.protocol=FOO"), 2, "INVALID_OPTION",
        "property security.protocol of --command-config = 'FOO'", "SASL_SSL"),
    "a trust store of Java": (
        ("delete", "GROUP", *BOTH, "--command-config", "FILE:security.protocol=SSL\nssl.truststore.location=/x.jks"), 2,
        "INVALID_OPTION", "property ssl.truststore.location", "set ssl.truststore.type=PEM"),
    "times that are not in order": (
        ("delete", "GROUP", *BOTH, "--command-config", "FILE:request.timeout.ms=1"), 2, "CONFLICTING_OPTIONS",
        "request.timeout.ms (1)", "less than the second"),
    "properties that are not UTF-8": (
        ("delete", "GROUP", *BOTH, "--command-config", "FILE:a=\xff\xfe"), 2, "INVALID_OPTION", "UnicodeDecodeError",
        "Java properties in UTF-8"),
    "properties with half an escape": (
        ("delete", "GROUP", *BOTH, "--command-config", "FILE:a=\\u12"), 2, "INVALID_OPTION", "cannot be read",
        "Java properties"),
    "a redrive without a topic": (
        ("redrive", "GROUP", *BOTH, "--from", "dead"), 2, "WRONG_USAGE", "--topic", "redrive --help"),
    "a redrive of a group that there is not": (
        ("redrive", "GROUP", *BOTH, "--topic", "orders", "--from", "dead", "--execute"), 1, "UNKNOWN_GROUP",
        "no group 'nosuch'", "coop-kafka list"),
    "a redrive of a key of half a byte": (
        ("redrive", "GROUP", *BOTH, "--topic", "orders", "--key", "abc", "--hex"), 2, "INVALID_OPTION",
        "'abc' is not in hex digits", "6f7264"),
    "a redrive with a trust store of Java": (
        ("redrive", "GROUP", *BOTH, "--topic", "t", "--command-config",
         "FILE:security.protocol=SSL\nssl.truststore.location=/x.jks"), 2,
        "INVALID_OPTION", "property ssl.truststore.location", "set ssl.truststore.type=PEM"),
    "an audit of a group that there is not": (
        ("audit", "GROUP", *BOTH, "--topic", "orders", "--sink", "parquet:/nowhere"), 1, "UNKNOWN_GROUP",
        "no group 'nosuch'", "coop-kafka list"),
    "an audit of a sink with a secret and without a format": (
        ("audit", "GROUP", *BOTH, "--topic", "orders", "--sink", "s3://key:secret@bucket/x"), 2, "INVALID_OPTION",
        "--sink 's3://bucket/x' is not parquet:PATH", "pass the folder"),
    "an audit of no topic": (
        ("audit", "GROUP", *BOTH, "--topic", "a b", "--sink", "parquet:/nowhere"), 2, "INVALID_OPTION",
        "'a b' is not TOPIC:PARTITION", "orders:0,1"),
    "a delete of nothing": (
        ("delete", "GROUP", *BOTH, "--execute"), 1, "UNKNOWN_GROUP", "neither Redis nor Kafka has", "coop-kafka list"),
    "a database that the server has not": (
        ("describe", "GROUP", "--redis", "SERVER/99"), 1, "REDIS_CONFIGURATION", "no database of that number",
        "name another one in --redis"),
    "a client name with a space": (
        ("describe", "GROUP", "--redis", "SERVER/0?client_name=a%20b"), 2, "INVALID_OPTION",
        "client_name holds more than visible ASCII characters", "set --redis to redis://"),
    "a host with an empty part": (
        ("describe", "GROUP", "--redis", "redis://my..host:1"), 2, "INVALID_OPTION", "not a host name",
        "set --redis to redis://"),
    "a host with a part of 300 letters": (
        ("describe", "GROUP", "--redis", f"redis://{'h' * 300}:1"), 2, "INVALID_OPTION", "not a host name",
        "set --redis to redis://"),
    "an argument that redis-py does not know": (
        ("describe", "GROUP", "--redis", "REDIS?foo=secret"), 2, "INVALID_OPTION", "none of client_name",
        "set --redis to redis://"),
    "an encoding of its own": (
        ("describe", "GROUP", "--redis", "REDIS?encoding=utf-16"), 2, "INVALID_OPTION", "none of client_name",
        "set --redis to redis"),
    "a protocol that there is not": (
        ("describe", "GROUP", "--redis", "REDIS?protocol=9"), 2, "INVALID_OPTION", "protocol is none of 2, 3",
        "set --redis to redis"),
    "a database that is no number": (
        ("describe", "GROUP", "--redis", "SERVER/abc"), 2, "INVALID_OPTION", "not the number of a database",
        "set --redis to redis"),
    "a password with a slash": (
        ("describe", "GROUP", "--redis", "redis://:12/secret@h:1"), 2, "INVALID_OPTION", "percent-encoded", "%2F"),
    "a web server": (
        ("describe", "GROUP", "--redis", "http://h"), 2, "INVALID_OPTION", "does not begin with redis://",
        "set --redis to redis"),
    "a broker in the place of Redis": (
        ("describe", "GROUP", "--redis", "redis://KAFKA"), 1, "REDIS_UNAVAILABLE", "not answer", "correct --redis"),
    "a server that is no cluster": (
        ("describe", "GROUP", "--redis", "REDIS?cluster=true"), 1, "REDIS_CONFIGURATION", "is not a cluster",
        "out of --redis"),
    "a user that there is not": (
        ("describe", "GROUP", "--redis", "redis://nobody:secret@127.0.0.1:PORT"), 1, "REDIS_ACCESS_DENIED", "refuses",
        "password in --redis"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "name", "what", "remedy"), USAGE.values(), ids=USAGE)
def test_an_unusable_argument_is_one_line(
    run: Run,
    fill: Callable[..., list[str]],
    redis_url: str,
    arguments: tuple[str, ...],
    code: int,
    name: str,
    what: str,
    remedy: str,
) -> None:
    port = redis_url.rpartition(":")[2].partition("/")[0]
    ended, out, err = run(*(word.replace("PORT", port) for word in fill(arguments)))
    assert (ended, out) == (code, ""), err
    check_line(err, name, what, remedy)
    assert "secret" not in err


def test_a_group_that_is_called_as_an_option_keeps_its_name(run: Run, redis_url: str) -> None:
    _, _, err = run("describe", "option 'redisUrl'", "--redis", redis_url)
    assert "no group \"option 'redisUrl'\"" in err


def test_a_strike_that_there_is_not_is_not_found(run: Run, redis_url: str, known: str) -> None:
    code, out, err = run("release", known, "orders:9", "--reason", "x", "--redis", redis_url)
    assert (code, out) == (1, "")
    check_line(err, "UNKNOWN_STRIKE", "no suspect and nothing quarantined in orders-9", "coop-kafka stuck")


LOOKS = {
    "describe": ("describe", "GROUP"),
    "gaps": ("gaps", "GROUP"),
    "events": ("events", "GROUP"),
    "top": ("top", "GROUP", "--once"),
    "stuck": ("stuck", "GROUP"),
    "the owner of a key": ("owner", "GROUP", f"orders{NASTY[:-1]}", f"key{NASTY}", "--partition", "0"),
    "the list of groups": ("list",),
}


def others(err: str, arguments: tuple[str, ...]) -> str:
    """The lines of stderr, without those of `list` about groups that other tests have damaged."""
    assert all(line.isprintable() for line in err.split("\n"))
    damaged = "warning: group " if arguments == LOOKS["the list of groups"] else "\0"
    return "".join(line for line in err.splitlines() if not line.startswith(damaged))


@pytest.mark.parametrize("arguments", LOOKS.values(), ids=LOOKS)
def test_no_name_that_is_shown_reaches_the_terminal_as_it_is(
    run: Run, fill: Callable[..., list[str]], nasty: str, arguments: tuple[str, ...]
) -> None:
    code, out, err = run(*fill((*arguments, *AT), nasty))
    assert (code, others(err, arguments)) == (0, "")
    assert [line for line in out.split("\n") if not line.isprintable()] == []
    assert SHOWN.removesuffix(r"\u2028") in re.sub(r"\n *", "", out)


@pytest.mark.parametrize("arguments", [*LOOKS.values(), ("backup", "GROUP")], ids=[*LOOKS, "backup"])
def test_json_holds_each_name_as_it_is_in_escapes_of_json(
    run: Run, fill: Callable[..., list[str]], nasty: str, arguments: tuple[str, ...]
) -> None:
    code, out, err = run(*fill((*arguments, "--json", *AT), nasty))
    assert (code, others(err, arguments)) == (0, "")
    assert [line for line in out.split("\n") if not line.isprintable()] == []
    documents = map(json.loads, out.splitlines() if arguments[0] == "events" else [out])
    assert NASTY[:-1] in "".join(json.dumps(document, ensure_ascii=False) for document in documents).replace(
        r"\u001b", "\x1b"
    ).replace(r"\u0007", "\x07")


ERRORS = {
    "a topic that is not read": (("owner", "GROUP", "returns", "k", *AT), "UNKNOWN_TOPIC_OR_PARTITION"),
    "a group that is at work": (("delete", "GROUP", *BOTH), "GROUP_BUSY"),
    "a strike that there is not": (("release", "GROUP", "t:1", "--reason", "x", *AT), "UNKNOWN_STRIKE"),
    "a topic to look at that Kafka could not have": (
        ("redrive", "GROUP", *BOTH, "--topic", PLAIN_ESCAPES, "--from", PLAIN_ESCAPES),
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    "a topic that Kafka could not have": (
        ("redrive", "GROUP", *BOTH, "--topic", PLAIN_ESCAPES, "--from", "x", "--execute"),
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    "a file of another group": (
        ("restore", "GROUP", 'FILE:{"coop-kafka": 1, "group": "\\u001b[31m", "taken_ms": 1, "keys": {}}', *AT),
        "STATE_FORMAT",
    ),
}


@pytest.mark.parametrize(("arguments", "name"), ERRORS.values(), ids=ERRORS)
def test_no_name_in_an_error_reaches_the_terminal_as_it_is(
    run: Run, fill: Callable[..., list[str]], nasty: str, arguments: tuple[str, ...], name: str
) -> None:
    code, out, err = run(*fill(arguments, nasty))
    assert (code, out) == (1, "")
    check_line(err, name, "", "")
    assert r"\x1b" in err


def test_a_property_that_kafka_does_not_know_is_warned_of_harmlessly(
    run: Run, fill: Callable[..., list[str]], nasty: str
) -> None:
    config = ("--command-config", f"FILE:x{PLAIN_ESCAPES}=1")
    code, _, err = run(*fill(("delete", "GROUP", *BOTH, *config), nasty))
    assert code == 1
    assert err.startswith(r"warning: there is no Kafka property 'x\x1b[31mred\x1b[0m': ignored" + "\n")


def test_a_policy_of_a_name_that_drives_a_terminal_is_named_escaped(
    run: Run, fill: Callable[..., list[str]], redis_url: str, known: str
) -> None:
    with closing(redis.Redis.from_url(redis_url)) as plain:
        plain.hset(GroupKeys(known).policy, "accept.range.fetch:\x1b[31m", "false")
    code, out, err = run(*fill(("policy", "GROUP", *AT), known))
    assert (code, out) == (1, "")
    check_line(err, "STATE_FORMAT", r"accept.range.fetch:\x1b[31m", "policy GROUP")


# Rows: kind of key, field (None for one that is not a hash), value, verb, words that it prints or its error.
STRANGE: dict[str, tuple[str, str | None, str, tuple[str, ...], str]] = {
    "an event of the year 3 million": ("events", None, f"{FAR}-0", ("events", "GROUP", "--last", "1"), f"{FAR} ms far"),
    "the same for programs": (
        "events", None, f"{FAR}-0", ("events", "GROUP", "--last", "1", "--json"), f'"at_ms": {FAR}'),
    "a strike of the year 3 million": (
        "strikes", f"orders 0 {WHOLE}", f"parked 2 5-6 {FAR} m-1", ("stuck", "GROUP"), f"{FAR} ms"),
    "a strike of before the calendar": (
        "strikes", f"orders 0 {WHOLE}", f"parked 2 5-6 -{FAR} m-1", ("stuck", "GROUP"), "STATE_FORMAT"),
    "a grace that ends never": (
        "growth", "orders 1 3", f"id-1 1 {'9' * 400}", ("describe", "GROUP"), "STATE_FORMAT"),
    "a share of slots of 5,000 digits": (
        "member:m-x", "slow_percent", "9" * 5_000, ("top", "GROUP", "--once"), "STATE_FORMAT"),
    "a longest batch of 5,000 digits": (
        "member:m-x", "longest.batch.ms", "9" * 5_000, ("top", "GROUP", "--once"), "STATE_FORMAT"),
    "a lane that is no text of ours": ("lanes", "m-x", "junk", ("top", "GROUP", "--once"), "STATE_FORMAT"),
    "a field that is not UTF-8": ("policy", "accept", "\udcff", ("describe", "GROUP"), "STATE_FORMAT"),
    "strikes that are a string": ("strikes", None, "x", ("stuck", "GROUP"), "STATE_FORMAT"),
    "events that are a string": ("events", None, "x", ("events", "GROUP"), "STATE_FORMAT"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "field", "value", "arguments", "expected"), STRANGE.values(), ids=STRANGE)
def test_unexpected_content_of_redis_is_shown_or_named(  # noqa: PLR0913, PLR0917 - a row
    run: Run,
    fill: Callable[..., list[str]],
    redis_url: str,
    known: str,
    kind: str,
    field: str | None,
    value: str,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    key = GroupKeys(known).meta.removesuffix("meta") + kind
    raw = value.encode(errors="surrogateescape")
    with closing(redis.Redis.from_url(redis_url)) as plain:
        if field is not None:
            plain.hset(key, field, raw)
        elif value == "x":
            plain.set(key, raw)
        else:
            plain.xadd(key, {"event": "far", "member": "", "why": "away"}, id=raw)
    code, out, err = run(*fill((*arguments, *AT), known))
    if expected == "STATE_FORMAT":
        assert (code, out) == (1, "")
        check_line(err, expected, "", "coop:v1:")
    else:
        assert (code, err) == (0, "")
        assert expected in out


def test_a_group_name_in_redis_that_is_not_utf_8_is_named(redis_url: str, run: Run) -> None:
    with closing(redis.Redis.from_url(redis_url)) as plain:
        plain.sadd(GROUPS, b"\xff")
        try:
            code, out, err = run("list", "--redis", redis_url)
        finally:
            plain.srem(GROUPS, b"\xff")
    assert (code, out) == (1, "")
    check_line(err, "STATE_FORMAT", "not UTF-8", "look at the keys coop:v1:")


def test_arguments_too_long_for_a_script_are_no_damage(redis_url: str, known: str) -> None:
    labels = {f"label.{i}": "x" for i in range(4_000)}
    with closing(RedisClient(redis_url)) as client:
        store = store_of(ScriptCalls(client, known, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        with pytest.raises(StoreError, match="too many results to unpack") as refused:
            store.members.join(Caller("m-many", "i1"), "", Joining(labels))
    assert refused.value.name == "REDIS_ERROR"
    assert "nothing shows that the group's state is damaged" in refused.value.remedy


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        pytest.param(("/0", "/99"), RedisConfigurationError, id="no such database"),
        pytest.param(("redis://", "redis://a..b@c..d"), InvalidOptionError, id="no host"),
    ],
)
def test_a_query_gets_the_same_cause_as_the_command(
    redis_url: str, change: tuple[str, str], kind: type[Exception]
) -> None:
    with pytest.raises(kind) as refused, closing(RedisClient(redis_url.replace(*change))) as client:
        client.require_noeviction()
    assert "damaged" not in str(refused.value)


def started(
    *arguments: str, encoding: str | None = None, stdout: int | None = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """The command as a process of its own."""
    environment = {**os.environ} | ({"PYTHONIOENCODING": encoding} if encoding else {})
    command = [sys.executable, "-m", "spark_coop_source.command_line", *arguments]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, env=environment)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_name_that_the_output_cannot_encode_is_escaped(redis_url: str, encoding: str) -> None:
    name = f"größe 漢字 {secrets.token_hex(4)}"
    seeded(redis_url, name, "orders", "ü漢")
    with started("describe", name, "--redis", redis_url, encoding=encoding) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert rb"\u6f22\u5b57" in out
    assert "größe".encode(encoding, "backslashreplace") in out


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("verb", [("describe",), ("backup",), ("events", "--json")], ids=["a table", "a copy", "lines"])
def test_an_output_that_is_full_is_named(redis_url: str, known: str, verb: tuple[str, ...]) -> None:
    with FULL.open("w") as full, started(*verb, known, "--redis", redis_url, stdout=full.fileno()) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    check_line(err.decode(), "OUTPUT_FAILED", "No space left on device", "another place")


def test_a_reader_that_has_seen_enough_ends_it_without_a_word(redis_url: str, known: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with started("describe", known, "--redis", redis_url, stdout=writing) as process:
        os.close(writing)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, b"")


@pytest.mark.usefixtures("impatient")
def test_a_broker_that_is_not_there_is_one_line(run: Run, redis_url: str) -> None:
    code, _, err = run("delete", "nosuch", "--redis", redis_url, "--bootstrap-server", "127.0.0.1:1")
    assert code == 1
    check_line(err, "KAFKA_UNAVAILABLE", "127.0.0.1:1", "--bootstrap-server and security.protocol")


def test_a_joining_member_names_its_application(run: Run, redis_url: str, known: str) -> None:
    _, out, _ = run("events", known, "--json", "--redis", redis_url)
    why = [event["why"] for event in map(json.loads, out.splitlines()) if event["kind"] == "join"]
    assert why == ["application app-x, incarnation i1"]
    (member,) = json.loads(run("describe", known, "--json", "--redis", redis_url)[1])["members"]
    assert member["fields"]["application"] == "app-x"
    _, out, _ = run("describe", known, "--redis", redis_url)
    assert "app-x" in out
