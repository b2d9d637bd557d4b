"""The operator's view of working and parked lanes: `top`, `describe`, `parked`, `release`."""

import json
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace

import pytest
import redis

from command_runs import Run
from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.events import last_events
from coordinator.redis.group_state import LONGEST_BATCH
from coordinator.redis.keys import GroupKeys
from coordinator.redis.lane_lines import NOTHING, BatchLine, CostKind, LaneLine
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import store_of
from coordinator.tools.operations.waiting_views import FailingKey
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from terminal import on_a_terminal

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOWER, UPPER = cuts(2)
SLOW = LaneLine(TP, LOWER, 5, 9, 12, True, 3.5, 100.0, CostKind.SURE, 9, "budget")
QUICK = replace(SLOW, hashes=UPPER, position=14, lag=0, lag_s=0, lag_at_least=False, why=NOTHING)
STRIKES = (
    Strike(TP, LOWER, OffsetRange(5, 6), 2, 1_000, "m-0", parked=True),
    Strike(OTHER, WHOLE, OffsetRange(7, 9), 1, 2_000, "m-0"),
)


@pytest.fixture
def group(redis_url: str) -> Iterator[str]:
    """A group with one member at work, whose lower lane is slow, one that is gone, and two strikes."""
    name = f"top [red] {secrets.token_hex(4)}"
    with closing(RedisClient(redis_url)) as client, closing(redis.Redis.from_url(redis_url)) as plain:
        store = store_of(ScriptCalls(client, name, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        store.positions.create("aa", {"orders": Topic("orders", "id-1", (0, 1))}, {TP: 5, OTHER: 7})
        seen = store.members.join(Caller("m-1", "i1"), "", Joining({"host": "h1", "topics": "orders"})).seen
        me = Caller("m-1", "i1", seen.nonce, str(seen.seq))
        store.positions.acquire(me, {TP: (WHOLE,)})
        store.reports.lanes(me, [QUICK, SLOW], 45)
        plain.hset(GroupKeys(name).lanes, "m-gone", str(SLOW))
        for rows in (1, 30):
            store.reports.batch(BatchLine("m-1", rows, None, 10.0, 2, SLOW.name, reading=93))
        for s in STRIKES:
            plain.hset(GroupKeys(name).strikes, s.field, s.text)
        yield name


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_top_shows_members_and_lanes_the_slow_ones_first(run: Run, redis_url: str, group: str) -> None:
    code, out, err = run("top", group, "--once", "--redis", redis_url)
    assert (code, err) == (0, "")
    assert out.startswith(f"Group {group!r}: PreparingRebalance, 3 records/s")
    (member,) = (row for row in rows(out) if row[:1] == ["m-1"])
    assert member[1:7] == ["working", "2", "45", "-", "10.0", "3"], "the last of its batches"
    assert (member[7], member[9:]) == ("93", ["orders", "0", str(LOWER)])
    assert "m-1: a task read from Kafka for 93 % of the last batch (10.0 s, 30 records). So" in " ".join(out.split())
    lanes = [row for row in rows(out) if row[:1] == ["orders"]]
    assert lanes == [
        ["orders", "0", str(LOWER), "5", "9", ">12", "3.5", "3", "100", "9", "budget", "m-1"],
        ["orders", "0", str(UPPER), "14", "0", "0", "3.5", "0", "100", "9", "all", "there", "is", "m-1"],
    ]
    assert "and 1 lane more" in run("top", group, "--once", "--lanes", "1", "--redis", redis_url)[1]


def test_no_batch_runs_after_the_lease(run: Run, redis_url: str, group: str) -> None:
    keys = GroupKeys(group)
    with closing(redis.Redis.from_url(redis_url)) as plain:
        now_ms = plain.time()[0] * 1000
        plain.hset(keys.member("m-1"), LONGEST_BATCH, "60000")
        plain.zadd(keys.batches, {"m-1": now_ms + 40_000})
        plain.zadd(keys.leases, {"m-1": now_ms - 1_000})
    (printed,) = json.loads(run("top", group, "--json", "--redis", redis_url)[1])["members"]
    assert (printed["state"], printed["runs_s"]) == ("ended", None)


def test_top_shows_since_when_a_first_batch_runs(run: Run, redis_url: str, group: str) -> None:
    keys = GroupKeys(group)
    with closing(redis.Redis.from_url(redis_url)) as plain:
        plain.delete(keys.history)
        plain.hset(keys.member("m-1"), LONGEST_BATCH, "60000")
        plain.zadd(keys.batches, {"m-1": plain.time()[0] * 1000 + 60_000 - 20_000})
    _, out, _ = run("top", group, "--once", "--redis", redis_url)
    (member,) = (row for row in rows(out) if row[:1] == ["m-1"])
    assert member[1:4] + member[5:] == ["working", "2", "45", "-", "-", "-", "-", "-"]
    assert 19 <= int(member[4]) <= 50
    (printed,) = json.loads(run("top", group, "--json", "--redis", redis_url)[1])["members"]
    assert 19 <= printed["runs_s"] <= 50


@pytest.mark.parametrize("key", ["\x03", "q"])
def test_top_looks_again_and_again_until_q_or_ctrl_c(redis_url: str, group: str, key: str) -> None:
    with on_a_terminal("top", group, "--every", "0.5", "--redis", redis_url) as terminal:
        before = terminal.until(str(LOWER), str(UPPER), "orders-0  stable 5")
        with closing(redis.Redis.from_url(redis_url)) as plain:
            plain.hset(GroupKeys(group).lanes, "m-1", str(replace(QUICK, hashes=WHOLE, lag=47_011)))
        terminal.until(str(WHOLE), "47,011")
        assert "47,011" not in before
        terminal.press(key)
        assert "Traceback" not in terminal.rest()
        assert terminal.process.wait(30) == 0


def test_top_without_a_terminal_prints_once(run: Run, redis_url: str, group: str) -> None:
    code, out, err = run("top", group, "--redis", redis_url)
    assert (code, err) == (0, "")
    assert len([row for row in rows(out) if row[:1] == ["orders"]]) == 2


def test_top_prints_json_for_programs(run: Run, redis_url: str, group: str) -> None:
    printed = json.loads(run("top", group, "--json", "--redis", redis_url)[1])
    assert [(m["member"], m["slow_percent"], m["rate"]) for m in printed["members"]] == [("m-1", 45, 3.0)]
    assert printed["lanes"][0] == {
        "member": "m-1",
        "topic": "orders",
        "partition": 0,
        "hashes": str(LOWER),
        "position": 5,
        "lag": 9,
        "lag_s": 12,
        "lag_at_least": True,
        "rate": 3.5,
        "drain_s": 3,
        "record_ms": 100.0,
        "cost": "sure",
        "quota": 9,
        "why": "budget",
    }


def test_describe_shows_why_lanes_are_held_back(run: Run, redis_url: str, group: str) -> None:
    out = run("describe", group, "--redis", redis_url)[1]
    assert "1 lane is held back:" in out
    assert rows(out)[-1][-2:] == ["budget", "m-1"]
    (limited,) = json.loads(run("describe", group, "--json", "--redis", redis_url)[1])["limited"]
    assert (limited["hashes"], limited["why"]) == (str(LOWER), "budget")


def test_a_parked_lane_is_shown_with_its_record_and_the_lost_member(run: Run, redis_url: str, group: str) -> None:
    code, out, _ = run("stuck", group, "--redis", redis_url)
    assert code == 0
    assert rows(out)[1:] == [
        ["orders", "0", str(LOWER), "5", "2", "parked", "1970-01-01T00:00:01Z", "m-0"],
        ["orders", "1", str(WHOLE), "7", "1", "on", "trial", "1970-01-01T00:00:02Z", "m-0"],
    ]
    printed = json.loads(run("stuck", group, "--json", "--redis", redis_url)[1])["strikes"]
    assert [(s["topic"], s["partition"], s["offset"], s["state"]) for s in printed] == [
        ("orders", 0, 5, "parked"),
        ("orders", 1, 7, "on trial"),
    ]


@pytest.mark.parametrize(
    ("which", "left"),
    [
        pytest.param(("--all",), 0, id="all of the group"),
        pytest.param(("orders:0",), 1, id="those of a partition"),
        pytest.param(("orders:1", str(WHOLE)), 1, id="one range"),
    ],
)
def test_a_release_removes_strikes_and_records_its_reason(
    run: Run, redis_url: str, group: str, which: tuple[str, ...], left: int
) -> None:
    code, out, _ = run("release", group, *which, "--reason", "mended", "--redis", redis_url)
    assert (code, len(out.splitlines())) == (0, 2 - left)
    assert len(json.loads(run("stuck", group, "--json", "--redis", redis_url)[1])["strikes"]) == left
    with closing(RedisClient(redis_url)) as client:
        assert all(e.why.endswith(": mended") for e in last_events(client, group, 2 - left))


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        pytest.param(
            ("orders:9", "--reason", "x"),
            1,
            "has no suspect and nothing quarantined in orders-9",
            id="a partition without strikes",
        ),
        pytest.param(("orders:0", "x", "--reason", "x"), 2, "'x' is not", id="no range"),
        pytest.param(("orders", "--reason", "x"), 2, "is not TOPIC:PARTITION", id="a topic without a partition"),
        pytest.param(("orders:0,1", "--reason", "x"), 2, "'orders:0,1' is not TOPIC:PARTITION", id="two partitions"),
        pytest.param(("--reason", "x"), 2, "TOPIC:PARTITION or --all", id="nothing named"),
        pytest.param(("orders:0", "--all", "--reason", "x"), 2, "TOPIC:PARTITION or --all", id="both named"),
        pytest.param(("--all", "--reason", " "), 2, "pass the reason", id="no reason"),
    ],
)
def test_a_release_of_nothing_is_refused(
    run: Run, redis_url: str, group: str, arguments: tuple[str, ...], code: int, printed: str
) -> None:
    ended, _, err = run("release", group, *arguments, "--redis", redis_url)
    assert (ended, printed in " ".join(err.split())) == (code, True), err


