"""The commands that only look, against a real Redis: `describe`, `gaps`, `owner`, `events`, `groups`."""

import json
import secrets
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import redis
from kafka import KafkaProducer

from command_runs import Run
from coordinator.assignment.assignment_text import Ranges
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.events import follow, last_events
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import store_of
from coordinator.values.key_hash import hash_key
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from streams import keyed
from topics import Kafka

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


SAID = {"host": "h1", "driver_pid": "7", "pid": "12", "capacity": "4", "label.zone": "a", "label.team": "core"}


WHOLE_TEXT = "0000000000000000-7fffffffffffffff"


@pytest.fixture
def known_group(redis_url: str) -> Iterator[str]:
    """A group with one member that owns two partitions; a name that a terminal or a template could misread."""
    group = f"my [red]group[/] {{1}} {secrets.token_hex(4)}"
    with closing(RedisClient(redis_url)) as client:
        store = store_of(ScriptCalls(client, group, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        store.positions.create("aa", {"orders": Topic("orders", "id-1", (0, 1))}, {FIRST: 5, SECOND: 7})
        seen = store.members.join(Caller("m-1", "i1"), "", Joining(SAID)).seen
        me = Caller("m-1", "i1", seen.nonce, str(seen.seq))
        everything: Ranges = {FIRST: (WHOLE,), SECOND: (WHOLE,)}
        store.members.assign(me, store.members.look(me).value.occasion, "test 1", {"m-1": everything})
        store.positions.acquire(me, everything)
        store.positions.report_ends({FIRST: 50}, {})
        yield group


def test_describe_prints_a_table_for_people(run: Run, redis_url: str, known_group: str) -> None:
    code, out, err = run("describe", known_group, "--redis", redis_url)

    rows = [line.split() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert out.startswith(f"Group {known_group!r}: Stable, generation 1 by test 1\n")
    assert ["orders", "0", "5", "50", "45", "0", WHOLE_TEXT, "5", "45", "m-1"] in rows
    assert ["orders", "1", "7", "-", "-", "0", WHOLE_TEXT, "7", "-", "m-1"] in rows
    (member,) = (row for row in rows if row[:2] == ["m-1", "working"])
    assert (member[2:6], member[-1]) == (["h1", "7", "12", "4"], "team=core,zone=a"), "what to stop, and whose it is"


def test_describe_prints_json_for_programs(
    run: Run, redis_url: str, known_group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COOP_REDIS", redis_url)
    code, out, _ = run("describe", known_group, "--json")

    printed = json.loads(out)
    assert code == 0
    assert printed["group"] == known_group
    assert printed["partitions"][0].pop("end_age_s") < 60
    assert [member["member"] for member in printed["members"]] == ["m-1"]
    assert (printed["state"], printed["generation"], printed["assignor"], printed["reset"]) == (
        "Stable",
        1,
        "test 1",
        0,
    )
    assert printed["policy"] == {}
    assert run("policy", known_group, "--set", "accept.range.fetch:orders=false", "--execute")[0] == 0
    assert json.loads(run("describe", known_group, "--json")[1])["policy"] == {"accept.range.fetch:orders": False}
    assert printed["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "stable": 5,
        "end": 50,
        "lag": 45,
        "gaps": 0,
        "lanes": [{"hashes": WHOLE_TEXT, "position": 5, "lag": 45, "epoch": "aa.1", "member": "m-1"}],
        "slices": [],
    }


def test_gaps_are_the_missing_offsets_above_the_stable_offset(run: Run, redis_url: str, known_group: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as client:
        client.hset(GroupKeys(known_group).ics(FIRST), WHOLE_TEXT, "45-47 50-50")

    code, out, _ = run("gaps", known_group, "--redis", redis_url)
    assert code == 0
    assert ["orders", "0", "5", "50", WHOLE_TEXT, "5-44", "48-49"] in [line.split() for line in out.splitlines()]
    _, out, _ = run("gaps", known_group, "--json", "--redis", redis_url)
    assert json.loads(out)["partitions"][0]["gaps"] == [
        {"hashes": WHOLE_TEXT, "position": 5, "missing": [[5, 44], [48, 49]]}
    ]
    assert json.loads(out)["partitions"][1]["gaps"] == []


def test_a_table_shows_a_thousand_offset_ranges_a_cell_and_json_all(run: Run, redis_url: str, known_group: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as client:
        ics = " ".join(f"{offset}-{offset}" for offset in range(45, 45 + 2 * 1_500, 2))
        client.hset(GroupKeys(known_group).ics(FIRST), WHOLE_TEXT, ics)

    for verb in (("gaps", known_group), ("owner", known_group, "orders", "key")):
        code, out, _ = run(*verb, "--redis", redis_url)
        assert (code, "and 500 more: --json shows all" in " ".join(out.split())) == (0, True)
    _, out, _ = run("gaps", known_group, "--json", "--redis", redis_url)
    assert len(json.loads(out)["partitions"][0]["gaps"][0]["missing"]) == 1_500


@pytest.mark.parametrize("key", [("order-1",), ("6f726465722d31", "--hex")], ids=["as text", "as hex digits"])
def test_the_owner_of_a_key_is_shown_with_its_position(
    run: Run, redis_url: str, known_group: str, key: tuple[str, ...]
) -> None:
    code, out, _ = run("owner", known_group, "orders", *key, "--redis", redis_url)
    assert code == 0
    assert [row.split()[-5:] for row in out.splitlines()[1:3]] == [
        [WHOLE_TEXT, "5", "-", "m-1", "h1"],
        [WHOLE_TEXT, "7", "-", "m-1", "h1"],
    ]
    _, out, _ = run("owner", known_group, "orders", *key, "--partition", "1", "--json", "--redis", redis_url)
    (printed,) = json.loads(out)["owners"]
    assert (printed["partition"], printed["position"], printed["member"], printed["epoch"]) == (1, 7, "m-1", "aa.1")
    assert printed["key_hash"] == f"{hash_key(b'order-1'):016x}"


def test_the_usual_partition_of_a_key_is_kafkas_own_choice(
    run: Run, redis_url: str, known_group: str, kafka: Kafka
) -> None:
    topic = kafka.create_topic("usual", partitions=2)
    keys = [f"key-{i}" for i in range(6)]
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap)) as producer:
        chosen = [producer.send(topic, key=key.encode()).get(timeout=60).partition for key in keys]
    assert set(chosen) == {0, 1}
    for key, partition in zip(keys, chosen, strict=True):
        _, out, _ = run("owner", known_group, "orders", key, "--json", "--redis", redis_url)
        assert [o["partition"] for o in json.loads(out)["owners"] if o["usual"]] == [partition]


def test_a_key_that_is_no_hex_and_a_topic_that_is_not_read_are_refused(
    run: Run, redis_url: str, known_group: str
) -> None:
    code, _, err = run("owner", known_group, "orders", "xyz", "--hex", "--redis", redis_url)
    assert (code, err.startswith("INVALID_OPTION")) == (2, True)
    code, _, err = run("owner", known_group, "returns", "k", "--redis", redis_url)
    assert (code, err.startswith("UNKNOWN_TOPIC_OR_PARTITION")) == (1, True)


def test_the_last_events_are_shown_in_order(run: Run, redis_url: str, known_group: str) -> None:
    code, out, _ = run("events", known_group, "--json", "--redis", redis_url)
    printed = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(e["kind"], e["member"]) for e in printed][:2] == [("found", ""), ("join", "m-1")]
    assert [e["at_ms"] for e in printed] == sorted(e["at_ms"] for e in printed)
    _, out, _ = run("events", known_group, "--last", "1", "--redis", redis_url)
    (line,) = out.splitlines()
    assert line.split()[1:3] == [printed[-1]["kind"], "m-1"]


def test_events_are_followed_as_they_come(redis_url: str, known_group: str) -> None:
    with closing(RedisClient(redis_url)) as client:
        store = store_of(ScriptCalls(client, known_group, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        coming = follow(client, known_group, last_events(client, known_group, 1)[-1].id)
        store.reports.event("loss", "one")
        assert [(e.kind, e.why) for e in next(coming)] == [("loss", "one")]
        store.reports.event("loss", "two")
        assert [(e.kind, e.why) for e in next(coming)] == [("loss", "two")]


def test_groups_are_listed_for_people_and_programs(run: Run, redis_url: str, known_group: str) -> None:
    code, out, _ = run("list", "--redis", redis_url)
    assert code == 0
    (row,) = (line.removeprefix(known_group).split() for line in out.splitlines() if line.startswith(known_group))
    assert row[:3] == ["Stable", "1", "45"]
    assert float(row[3]) < 60
    code, out, _ = run("list", "--json", "--redis", redis_url)
    (printed,) = (line for line in json.loads(out)["groups"] if line["group"] == known_group)
    assert printed.pop("end_age_s") < 60
    assert (code, printed) == (0, {"group": known_group, "state": "Stable", "members": 1, "lag": 45})


def test_a_damaged_group_does_not_hide_the_other_groups(run: Run, redis_url: str, known_group: str) -> None:
    damaged = f"damaged {secrets.token_hex(4)}"
    with closing(redis.Redis.from_url(redis_url)) as client:
        client.hset(GroupKeys(damaged).meta, mapping={"schema": "1", "nonce": "not hex"})
        client.sadd(GROUPS, damaged)
        try:
            code, out, err = run("list", "--json", "--redis", redis_url)
        finally:
            client.srem(GROUPS, damaged)
            client.delete(GroupKeys(damaged).meta)
    state_of = {line["group"]: line["state"] for line in json.loads(out)["groups"]}
    assert (code, state_of[damaged], state_of[known_group]) == (0, "Unreadable", "Stable")
    assert err.startswith(f"warning: group {damaged!r}: STATE_FORMAT: ")


def test_without_kafka_the_age_of_the_log_ends_is_shown(run: Run, redis_url: str, known_group: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as client:
        seconds, _ = client.time()
        client.hset(GroupKeys(known_group).end("orders"), "at", str((seconds - 600) * 1_000))
    for verb in (("describe",), ("gaps",), ("top", "--once")):
        code, out, err = run(verb[0], known_group, *verb[1:], "--redis", redis_url)
        assert (code, err) == (0, "")
        (age,) = (line for line in out.splitlines() if line.startswith("End offsets are up to "))
        assert 600 <= int(age.split()[5]) < 660
        assert age.endswith(" s old: a member saw them. --bootstrap-server asks Kafka.")
    _, out, _ = run("describe", known_group, "--json", "--redis", redis_url)
    first, second = json.loads(out)["partitions"]
    assert 600 <= first["end_age_s"] < 660
    assert (second["end"], second["end_age_s"]) == (None, None)


@pytest.fixture
def silent_group(redis_url: str, kafka: Kafka) -> tuple[str, str]:
    """A group whose only member is gone, with its positions at the end of a topic that grew since; and the topic."""
    topic, group = kafka.create_topic("silent", partitions=1), f"silent {secrets.token_hex(4)}"
    tp, gone = TopicPartition(topic, 0), TopicPartition(f"{topic}-gone", 0)
    kafka.produce(topic, keyed(5))
    with closing(RedisClient(redis_url)) as client:
        store = store_of(ScriptCalls(client, group, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        topics = {t: Topic(t, "id-1", (0,)) for t in (topic, gone.topic)}
        store.positions.create("aa", topics, {tp: 5, gone: 7})
        store.positions.report_ends({tp: 5, gone: 7}, {})
    kafka.produce(topic, keyed(1_000))
    return group, topic


def test_with_kafka_the_lag_grows_without_members(
    run: Run, redis_url: str, kafka: Kafka, silent_group: tuple[str, str]
) -> None:
    group, topic = silent_group
    asking = "--redis", redis_url, "--bootstrap-server", kafka.bootstrap

    def printed(*arguments: str) -> Any:
        code, out, err = run(*arguments, "--json")
        assert code == 0
        assert all(line.startswith("warning: group ") for line in err.splitlines()), "groups of other tests are damaged"
        return json.loads(out)

    assert [p["lag"] for p in printed("describe", group, "--redis", redis_url)["partitions"]] == [0, 0]
    seen = printed("describe", group, *asking)["partitions"]
    assert [(p["topic"], p["end"], p["lag"], p["end_age_s"]) for p in seen] == [
        (topic, 1_005, 1_000, 0),
        (f"{topic}-gone", None, None, None),  # Kafka does not have it
    ]
    assert [p["end"] for p in printed("gaps", group, *asking)["partitions"]] == [1_005, None]
    top = printed("top", group, *asking)
    assert (top["state"], top["lag"], top["end_age_s"]) == ("Empty", 1_000, 0)
    (line,) = (x for x in printed("list", *asking)["groups"] if x["group"] == group)
    assert line == {"group": group, "state": "Empty", "members": 0, "lag": 1_000, "end_age_s": 0}
    for verb in (("describe",), ("gaps",), ("top", "--once")):
        assert "Log ends" not in run(verb[0], group, *verb[1:], *asking)[1]


@pytest.mark.usefixtures("impatient")
def test_without_the_kafka_that_is_named_no_lag_is_shown(run: Run, redis_url: str, known_group: str) -> None:
    assert run("describe", known_group, "--redis", redis_url, "--bootstrap-server", "127.0.0.1:1")[0] == 1


def test_a_group_that_has_expired_is_not_listed(run: Run, redis_url: str, known_group: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as client:
        client.delete(GroupKeys(known_group).meta)
    assert known_group not in run("list", "--redis", redis_url)[1]
