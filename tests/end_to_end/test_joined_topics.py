"""A join by key inside the read, without a shuffle: it has the pairs of Spark's own join of the two topics."""

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from coordinator.assignment.rebalance import union
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition
from drivers import joining_job, stream_join_job
from drivers.driver import Driver
from drivers.fleet import Fleet
from spark_coop_source import map_batches
from streams import DEADLINE_S
from topics import Kafka, Record

KEYS, EVERY_S = 24, 0.3
Pair = tuple[str, int, int]


def records(count: int, first: int = 0) -> list[Record]:
    return [Record(b"%d" % i, b"key-%d" % (i % KEYS)) for i in range(first, first + count)]


def joined_by_spark(spark: SparkSession, kafka: Kafka, orders: str, payments: str) -> set[Pair]:
    """The pairs of Spark's own join over Spark's own source."""

    def side(topic: str, name: str) -> DataFrame:
        options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic}
        rows = spark.read.format("kafka").options(**options).load()
        return rows.selectExpr("cast(key as string) as key", f"offset as {name}")

    found = side(orders, "left").join(side(payments, "right"), "key").collect()
    return {(r.key, r.left, r.right) for r in found}


@pytest.fixture
def payments(kafka: Kafka) -> str:
    return kafka.create_topic("payments")


@pytest.fixture
def fleet(kafka: Kafka, redis_url: str, payments: str, tmp_path: Path) -> Iterator[Fleet]:
    """Drivers-to-be; orders are in the fleet's topic."""
    (tmp_path / "store").mkdir()
    made = Fleet(kafka, redis_url, f"joined-{uuid.uuid4().hex[:8]}", tmp_path, pace="1 second")
    made.job = Path(joining_job.__file__)
    function = joining_job.joining(made.topic, str(tmp_path / "store"))
    topics = f"{made.topic},{payments}"
    made.options = {"subscribe": topics, "copartition": topics, **map_batches(function, joining_job.SCHEMA)}
    yield made
    made.end()


