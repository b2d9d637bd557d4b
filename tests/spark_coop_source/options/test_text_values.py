"""Topic patterns, group names and Redis urls: allowed values; no error repeats a password."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import ConnectionPool

from coordinator.errors import InvalidOptionError, redacted
from coordinator.redis.snapshot import read_group
from coordinator.values.subscription import Pattern
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.options.text_values import (
    LABEL_VALUE_MAX,
    LABELS_MAX,
    AssignorNames,
    GroupName,
    Labels,
    RedisUrl,
    TopicPattern,
)
from store_world import World


def redis_arguments(url: str) -> dict[str, object]:
    arguments: dict[str, object] = ConnectionPool.from_url(url).connection_kwargs
    return arguments


URLS = [
    pytest.param("redis://localhost", id="a host"),
    pytest.param("redis://localhost:6379/0", id="host, port and database"),
    pytest.param("redis://user:s%2Fecret@localhost:6379/15", id="user and an escaped password"),
    pytest.param("redis://:secret@[::1]:6379", id="a password only, at an IPv6 address"),
    pytest.param("rediss://h:6380/1?ssl_ca_certs=/etc/ca.pem&ssl_cert_reqs=required", id="TLS with its own authority"),
    pytest.param("redis://h:6379?cluster=true&username=u", id="a cluster"),
    pytest.param("unix:///run/redis.sock?db=2", id="a socket file"),
    pytest.param("unix://user:secret@/run/redis.sock", id="a socket file with a user"),
    pytest.param("redis://h?password=a@b&username=u", id="a password as an argument"),
]


@pytest.mark.parametrize("url", URLS)
def test_a_redis_url_is_one_that_redis_py_parses_too(url: str) -> None:
    assert RedisUrl().parse(url) == url
    assert {"host", "path"} & redis_arguments(url).keys()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("", "does not begin with redis://", id="nothing"),
        pytest.param("localhost:6379", "does not begin with", id="no scheme"),
        pytest.param("http://h", "does not begin with", id="another scheme"),
        pytest.param("REDIS://h", "does not begin with", id="capitals, which redis-py refuses"),
        pytest.param("redis://", "names no host", id="no host"),
        pytest.param("redis://:secret@:6379", "names no host", id="a password and no host"),
        pytest.param("redis://h:0", "0 is not a port", id="port 0"),
        pytest.param("redis://h:99999", "cannot be separated", id="a port too large"),
        pytest.param("redis://h:secret", "cannot be separated", id="a port that is none"),
        pytest.param("redis://[::1", "cannot be separated", id="half an IPv6 address"),
        pytest.param("redis://:se/cret@h", "cannot be separated", id="a slash in the password"),
        pytest.param("redis://:12/secret@h", "percent-encoded", id="a slash behind digits in the password"),
        pytest.param("redis://:12#secret@h", "percent-encoded", id="a hash sign in the password"),
        pytest.param("redis://u:12?secret@h", "behind ? is none of", id="a question mark in the password"),
        pytest.param("redis://:se cret@h", "a space", id="a space in the password"),
        pytest.param("redis://:secret\n@h", "control character", id="a line break"),
        pytest.param("redis://:secret\u2100@h", "cannot be separated", id="a character that turns into a/c"),
        pytest.param("redis://h/secret", "number of a database", id="a database that is no number"),
        pytest.param("redis://h?db=secret", "db is not a number", id="the same as an argument"),
        pytest.param("redis://h?socket_timeout=9", "behind ? is none of", id="a time-out, which is ours to set"),
        pytest.param("redis://h?ssl_ca_certs=/x", "behind ? is none of", id="TLS settings without TLS"),
        pytest.param("rediss://h?ssl_cert_reqs=secret", "none of required", id="an unknown certificate rule"),
        pytest.param("unix://", "no socket file", id="a socket without a name"),
        pytest.param("redis://h?cluster=yes", "none of true, false", id="a cluster or not"),
        pytest.param("unix:///run/redis.sock?cluster=true", "has no socket file", id="a cluster behind a socket file"),
        pytest.param("unix://run/redis.sock", "third slash", id="a socket with two slashes"),
    ],
)
def test_a_redis_url_is_refused_without_being_shown(url: str, why: str) -> None:
    with pytest.raises(InvalidOptionError) as refused:
        OPTION_OF["redis_url"].parse(url)
    assert why in refused.value.what
    assert "redis://[user" in refused.value.remedy
    assert "secret" not in str(refused.value) + repr(refused.value)
    assert refused.value.__suppress_context__
    assert "secret" not in redacted(url) or "@" not in url


@given(st.text(alphabet="abc:/?#@[]%.0123456789", min_size=1, max_size=20))
def test_a_refused_url_hides_its_password_and_others_parse_as_redis_py_parses_them(password: str) -> None:
    url = f"redis://user:{password}xYzZy@h:6379/0"
    try:
        RedisUrl().parse(url)
    except ValueError as error:
        assert "xYzZy" not in str(error)
    else:
        assert redis_arguments(url)["host"] == "h"
    assert "xYzZy" not in redacted(url)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("orders", id="a word"),
        pytest.param("my {group} \"of\" 'readers' / ü€😀 : %", id="spaces, braces, quotes, signs, other scripts"),
        pytest.param("g" * 255, id="255 characters"),
        pytest.param(" spaced ", id="spaces at its ends"),
    ],
)
def test_a_group_name_is_kept_as_it_is(name: str) -> None:
    assert GroupName().parse(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("", "empty", id="nothing"),
        pytest.param("  ", "empty", id="only spaces"),
        pytest.param("a\nb", "line break", id="a line break"),
        pytest.param("a\tb", "control character", id="a tab"),
        pytest.param("a\x00b", "control character", id="a zero"),
        pytest.param("a\u2028b", "line break", id="a line separator"),
        pytest.param("a\ud800b", "control character", id="half a surrogate pair, which UTF-8 cannot write"),
        pytest.param("g" * 256, "256 characters", id="256 characters"),
    ],
)
def test_a_group_name_is_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        GroupName().parse(name)


def test_a_pattern_loses_the_spaces_around_it() -> None:
    assert TopicPattern().parse("  orders-[0-9]+ ") == Pattern("orders-[0-9]+")


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        pytest.param(" ", "empty", id="nothing"),
        pytest.param("[", "unterminated character set", id="half a set"),
        pytest.param(r"\p{Alpha}+", "bad escape", id="an escape that only Java knows"),
    ],
)
def test_a_pattern_is_refused(regex: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        TopicPattern().parse(regex)


def test_an_assignor_is_known_by_its_name_or_is_a_class_that_can_be_made() -> None:
    kind = AssignorNames()
    for name in (
        "grouped",
        "range",
        "roundrobin",
        "copartitioned",
        "rack-aware",
        "coordinator.assignment.assignors.grouped:Grouped",
    ):
        assert kind.parse(name) == name
    for name in (
        "groupd",
        "no.such.module:Class",
        "json:JSONDecoder",
        "coordinator.assignment.assignors.grouped:Nothing",
    ):
        with pytest.raises(ValueError, match=re.escape(name)):
            kind.parse(name)


def test_labels_are_names_with_values() -> None:
    assert Labels().parse("zone=a, team = core") == {"zone": "a", "team": "core"}


@pytest.mark.parametrize("text", ["", "zone", "zone=", "=a", "zone=a,", "zone=a,zone=b", "zo ne=a"])
def test_damaged_labels_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Labels().parse(text)


def test_as_many_labels_as_may_be_join_and_are_read_back(world: World) -> None:
    given = ",".join(f"{'n' * 60}{i:04}={'ü' * (LABEL_VALUE_MAX // 2)}" for i in range(LABELS_MAX))
    labels = {f"label.{name}": value for name, value in Labels().parse(given).items()}
    world.found()
    world.join(**labels)
    assert len(labels) == LABELS_MAX
    fields = read_group(world.client, world.group).members["m-1"]
    assert {name: fields[name] for name in labels} == labels
