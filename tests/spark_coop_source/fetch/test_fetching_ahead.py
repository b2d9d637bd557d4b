"""While records are decoded and worked on, those that follow are on their way."""

from collections.abc import Callable, Iterator

import pytest

from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition
from log_fixtures import eventually
from spark_coop_source.fetch import consumers
from spark_coop_source.fetch.fetch import FetchSettings, fetch
from topics import Kafka, Record

BATCHES, BATCH_BYTES = 4, 50_000


@pytest.fixture(scope="module")
def log(kafka: Kafka) -> TopicPartition:
    """A partition with four record batches of one record."""
    topic = kafka.create_topic("ahead")
    for _ in range(BATCHES):
        kafka.produce(topic, [Record(bytes(BATCH_BYTES))])
    return TopicPartition(topic, 0)


def asked(kafka: Kafka, log: TopicPartition, until: int, **client: object) -> Iterator[tuple[int, Callable[[], bool]]]:
    """The first offset of each chunk, and whether more is asked for now, or has come already."""
    settings = {"bootstrap_servers": kafka.bootstrap, "max_partition_fetch_bytes": BATCH_BYTES, **client}
    with consumers.borrowed(settings, [log]) as consumer:
        fetcher = consumer._fetcher
        for chunk in fetch(consumer, log, OffsetRange(0, until), FetchSettings(settings, 20_000, True)):

            def more_is_coming() -> bool:
                return bool(fetcher.in_flight_fetches() or fetcher._completed_fetches)

            yield int(chunk.offsets[0]), more_is_coming
    consumers.close_idle()


def test_the_next_answer_is_asked_for_while_this_one_is_worked_on(kafka: Kafka, log: TopicPartition) -> None:
    """The client's thread sends the request; no poll happens until it has, for the chunk is worked on."""
    seen = []
    for offset, more_is_coming in asked(kafka, log, BATCHES):
        seen.append(offset)
        if offset < BATCHES - 2:  # two answers may be one chunk
            eventually(more_is_coming)
    assert seen[0] == 0


def test_what_fits_in_one_answer_is_asked_for_once(kafka: Kafka, log: TopicPartition) -> None:
    whole = {"max_partition_fetch_bytes": 2 * BATCHES * BATCH_BYTES}
    assert [(offset, more_is_coming()) for offset, more_is_coming in asked(kafka, log, BATCHES, **whole)] == [
        (0, False)
    ]
