"""While records are decoded and worked on, those that follow are on their way."""

from collections.abc import Iterator

import pytest

from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.fetch import consumers
from spark_coop_source.fetch.fetch import FetchSettings, fetch
from topics import Kafka, Record

BATCHES, BATCH_BYTES = 12, 50_000


@pytest.fixture(scope="module")
def log(kafka: Kafka) -> TopicPartition:
    """A partition with record batches of one record each."""
    topic = kafka.create_topic("ahead")
    for _ in range(BATCHES):
        kafka.produce(topic, [Record(bytes(BATCH_BYTES))])
    return TopicPartition(topic, 0)


def asked(kafka: Kafka, log: TopicPartition, until: int, **client: object) -> Iterator[tuple[int, int, bool]]:
    """First offset and records of each chunk, and whether the client had asked for more when it was handed over."""
    settings = {"bootstrap_servers": kafka.bootstrap, "max_partition_fetch_bytes": BATCH_BYTES, **client}
    with consumers.borrowed(settings, [log]) as consumer:
        fetcher = consumer._fetcher
        for chunk in fetch(consumer, log, OffsetRange(0, until), FetchSettings(settings, 20_000, True)):
            yield int(chunk.offsets[0]), len(chunk), bool(fetcher.in_flight_fetches() or fetcher._completed_fetches)
    consumers.close_idle()


def test_the_next_answer_is_asked_for_while_this_one_is_worked_on(kafka: Kafka, log: TopicPartition) -> None:
    """The next answer may come so soon that it is in the same chunk."""
    seen = list(asked(kafka, log, BATCHES))
    assert seen[0][0] == 0
    assert all(more or count > 1 for offset, count, more in seen if offset + count < BATCHES), seen


def test_the_answer_after_the_first_one_has_all_the_rest(kafka: Kafka, log: TopicPartition) -> None:
    whole = {"max_partition_fetch_bytes": 2 * BATCHES * BATCH_BYTES}
    first, *others = asked(kafka, log, BATCHES, **whole)
    assert first[:2] in ((0, 1), (0, BATCHES)), "it may come so soon that it is in the same chunk"
    assert others == ([(1, BATCHES - 1, False)] if first[1] == 1 else [])