@contextmanager
def producing(fleet: Fleet, payments: str) -> Iterator[dict[str, int]]:
    """Send orders and payments of all keys while the body of `with` runs; the number of records by topic."""
    stop, sent = threading.Event(), {fleet.topic: 0, payments: 0}

    def produce() -> None:
        while not stop.wait(EVERY_S):
            for topic, count in ((fleet.topic, KEYS // 2), (payments, KEYS // 3)):
                fleet.kafka.produce(topic, records(count, sent[topic]))
                sent[topic] += count

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join()


def owners(fleet: Fleet, topic: str) -> dict[str, tuple[HashRange, ...]]:
    """The hashes of the topic's partition that each member owns."""
    state = fleet.state
    found = state.owners.get(TopicPartition(topic, 0), ()) if state else ()
    return {member: union(h for h, _, owner in found if owner == member) for _, _, member in found}


def by_driver(fleet: Fleet, topic: str) -> dict[str, tuple[HashRange, ...]]:
    """The hashes of the topic's partition that the reads of each driver own."""
    state = fleet.state
    drivers = {m: fields.get("driver_pid", m) for m, fields in state.members.items()} if state else {}
    return {drivers.get(member, member): hashes for member, hashes in owners(fleet, topic).items()}


def shared(fleet: Fleet, payments: str, *drivers: Driver) -> bool:
    """Whether these drivers own all of both topics, each the same hashes of both."""
    if not fleet.working(*drivers):
        return False
    of_orders = owners(fleet, fleet.topic)
    return owners(fleet, payments) == of_orders and of_orders.keys() == {d.member for d in drivers}


def confirmed(fleet: Fleet, sent: dict[str, int]) -> bool:
    state = fleet.state
    return state is not None and {tp.topic: stable for tp, stable in state.stable.items()} == sent


def pairs(fleet: Fleet) -> set[Pair]:
    """All pairs that a driver wrote."""
    lines = [json.loads(line) for d in fleet.drivers.values() for line in d.lines]
    return {(key, left, right) for line in lines for key, left, right in line["pairs"]}


def test_a_join_inside_the_read_on_two_drivers_equals_sparks_own_after_one_is_killed(
    spark: SparkSession, kafka: Kafka, fleet: Fleet, payments: str
) -> None:
    with producing(fleet, payments) as sent:
        killed, stays = fleet.join("killed"), fleet.join("stays")
        fleet.until(lambda: shared(fleet, payments, killed, stays), "each driver owns the same half of both topics")
        before = killed.finished
        fleet.until(lambda: killed.finished > before + 1, "both have joined some")
        killed.kill()
        fleet.until(lambda: shared(fleet, payments, stays), "one driver owns both topics")
    fleet.until(lambda: confirmed(fleet, sent), "every record is joined")
    assert owners(fleet, payments) == owners(fleet, fleet.topic) == {stays.member: (WHOLE,)}
    expected = joined_by_spark(spark, kafka, fleet.topic, payments)
    assert len(expected) > KEYS
    assert pairs(fleet) == expected


def test_sparks_join_of_two_loads_on_two_drivers_equals_its_join_of_two_batches(
    spark: SparkSession, kafka: Kafka, fleet: Fleet, payments: str
) -> None:
    fleet.job = Path(stream_join_job.__file__)
    topics = f"{fleet.topic},{payments}"
    fleet.options = {"subscribe": topics, "copartition": topics, "sharing": "required"}
    one, other = fleet.join("one"), fleet.join("other")
    drivers = {str(d.running.pid) for d in (one, other)}
    fleet.until(lambda: by_driver(fleet, fleet.topic).keys() == drivers, "the drivers share orders")
    fleet.until(lambda: by_driver(fleet, payments) == by_driver(fleet, fleet.topic), "and payments in the same way")
    sent = {fleet.topic: 300, payments: 200}
    for topic, count in sent.items():
        kafka.produce(topic, records(count))
    fleet.until(lambda: confirmed(fleet, sent), "every record is joined")
    assert pairs(fleet) == joined_by_spark(spark, kafka, fleet.topic, payments)
    one.kill()
    last = {str(other.running.pid): (WHOLE,)}
    fleet.until(lambda: by_driver(fleet, fleet.topic) == by_driver(fleet, payments) == last, "one driver owns all")


def test_a_join_inside_a_batch_equals_sparks_own(
    spark: SparkSession, kafka: Kafka, payments: str, tmp_path: Path
) -> None:
    orders = kafka.create_topic("orders")
    kafka.produce(orders, records(400))
    kafka.produce(payments, records(100, 7))
    topics = f"{orders},{payments}"
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topics, "copartition": topics, "slots": "4"}
    function = joining_job.joining(orders, str(tmp_path))
    rows = (
        spark.read.format("coop-kafka").options(**options, **map_batches(function, joining_job.SCHEMA)).load().cache()
    )
    assert rows.rdd.getNumPartitions() == 4
    found = [(r.key, r.left, r.right) for r in rows.collect()]
    assert len(found) == len(set(found))
    assert set(found) == joined_by_spark(spark, kafka, orders, payments)


def test_topics_with_different_numbers_of_partitions_are_refused(
    spark: SparkSession, kafka: Kafka, redis_url: str, group: str, payments: str, tmp_path: Path
) -> None:
    topics = f"{kafka.create_topic('orders', partitions=2)},{payments}"
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topics, "copartition": topics}
    with pytest.raises(PySparkException, match=r"NOT_COPARTITIONED.* has 2, payments.* has 1"):
        spark.read.format("coop-kafka").options(**options).load().collect()
    rows = spark.readStream.format("coop-kafka").options(**options, group=group, redisUrl=redis_url).load()
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException, match=r"NOT_COPARTITIONED.* has 2, payments.* has 1"):
        query.awaitTermination(DEADLINE_S)