KEYS = (
    FailingRecord(TP, 5, 5, 2, 1_000, False, "ValueError", "no such order"),
    FailingRecord(TP, 6, 6, 5, 2_000, True, "ShopError", "closed"),
    FailingRecord(OTHER, 5, 7, 5, 3_000, True),
)


@pytest.fixture
def failing(group: str, redis_url: str) -> str:
    """The same group with failing keys."""
    with closing(redis.Redis.from_url(redis_url)) as plain:
        for record in KEYS:
            plain.hset(GroupKeys(group).failing, record.field, record.text)
    return group


def test_failing_keys_are_shown_with_their_records_and_errors(run: Run, redis_url: str, failing: str) -> None:
    code, out, _ = run("stuck", failing, "--redis", redis_url)
    deferred = ["deferred", "2", "1970-01-01T00:00:01Z", "ValueError", "no", "such", "order"]
    parked = ["parked", "5", "after", "a", "release"]
    assert (code, rows(out.partition("\n\n")[0])[1:]) == (
        0,
        [
            ["orders", "0", "0000000000000005", "5", *deferred],
            ["orders", "0", "0000000000000006", "6", *parked, "ShopError", "closed"],
            ["orders", "1", "0000000000000005", "7", *parked, "-", "-"],
        ],
    )
    printed = json.loads(run("stuck", failing, "--json", "--redis", redis_url)[1])["keys"]
    assert printed == [asdict(FailingKey.of(record)) for record in KEYS]
    counts = "ailing keys: 1 deferred, 2 parked, see coop-kafka stuck"
    for words in (("top", failing, "--once"), ("describe", failing)):
        assert counts in " ".join(run(*words, "--redis", redis_url)[1].split())
    described = json.loads(run("describe", failing, "--json", "--redis", redis_url)[1])
    assert (described["deferred_keys"], described["parked_keys"]) == (1, 2)


