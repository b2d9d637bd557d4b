"""The exporter's answers to scrapes: a real Kafka and a real Redis, with hostile names, and without one of both."""

import time
from contextlib import closing

import pytest
import redis

from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.tools.exporter.metrics import MEMBERS, METRICS, REBALANCES
from coordinator.tools.exporter.samples import Sample
from coordinator.tools.exporter.server import families, label
from coordinator.values.subscription import TopicPartition
from exporters import exporter
from own_valkey import OwnValkey
from streams import keyed
from topics import Kafka
from watched_groups import live

HOSTILE = {
    "quotes": 'a"b\\c',
    "lines": "a\nb\r\nc",
    "a label": 'g"} 1\nevil{x="',
    "ANSI": "\x1b[31mred\x1b[0m",
    "HTML": "<script>alert(1)</script>",
    "right to left": "\u202eevil\u2066",
    "other scripts": "группа-組-🦊",
    "a template": "{{ .Labels }} $labels [red]",
    "long": "x" * 2_000,
    "a space": " ",
}
NOWHERE = "127.0.0.1:1"
GROUP = "coop_kafka_consumer_group_"


def test_each_metric_has_its_type_and_its_labels() -> None:
    found = families([Sample(MEMBERS, ("g",), 2), Sample(REBALANCES, ("g",), 3)])
    assert [family.documentation for family in found] == [metric.meaning for metric in METRICS]
    kinds = {family.name: (family.type, [(s.name, s.labels, s.value) for s in family.samples]) for family in found}
    assert kinds[f"{GROUP}members"] == ("gauge", [(f"{GROUP}members", {"group_id": "g"}, 2)])
    total = f"{GROUP}rebalances_total"
    assert kinds[total.removesuffix("_total")] == ("counter", [(total, {"group_id": "g"}, 3)])


def test_a_label_holds_only_what_prometheus_takes() -> None:
    assert (label("a\0b"), label("\ud800"), label("a\n\x1b")) == ("a\u2400b", "?", "a\n\x1b")


@pytest.mark.server
def test_a_scrape_has_the_lag_at_the_log_ends_of_now(valkey: OwnValkey, kafka: Kafka) -> None:
    topic, group = kafka.create_topic("scraped"), "g"
    kafka.produce(topic, keyed(5))
    live(valkey.address, group, topic)
    labels = {"group_id": group, "topic_name": topic, "partition_id": "0"}
    with exporter(valkey.address, kafka.bootstrap) as running:
        first = running.scrape()
        assert first(f"{GROUP}topic_partition_lag", **labels) == 0
        assert first(f"{GROUP}topic_partition_lane_lag_seconds", **labels) == 0
        assert first(f"{GROUP}info", group_id=group, protocol="test 1", state="Stable") == 1
        assert first(f"{GROUP}topic_partition_owned_ratio", **labels, member_id="m-1") == 1
        assert 0 <= (first(f"{GROUP}generation_age_seconds", group_id=group) or -1) < 60
        assert 0 < (first(f"{GROUP}member_lease_seconds", group_id=group, member_id="m-1") or 0) <= 60
        assert (first("coop_redis_up"), first("coop_kafka_up")) == (1, 1)
        assert 0 < (first("coop_exporter_scrape_seconds") or 0) < 10
        kafka.produce(topic, keyed(1_000))
        second = running.scrape()
        assert (
            second(f"{GROUP}topic_partition_lag", **labels)
            == second(f"{GROUP}topic_lag", **dict(list(labels.items())[:2]))
            == 1_000
        )
        deadline = time.monotonic() + 30
        while (running.scrape()(f"{GROUP}topic_partition_lane_lag_seconds", **labels) or 0) < 1:
            assert time.monotonic() < deadline, "the unread records get older"
        assert running.end() == (0, "")


@pytest.mark.server
def test_names_of_groups_are_hostile(valkey: OwnValkey, kafka: Kafka) -> None:
    topic = kafka.create_topic("hostile")
    for number, name in enumerate(HOSTILE.values()):
        live(valkey.address, name, topic, host=f"{name}{number}")
    with exporter(valkey.address, kafka.bootstrap) as running:
        scrape = running.scrape()
        assert {labels["group_id"] for labels in scrape.labels(f"{GROUP}members")} == set(HOSTILE.values())
        assert all(scrape(f"{GROUP}members", group_id=name) == 1 for name in HOSTILE.values())
        hosts = {labels["host"] for labels in scrape.labels(f"{GROUP}member_info")}
        assert hosts == {f"{name}{number}" for number, name in enumerate(HOSTILE.values())}
        assert running.end() == (0, "")


