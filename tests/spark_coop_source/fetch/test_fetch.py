"""Stretches of a real broker's log: every record once, the end found, losses never silent."""

from time import monotonic

import numpy as np
import pytest
from kafka import TopicPartition

from coordinator.errors import FetchTimeoutError, KafkaUnavailableError
from coordinator.kafka.record_times import first_times
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition as OurTopicPartition
from log_fixtures import compacted_log, end, everything, produce_large
from spark_coop_source.arrow_output.record_batch import to_arrow
from spark_coop_source.arrow_output.schema import EVERY
from spark_coop_source.fetch import consumers
from spark_coop_source.fetch import fetch as fetching
from spark_coop_source.fetch.fetch import CHUNK_BYTES, FetchSettings, fetch
from spark_coop_source.fetch.looks import LogLooks
from stretches import chunks, fetched, hundred
from topics import Kafka, Record
from wire_batches import Written, batch, plain, polled

pytestmark = pytest.mark.usefixtures("closed_clients")


@pytest.fixture(scope="module")
def numbers(kafka: Kafka) -> str:
    """A topic with a hundred records and nothing odd."""
    return hundred(kafka)


@pytest.mark.parametrize(
    ("start", "until"),
    [
        pytest.param(0, 100, id="all of it"),
        pytest.param(0, 1, id="the first record"),
        pytest.param(99, 100, id="the last record"),
        pytest.param(37, 61, id="from the middle of a record batch to the middle of one"),
    ],
)
def test_a_stretch_is_exactly_its_offsets(kafka: Kafka, numbers: str, start: int, until: int) -> None:
    assert fetched(kafka, numbers, start, until) == list(range(start, until))


def test_a_record_of_a_hundred_megabytes_comes_with_those_around_it(kafka: Kafka) -> None:
    """kafka-python alone refuses an answer of that size, and asks for it again for ever."""
    topic = kafka.create_topic("huge", config={"max.message.bytes": "104000000"})
    kafka.produce(topic, [Record(b"v")] * 2)
    produce_large(kafka, topic, b"k", 101_000_000)
    kafka.produce(topic, [Record(b"v")])
    assert fetched(kafka, topic, 0, 4) == [0, 1, 2, 3]
    (chunk,) = chunks(kafka, topic, 2, 3)
    assert chunk.payload >= 101_000_000
    assert first_times({"bootstrap_servers": kafka.bootstrap}, {OurTopicPartition(topic, 0): OffsetRange(2, 4)})


@pytest.mark.parametrize("version", [(2, 7), (2, 1)])
def test_a_broker_without_topic_ids_is_read_by_name(kafka: Kafka, numbers: str, version: tuple[int, int]) -> None:
    assert fetched(kafka, numbers, 37, 61, api_version=version) == list(range(37, 61))


def test_the_user_may_set_the_number_of_records_per_poll(kafka: Kafka, numbers: str) -> None:
    read = chunks(kafka, numbers, 0, 100, max_poll_records=30)
    assert [len(chunk) for chunk in read] == [30, 30, 30, 10]


