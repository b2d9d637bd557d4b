"""Reads a stretch of a log with a fetcher's consumer: its chunks, or the offsets in them."""

from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition as OurTopicPartition
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.fetch import consumers
from spark_coop_source.fetch.fetch import FetchSettings, fetch
from topics import Kafka, Record


def chunks(
    kafka: Kafka,
    topic: str,
    start: int,
    until: int,
    *,
    fail_on_data_loss: bool = True,
    poll_timeout_ms: int = 20_000,
    **settings: object,
) -> list[Chunk]:
    tp = OurTopicPartition(topic, 0)
    client = {"bootstrap_servers": kafka.bootstrap, **settings}
    how = FetchSettings(client, poll_timeout_ms, fail_on_data_loss)
    with consumers.borrowed(client, [tp]) as consumer:
        return list(fetch(consumer, tp, OffsetRange(start, until), how))


def fetched(kafka: Kafka, topic: str, start: int, until: int, **settings: object) -> list[int]:
    read = chunks(kafka, topic, start, until, **settings)  # type: ignore[arg-type]
    return [offset for chunk in read for offset in chunk.offsets.tolist()]


def hundred(kafka: Kafka) -> str:
    """A topic with a hundred records and nothing odd."""
    topic = kafka.create_topic("numbers")
    kafka.produce(topic, [Record(b"%d" % i, b"%d" % (i % 10)) for i in range(100)])
    return topic