def test_stuck_shows_keys_and_key_ranges_in_two_tables(run: Run, redis_url: str, failing: str) -> None:
    keys, ranges = run("stuck", failing, "--redis", redis_url)[1].split("\n\n")
    assert (len(rows(keys)), len(rows(ranges))) == (4, 3)


def test_nothing_is_stuck(run: Run, redis_url: str, group: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as plain:
        plain.delete(GroupKeys(group).strikes)
    assert run("stuck", group, "--redis", redis_url)[1] == "Nothing is stuck.\n"


@pytest.mark.parametrize(
    ("which", "left"),
    [
        pytest.param(("--all",), KEYS[:1], id="all parked keys of the group; deferred ones are tried again anyway"),
        pytest.param(("orders:0",), (KEYS[0], KEYS[2]), id="those of a partition"),
        pytest.param(("orders:0", "0000000000000005"), KEYS[1:], id="one key, also a deferred one"),
    ],
)
def test_a_release_lets_parked_keys_go_on(
    run: Run, redis_url: str, failing: str, which: tuple[str, ...], left: tuple[FailingRecord, ...]
) -> None:
    code, out, _ = run("release", failing, *which, "--reason", "mended", "--redis", redis_url, "--json")
    assert json.loads(out)["keys"] == [asdict(FailingKey.of(record)) for record in KEYS if record not in left]
    printed = json.loads(run("stuck", failing, "--json", "--redis", redis_url)[1])["keys"]
    assert (code, printed) == (0, [asdict(FailingKey.of(record)) for record in left])


@pytest.mark.parametrize("verb", [("top", "--once"), ("stuck",), ("release", "--all", "--reason", "x")])
def test_an_unknown_group_is_one_line_on_stderr(run: Run, redis_url: str, verb: tuple[str, ...]) -> None:
    code, out, err = run(verb[0], "nobody", *verb[1:], "--redis", redis_url)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("UNKNOWN_GROUP: ")
