"""Redis goes away under a running query: kept pending, retried, and a named error only after `redis.max.outage`."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from own_valkey import OwnValkey
from streams import Stream, eventually, keyed, sent, stable
from topics import Kafka
from verdict import judge, require, require_good

LEASES = {"session.timeout.ms": "1500", "heartbeat.interval.ms": "300"}


@pytest.fixture
def stream(spark: SparkSession, kafka: Kafka, valkey: OwnValkey, group: str, tmp_path: Path) -> Stream:
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": kafka.create_topic("outage"),
        "startingOffsets": "earliest",
        "group": group,
        "redis.url": valkey.address,
        **LEASES,
    }
    return Stream(spark, options, tmp_path / "checkpoint")


def test_a_running_query_survives_a_redis_that_is_restarted(kafka: Kafka, stream: Stream, valkey: OwnValkey) -> None:
    records = keyed(30)
    kafka.produce(stream.options["subscribe"], records[:20])
    with stream.running(lambda: stable(stream) == {30}, "work goes on after the restart"):
        eventually(lambda: stable(stream) == {20}, "the first batch is confirmed")
        valkey.restart()
        kafka.produce(stream.options["subscribe"], records[20:])
    require_good(judge(sent(records), stream.sink.received))


def test_a_redis_that_comes_back_empty_is_a_loss_that_the_running_query_repairs(
    kafka: Kafka, stream: Stream, valkey: OwnValkey
) -> None:
    records = keyed(30)
    kafka.produce(stream.options["subscribe"], records[:20])
    with stream.running(lambda: stable(stream) == {30}, "work goes on after the loss"):
        eventually(lambda: stable(stream) == {20}, "the first batch is confirmed")
        valkey.restart(emptied=True)
        kafka.produce(stream.options["subscribe"], records[20:])
    require_good(judge(sent(records), stream.sink.received))  # this process proves what its sink completed


def test_an_outage_longer_than_the_limit_is_a_named_error_and_loses_nothing(
    kafka: Kafka, stream: Stream, valkey: OwnValkey
) -> None:
    records = keyed(30)
    kafka.produce(stream.options["subscribe"], records[:20])
    stream.options["redis.max.outage"] = "1s"
    query = stream.start()
    eventually(lambda: stable(stream) == {20}, "the first batch is confirmed")
    valkey.stop()
    kafka.produce(stream.options["subscribe"], records[20:])
    eventually(lambda: query.exception() is not None, "the query fails")
    assert "REDIS_UNAVAILABLE" in str(query.exception())
    assert "redis.max.outage" in str(query.exception())
    valkey.restart()
    stream.run()
    verdict = judge(sent(records), stream.sink.received)
    require((verdict.lost, verdict.out_of_order) == (0, 0), verdict)
