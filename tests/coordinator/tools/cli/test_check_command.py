"""`check`: one line and an exit code, for a group at work, behind, without members, and with Redis away."""

import json
import re
import socket
import time
from contextlib import closing

import pytest

from command_runs import Run
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, subscribed
from own_valkey import OwnValkey
from streams import eventually, keyed
from watched_groups import live

LIMITS = ("--max-lag", "100", "--max-age", "600")
PROBE_S = 10.0
"""The time-out of a probe that docs/operations.md names."""


@pytest.fixture
def member(members: Group, tp: TopicPartition) -> Service:
    """A member of the group at work, for a minute without a heartbeat."""
    return members.started(subscribed(tp), session_ms=60_000)


def test_a_group_at_work_is_ok_until_it_is_behind(
    run: Run, members: Group, member: Service, tp: TopicPartition
) -> None:
    at, redis_of = ("check", members.name, *LIMITS), ("--redis", members.redis_url)
    members.kafka.produce(tp.topic, keyed(60))
    done = batch(member, StreamOffset(members.name))
    assert member.next_offset(done, UNLIMITED) is None, "it has read everything, and looks again"
    ok = f"ok: group {members.name!r}: Stable, 1 member works, lag 0, age 0 s\n"
    assert run(*at, *redis_of) == (0, ok, "")

    members.kafka.produce(tp.topic, keyed(101))
    members.clock.skip(1_000)
    assert member.next_offset(done, UNLIMITED) is not None
    code, out, err = run(*at, *redis_of)
    assert (code, err, out.count("\n")) == (3, "", 1)
    assert out.startswith(f"failing: group {members.name!r}: Stable, 1 member works, lag 101, age ")
    assert out.endswith(" s: the lag is above --max-lag 100\n")
    code, out, _ = run(*at, "--json", *redis_of)
    assert (code, json.loads(out)["reasons"]) == (3, ["the lag is above --max-lag 100"])


def test_a_group_that_recovers_says_how_long(run: Run, members: Group, member: Service) -> None:
    batch(member, StreamOffset(members.name))
    until = members.store.positions.now_ms() + 30_000
    members.redis.hset(GroupKeys(members.name).meta, "recovering_until", until)
    code, out, _ = run("check", members.name, "--redis", members.redis_url)
    assert code == 0
    assert re.search(r": Stable, recovers, (30|2\d\.\d) s left, 1 member works, ", out), out


def test_when_the_last_member_has_left_the_group_fails(
    run: Run, members: Group, member: Service, tp: TopicPartition
) -> None:
    at = ("check", members.name, "--redis", members.redis_url)
    assert member.next_offset(batch(member, StreamOffset(members.name)), UNLIMITED) is None
    assert run(*at)[0] == 0
    member.leave()
    code, out, _ = run(*at)
    assert (code, out.startswith(f"failing: group {members.name!r}: Empty, 0 members work")) == (3, True)
    assert re.search(r": no member works, and the end offsets are \d+ s old\n$", out)


def test_when_the_lease_of_a_killed_member_ends_the_group_fails(run: Run, members: Group, tp: TopicPartition) -> None:
    member = members.started(subscribed(tp), session_ms=5_000)
    batch(member, StreamOffset(members.name))  # no heartbeat follows
    at = ("check", members.name, "--redis", members.redis_url)
    assert run(*at)[0] == 0
    eventually(lambda: run(*at)[0] == 3, "the lease ends")


def test_a_group_that_is_not_there_is_unknown(run: Run, redis_url: str) -> None:
    code, out, err = run("check", "nobody", "--redis", redis_url)
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert out.startswith("unknown: group 'nobody': UNKNOWN_GROUP: ")


def test_a_redis_that_is_away_is_unknown_and_its_password_is_not_shown(run: Run) -> None:
    at = ("check", "orders", *LIMITS, "--redis", "redis://ann:pa55word@127.0.0.1:1/0")
    code, out, err = run(*at)
    assert (code, err, out.count("\n"), "pa55word" in out) == (1, "", 1, False)
    assert out.startswith("unknown: group 'orders': REDIS_UNAVAILABLE: the Redis at redis://127.0.0.1:1/0 does not")
    code, out, err = run(*at, "--json")
    assert (code, err) == (1, "")
    (reason,) = json.loads(out)["reasons"]
    assert (json.loads(out)["status"], reason.partition(":")[0]) == ("unknown", "REDIS_UNAVAILABLE")


@pytest.mark.parametrize(
    ("setting", "words"),
    [("maxmemory", "its memory is full"), ("min_replicas_to_write", "too few replicas")],
)
def test_a_redis_that_takes_no_writes_is_unknown_and_the_reason_is_named(
    run: Run, valkey: OwnValkey, setting: str, words: str
) -> None:
    live(valkey.address, "g", "orders")
    at = ("check", "g", "--redis", valkey.address)
    assert run(*at)[0] == 0
    valkey.configure(**{setting: "1"})
    code, out, err = run(*at)
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert out.startswith("unknown: group 'g': Stable, 1 member works")
    assert f"REDIS_NOT_READY: the Redis at {valkey.address} takes no writes" in out
    assert words in out
    valkey.configure(**{setting: "0"})
    assert run(*at)[0] == 0


def test_a_redis_that_never_answers_is_unknown_before_the_probe_ends(run: Run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        began = time.monotonic()
        code, out, err = run("check", "orders", "--redis", f"redis://127.0.0.1:{silent.getsockname()[1]}")
        assert time.monotonic() - began < PROBE_S
    assert (code, err, out.startswith("unknown: group 'orders': REDIS_UNAVAILABLE: ")) == (1, "", True)


@pytest.mark.parametrize("limit", [("--max-lag", "-1"), ("--max-age", "soon"), ("--max-lag", "1.5")])
def test_a_limit_that_is_no_number_is_wrong_usage(run: Run, redis_url: str, limit: tuple[str, str]) -> None:
    code, out, err = run("check", "g", *limit, "--redis", redis_url)
    assert (code, out, err.startswith("WRONG_USAGE: ")) == (2, "", True)
