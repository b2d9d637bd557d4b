"""Trigger.Once reads all there is in one batch, as with Spark's own source; every other trigger keeps to its limits."""

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from coordinator.member.limits import Limits
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.options.options import validate
from streams import DEADLINE_S, Stream, keyed, stable
from topics import Kafka

OPTIONS = {
    "kafka.bootstrap.servers": "localhost:9092",
    "subscribe": "orders",
    "group": "orders-to-lake",
    "redisUrl": "redis://localhost:6379/0",
}


@pytest.mark.parametrize(
    ("options", "limit", "expected"),
    [
        pytest.param({}, None, Limits(), id="an ordinary trigger without limits"),
        pytest.param({}, ReadAllAvailable(), Limits(everything=True), id="Once"),
        pytest.param({"maxOffsetsPerTrigger": "7"}, None, Limits(7), id="an ordinary trigger with a limit"),
        pytest.param({"maxOffsetsPerTrigger": "7"}, ReadAllAvailable(), Limits(everything=True), id="Once ignores it"),
        pytest.param({"minOffsetsPerTrigger": "3"}, None, Limits(None, 3), id="an ordinary trigger that waits"),
    ],
)
def test_limits_of_a_batch_under_each_trigger(
    options: dict[str, str], limit: ReadLimit | None, expected: Limits
) -> None:
    reader = CoopKafkaStreamReader(validate(OPTIONS | options, streaming=True))
    assert reader._limits(limit or reader.getDefaultReadLimit()) == expected


def test_no_default_limit_counts_as_once() -> None:
    assert isinstance(CoopKafkaStreamReader(validate(OPTIONS, streaming=True)).getDefaultReadLimit(), ReadMaxRows)


@pytest.mark.parametrize("options", [{}, {"maxOffsetsPerTrigger": "100"}], ids=["by default", "beyond a limit"])
def test_once_reads_a_new_topic_to_its_end_in_one_batch(kafka: Kafka, stream: Stream, options: dict[str, str]) -> None:
    kafka.produce(stream.options["subscribe"], keyed(20_000))
    query = stream.start({"once": True}, **options)
    try:
        assert query.awaitTermination(DEADLINE_S)
    finally:
        query.stop()
    assert stream.sink.batches == [0]
    assert stream.sink.offsets == list(range(20_000))
    stream.run()
    assert stable(stream) == {20_000}