@pytest.mark.server
def test_a_damaged_group_and_an_expired_one_hide_no_other(valkey: OwnValkey, kafka: Kafka) -> None:
    topic = kafka.create_topic("damaged")
    for name in ("sound", "damaged", "replaced", "expired"):
        live(valkey.address, name, topic)
    with closing(redis.Redis.from_url(valkey.address)) as plain:
        plain.hset(GroupKeys("damaged").meta, "nonce", "\x1b[31m")
        plain.delete(GroupKeys("expired").meta, GroupKeys("replaced").segments(TopicPartition(topic, 0)))
        plain.set(GroupKeys("replaced").segments(TopicPartition(topic, 0)), "of another kind")
        assert plain.sismember(GROUPS, "expired")
    with exporter(valkey.address, kafka.bootstrap) as running:
        for _ in range(2):
            scrape = running.scrape()
            readable = {
                labels["group_id"]: scrape(f"{GROUP}readable", **labels) for labels in scrape.labels(f"{GROUP}readable")
            }
            assert readable == {"sound": 1, "damaged": 0, "replaced": 0}
            assert [labels["group_id"] for labels in scrape.labels(f"{GROUP}members")] == ["sound"]
        code, err = running.end()
    assert code == 0
    first, second = err.splitlines()
    assert first.startswith("warning: group 'damaged': STATE_FORMAT: ")
    assert second.startswith("warning: group 'replaced': REDIS_ERROR: ")
    assert (first + second).isprintable()


@pytest.mark.server
def test_kafka_is_away__the_groups_are_there_without_lag(valkey: OwnValkey) -> None:
    live(valkey.address, "g", "orders")
    with exporter(valkey.address, NOWHERE) as running:
        began = time.monotonic()
        scrape = running.scrape()
        assert time.monotonic() - began < 10, "in the time that Prometheus waits"
        assert (scrape("coop_redis_up"), scrape("coop_kafka_up")) == (1, 0)
        assert scrape(f"{GROUP}members", group_id="g") == 1
        assert [name for name in scrape.names if "lag" in name] == []
        running.process.terminate()
        assert running.process.stderr is not None
        assert running.process.stderr.readline().startswith("warning: Kafka: ")


@pytest.mark.server
def test_redis_takes_no_writes__the_groups_are_there_and_the_reason_is_named(valkey: OwnValkey, kafka: Kafka) -> None:
    live(valkey.address, "g", kafka.create_topic("full"))
    with exporter(valkey.address, kafka.bootstrap) as running:
        assert running.scrape()(f"{GROUP}writable", group_id="g") == 1
        valkey.configure(maxmemory="1")
        scrape = running.scrape()
        assert (scrape("coop_redis_up"), scrape(f"{GROUP}writable", group_id="g")) == (1, 0)
        assert scrape(f"{GROUP}members", group_id="g") == 1
        valkey.configure(maxmemory="0")
        assert running.scrape()(f"{GROUP}writable", group_id="g") == 1
        code, err = running.end()
    assert code == 0
    warning, back = err.splitlines()
    assert warning.startswith("warning: Redis: REDIS_NOT_READY: ")
    assert "its memory is full" in warning
    assert back == "Redis: works again"


@pytest.mark.server
def test_redis_goes_away_and_comes_back(valkey: OwnValkey, kafka: Kafka) -> None:
    live(valkey.address, "g", kafka.create_topic("away"))
    with exporter(valkey.address, kafka.bootstrap) as running:
        assert running.scrape()("coop_redis_up") == 1
        valkey.process.suspend()
        scrape = running.scrape()
        assert (scrape("coop_redis_up"), scrape("coop_kafka_up")) == (0, None)
        assert [name for name in scrape.names if "group" in name] == []
        valkey.process.resume()
        assert running.scrape()(f"{GROUP}members", group_id="g") == 1
        code, err = running.end()
    assert code == 0
    assert [line.split(": ")[0] for line in err.splitlines()] == ["warning", "Redis"]