def test_markers_at_the_end_of_a_stretch_and_of_the_log_do_not_stop_it(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce_committed(topic, [Record(b"v")] * 3)
    assert end(kafka, topic) == 4, "three records and a marker"
    assert fetched(kafka, topic, 0, 4) == [0, 1, 2]
    assert fetched(kafka, topic, 3, 4) == [], "nothing but the marker"
    for _ in range(3):
        kafka.produce_committed(topic, [])
    kafka.produce_aborted(topic, [Record(b"v")])
    last = end(kafka, topic)
    assert fetched(kafka, topic, 0, last, isolation_level="read_committed") == [0, 1, 2]
    assert fetched(kafka, topic, 4, last, isolation_level="read_committed") == [], "only an aborted transaction"
    assert fetched(kafka, topic, 0, last, isolation_level="read_uncommitted") == [0, 1, 2, 4]


def test_long_aborted_transactions_are_passed_in_time(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce_aborted(topic, [Record(b"x" * 1000, b"%d" % i) for i in range(5_000)])
    kafka.produce(topic, [Record(b"after")])
    last = end(kafka, topic)
    assert fetched(kafka, topic, 0, last, isolation_level="read_committed") == [last - 1]
    assert len(fetched(kafka, topic, 0, last)) == 5_001


def test_compaction_leaves_holes_that_no_stretch_minds(kafka: Kafka) -> None:
    topic = compacted_log(kafka)
    last = end(kafka, topic)
    left = [record.offset for record in everything(kafka, topic)]
    assert len(left) < last, "the cleaner has taken some"
    first_kept = left[0]
    assert fetched(kafka, topic, 0, last) == left
    assert fetched(kafka, topic, 0, first_kept) == [], "a stretch of which nothing is left ends where it should"
    assert fetched(kafka, topic, first_kept // 2, first_kept + 1) == [first_kept]
    assert fetched(kafka, topic, 1, last, max_poll_records=1) == [offset for offset in left if offset >= 1]


def test_a_record_larger_than_a_fetch_is_read(kafka: Kafka) -> None:
    topic = kafka.create_topic(config={"max.message.bytes": "5000000"})
    kafka.produce(topic, [Record(b"small")])
    produce_large(kafka, topic, b"k", 3_000_000)
    kafka.produce(topic, [Record(b"small")])
    read = chunks(kafka, topic, 0, 3, max_partition_fetch_bytes=1000, fetch_max_bytes=1000)
    assert [len(value or b"") for chunk in read for value in chunk.values.take(np.arange(len(chunk))).to_pylist()] == [
        5,
        3_000_000,
        5,
    ]


def test_a_chunk_of_well_compressed_records_stays_small_in_memory(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(bytes(400_000))] * 250, compression="gzip")
    sizes = [len(chunk) for chunk in chunks(kafka, topic, 0, 250)]
    assert sum(sizes) == 250
    assert max(sizes) <= CHUNK_BYTES // 400_000 + 1, "full, and the batch that made it so"


def test_unfiltered_bytes_in_memory_are_bounded_despite_the_clients_options(kafka: Kafka) -> None:
    client = {"bootstrap_servers": kafka.bootstrap, "max_partition_fetch_bytes": 50_000_000}
    with consumers.borrowed(client, [], most_unfiltered=400_000) as consumer:
        assert consumer.config["max_partition_fetch_bytes"] == consumer.config["fetch_max_bytes"] == 100_000
    topic = kafka.create_topic()
    for _ in range(20):
        kafka.produce(topic, [Record(bytes(50_000))])  # a batch each
    tp = TopicPartition(topic, 0)
    settings = FetchSettings(client, 20_000, True, consumers.answer_bytes(400_000))
    with consumers.borrowed(client, [tp], most_unfiltered=400_000) as consumer:
        sizes = [chunk.payload for chunk in fetch(consumer, tp, OffsetRange(0, 20), settings)]
    assert (sum(sizes), max(sizes) <= 150_000) == (1_000_000, True), "full, and the batch that made it so"


def test_no_progress_though_the_records_are_there_is_a_timeout(kafka: Kafka, numbers: str) -> None:
    patient = {"fetch_min_bytes": 1_000_000, "fetch_max_wait_ms": 25_000}  # the broker waits for more than there is
    with pytest.raises(FetchTimeoutError, match=f"{numbers}-0: no progress at offset 0 for 700 ms.*pollTimeoutMs") as e:
        fetched(kafka, numbers, 0, 100, poll_timeout_ms=700, **patient)
    assert e.value.retriable


def test_a_consumer_that_does_not_fetch_existing_records_begins_again(
    kafka: Kafka, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "STALL_S", 0.05)
    monkeypatch.setattr(fetching, "BEGIN_AGAIN_S", 0.1)
    tp, client = OurTopicPartition(numbers, 0), {"bootstrap_servers": kafka.bootstrap}
    how = FetchSettings(client, poll_timeout_ms=20_000, fail_on_data_loss=True)
    with consumers.borrowed(client, [tp]) as consumer:
        pauses = iter([TopicPartition(*tp)])

        def stopped() -> bool:  # asked before each poll
            consumer.pause(*pauses)
            return False

        read = list(fetch(consumer, tp, OffsetRange(0, 100), how, stopped))
    assert sum(map(len, read)) == 100


def test_the_time_that_the_caller_takes_between_chunks_does_not_count(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = [0.0]  # by the caller
    monkeypatch.setattr(fetching, "monotonic", lambda: monotonic() + taken[0])
    topic = kafka.create_topic()
    for _ in range(2):
        kafka.produce(topic, [Record(b"v")] * 50)
    tp = OurTopicPartition(topic, 0)
    slow = {"fetch_min_bytes": 1_000_000, "fetch_max_wait_ms": 300, "max_partition_fetch_bytes": 1}
    client = {"bootstrap_servers": kafka.bootstrap, "max_poll_records": 50, **slow}
    with consumers.borrowed(client, [tp]) as consumer:
        stretch = fetch(consumer, tp, OffsetRange(0, 100), FetchSettings(client, 60_000, fail_on_data_loss=True))
        first = next(stretch)
        taken[0] = 61.0
        assert [len(first), *map(len, stretch)] == [50, 50]


def test_no_broker_is_a_named_error() -> None:
    with pytest.raises(KafkaUnavailableError, match=r"127\.0\.0\.1:9"):
        fetched(Kafka("127.0.0.1:9"), "orders", 0, 1, bootstrap_timeout_ms=500)


def test_a_poll_of_every_message_format_becomes_rows_in_order(kafka: Kafka) -> None:
    """As on a topic that is older than its broker: v0, of which nothing has a time, v1 in a wrapper, and v2."""
    some = [Written(b"k%d" % i, b"v" * 50, 1_000 + i) for i in range(4)]
    formats = ((0, "none"), (1, "none"), (1, "gzip"), (2, "lz4"), (1, "gzip"), (2, "none"))
    wire = b"".join(batch(some, 4 * i, magic=magic, codec=codec) for i, (magic, codec) in enumerate(formats))
    tp, client = OurTopicPartition("orders", 0), {"bootstrap_servers": kafka.bootstrap}
    with consumers.borrowed(client, []) as consumer:
        how = FetchSettings(client, 1_000, True)
        stretch = fetching._Stretch(consumer, LogLooks(client), tp, OffsetRange(0, 24), how)
        chunks = list(stretch._columns(polled(wire, raw=True)))
    read = [row for chunk in chunks for row in to_arrow(tp, chunk, None, EVERY).to_pylist()]
    assert [row["offset"] for row in read] == list(range(24)) == [each[0] for each in plain(wire)]
    assert [(row["key"], row["value"]) for row in read] == [(each.key, each.value) for each in some] * 6
    times = [round(row["timestamp"].timestamp() * 1000) for row in read]
    assert times == [-1] * 4 + [1_000, 1_001, 1_002, 1_003] * 5
    assert [row["timestampType"] for row in read] == [-1] * 4 + [0] * 20
