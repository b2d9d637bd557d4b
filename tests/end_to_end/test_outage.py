"""Redis goes away under a running query: kept pending, retried, and a named error only after `redisMaxOutage`."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator.errors import RedisUnavailableError
from own_valkey import OwnValkey
from redis_sentinels import watched
from streams import Stream, eventually, keyed, sent, stable
from topics import Kafka
from verdict import judge, require, require_good

LEASES = {"sessionTimeout": "1500", "heartbeatInterval": "300"}


@pytest.fixture
def stream(spark: SparkSession, kafka: Kafka, valkey: OwnValkey, group: str, tmp_path: Path) -> Stream:
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": kafka.create_topic("outage"),
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": valkey.address,
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


@pytest.mark.long
def test_a_master_that_dies_in_a_batch_loses_nothing(
    spark: SparkSession, kafka: Kafka, group: str, tmp_path: Path
) -> None:
    """Three sentinels make its copy the master. To the group, that is another Redis: members prove positions anew."""
    records, options = keyed(60), LEASES | {"subscribe": kafka.create_topic("failover"), "startingOffsets": "earliest"}
    kafka.produce(options["subscribe"], records[:40])
    with watched(tmp_path) as servers:
        options |= {"kafka.bootstrap.servers": kafka.bootstrap, "group": group, "redisUrl": servers.url}
        stream = Stream(spark, options | {"maxOffsetsPerTrigger": "10"}, tmp_path / "checkpoint")
        stream.sink.before = lambda batch_id: servers.kill_master() if batch_id == 2 else None
        with stream.running(lambda: 2 in stream.sink.batches and stable_or_away(stream) == {60}, "all is done"):
            kafka.produce(options["subscribe"], records[40:])
    require_good(judge(sent(records), stream.sink.received))


def stable_or_away(stream: Stream) -> set[int]:
    """The stable offsets; empty while no server is the master."""
    try:
        return stable(stream)
    except RedisUnavailableError:
        return set()


@pytest.mark.long
def test_an_outage_longer_than_the_limit_is_a_named_error_and_loses_nothing(
    kafka: Kafka, stream: Stream, valkey: OwnValkey
) -> None:
    records = keyed(30)
    kafka.produce(stream.options["subscribe"], records[:20])
    stream.options["redisMaxOutage"] = "1s"
    query = stream.start()
    eventually(lambda: stable(stream) == {20}, "the first batch is confirmed")
    valkey.stop()
    kafka.produce(stream.options["subscribe"], records[20:])
    eventually(lambda: query.exception() is not None, "the query fails")
    assert "REDIS_UNAVAILABLE" in str(query.exception())
    assert "redisMaxOutage" in str(query.exception())
    valkey.restart()
    stream.run()
    verdict = judge(sent(records), stream.sink.received)
    require((verdict.lost, verdict.out_of_order) == (0, 0), verdict)
