"""Many short stretches in one task: asked for together, and read as if each were alone."""

from contextlib import closing
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.errors import DataLossError
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from log_fixtures import end, odd_log, offsets, rows, task, whole
from spark_coop_source.fetch import consumers, raw_batches
from spark_coop_source.fetch.several import Begun, at_once, begun
from topics import Kafka, Record

PARTITIONS, EACH = 30, 20


pytestmark = pytest.mark.usefixtures("closed_clients")


@pytest.fixture(scope="module")
def spread(kafka: Kafka) -> str:
    """A topic with twenty records in each of thirty partitions, and a log that goes on behind them."""
    topic = kafka.create_topic("spread", PARTITIONS)
    for _ in range(2):
        kafka.produce(
            topic, [Record(b"%d" % (i // PARTITIONS), None, i % PARTITIONS) for i in range(PARTITIONS * EACH)]
        )
    return topic


def stretches(topic: str, count: int = PARTITIONS, until: int = EACH) -> dict[TopicPartition, OffsetRange]:
    return {TopicPartition(topic, i): OffsetRange(0, until) for i in range(count)}


def asked(
    kafka: Kafka, wanted: dict[TopicPartition, OffsetRange], most_bytes: int = 1_000_000, **settings: object
) -> dict[TopicPartition, Begun]:
    client = {"bootstrap_servers": kafka.bootstrap, **settings}
    with consumers.borrowed(client, wanted) as consumer:
        return begun(consumer, wanted, most_bytes)


def shorten(kafka: Kafka, topic: str, partition: int, offset: int) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        admin.delete_records({KafkaTopicPartition(topic, partition): offset})


@pytest.mark.parametrize("raw", [pytest.param(True, id="record batches"), pytest.param(False, id="record by record")])
def test_each_record_is_read_once_and_in_order_in_its_partition(
    kafka: Kafka, spread: str, raw: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not raw:
        monkeypatch.setattr(raw_batches, "install", lambda _: False)
    read = rows(task(kafka, [whole(spread, 3, EACH, i) for i in range(PARTITIONS)]))
    assert [(row["partition"], row["offset"], row["value"]) for row in read] == [
        (i, offset, b"%d" % offset) for i in range(PARTITIONS) for offset in range(3, EACH)
    ]


def test_all_of_short_stretches_comes_at_once(kafka: Kafka, spread: str) -> None:
    found = asked(kafka, stretches(spread))
    assert {tp: each.position for tp, each in found.items()} == dict.fromkeys(stretches(spread), 2 * EACH)


def test_a_partition_that_is_done_is_not_fetched_again(kafka: Kafka, spread: str) -> None:
    wanted = {**stretches(spread, 2), TopicPartition(spread, 2): OffsetRange(0, 2 * EACH + 10)}
    found = asked(kafka, wanted, max_partition_fetch_bytes=1)  # a record batch an answer
    assert [found[tp].position for tp in wanted] == [EACH, EACH, 2 * EACH], "the third waits for what does not come"


def test_asking_ends_when_as_much_is_held_as_may_be(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=4)
    for _ in range(5):
        kafka.produce(topic, [Record(bytes(50_000), None, i) for i in range(4)])  # a record batch each
    found = asked(
        kafka, stretches(topic, 4, 5), most_bytes=120_000, max_partition_fetch_bytes=60_000, fetch_max_bytes=60_000
    )
    held = sum(len(record.value) for each in found.values() for record in each.records)
    assert 120_000 <= held <= 180_000
    little = replace(task(kafka, [whole(topic, 0, 5, i) for i in range(4)]), most_unfiltered=240_000)
    assert sorted(offsets(little)) == sorted([*range(5)] * 4), "the rest is read by each alone"


def test_as_many_are_asked_at_once_as_their_answers_fit() -> None:
    assert (at_once(1_000, 10_500), at_once(1_000, 10)) == (10, 1)
    assert at_once(0, 5) == 5, "Kafka returns a record batch all the same"


def test_an_odd_log_among_others_is_read_as_if_it_were_alone(kafka: Kafka, spread: str) -> None:
    odd = odd_log(kafka)
    alone = whole(odd, 0, end(kafka, odd))
    for level in ("read_committed", "read_uncommitted"):
        together = rows(task(kafka, [alone, *(whole(spread, 0, EACH, i) for i in range(3))], isolation_level=level))
        expected = rows(task(kafka, [alone], isolation_level=level))
        assert [row for row in together if row["topic"] == odd] == expected
        assert len(together) == len(expected) + 3 * EACH


def test_a_loss_of_one_partition_is_reported_and_the_others_lose_nothing(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=3)
    kafka.produce(topic, [Record(b"v", None, i % 3) for i in range(30)])
    shorten(kafka, topic, 1, 4)
    slices = [whole(topic, 0, 10, i) for i in range(3)]
    with pytest.raises(DataLossError, match=rf"{topic}-1: offsets 0-3 can no longer be read"):
        rows(task(kafka, slices))
    left = rows(task(kafka, slices, fail_on_data_loss=False))
    assert sorted((row["partition"], row["offset"]) for row in left) == [
        *((0, i) for i in range(10)),
        *((1, i) for i in range(4, 10)),
        *((2, i) for i in range(10)),
    ]
