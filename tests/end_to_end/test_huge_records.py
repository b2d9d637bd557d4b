"""A record that is larger than kafka-python's limit of an answer, through Spark."""

import pytest

from log_fixtures import produce_large
from streams import Stream
from topics import Kafka, Record


@pytest.mark.long
def test_a_record_of_a_hundred_megabytes_reaches_the_sink_with_those_around_it(stream: Stream, kafka: Kafka) -> None:
    topic = kafka.create_topic("huge", config={"max.message.bytes": "104000000"})
    kafka.produce(topic, [Record(b"v", b"%d" % i) for i in range(4)])
    produce_large(kafka, topic, b"k", 101_000_000)
    kafka.produce(topic, [Record(b"v", b"%d" % i) for i in range(4)])
    stream.options["subscribe"] = topic
    sizes: dict[int, int] = {}
    rows = stream.spark.readStream.format("coop-kafka").options(**stream.options).load()
    shown = rows.selectExpr("offset", "length(value) as bytes").writeStream.foreachBatch(
        lambda batch, _: sizes.update({row.offset: row.bytes for row in batch.collect()})
    )
    query = shown.option("checkpointLocation", str(stream.checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert sizes == {offset: 101_000_000 if offset == 4 else 1 for offset in range(9)}
