"""Records that a log does not hold any more are a data loss with a name, or are skipped where the user allows it."""

import logging
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition

from coordinator.errors import DataLossError, FetchTimeoutError
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition as OurTopicPartition
from log_fixtures import losses
from spark_coop_source.fetch import consumers
from spark_coop_source.fetch import fetch as fetching
from spark_coop_source.fetch.fetch import FetchSettings, fetch
from stretches import fetched, hundred
from topics import Kafka, Record

pytestmark = pytest.mark.usefixtures("closed_clients")


def drop_before(kafka: Kafka, topic: str, offset: int) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        admin.delete_records({TopicPartition(topic, 0): offset})


@pytest.fixture(autouse=True)
def _looks_again_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log end that stays low is believed after two looks."""
    monkeypatch.setattr(fetching, "LOW_S", 0.3)
    monkeypatch.setattr(fetching, "STALL_S", 0.2)


@pytest.fixture(scope="module")
def numbers(kafka: Kafka) -> str:
    """A topic with a hundred records and nothing odd."""
    return hundred(kafka)


@pytest.mark.parametrize("start", [0, 39])
def test_records_below_the_beginning_are_a_data_loss(kafka: Kafka, start: int) -> None:
    topic = shortened_log(kafka)
    with pytest.raises(DataLossError, match=rf"{topic}-0: offsets {start}-39 can no longer be read .*begins at 40"):
        fetched(kafka, topic, start, 100)


@pytest.mark.parametrize(
    ("start", "until", "left", "lost"),
    [
        pytest.param(0, 100, (40, 100), "0-39", id="from before the beginning to the end"),
        pytest.param(10, 41, (40, 41), "10-39", id="one record is left"),
        pytest.param(10, 40, (40, 40), "10-39", id="all of it is before the beginning"),
        pytest.param(0, 5, (0, 0), "0-4", id="the skip never passes the end of the stretch"),
        pytest.param(90, 130, (90, 100), "100-129", id="beyond the end of the log"),
        pytest.param(120, 130, (120, 120), "120-129", id="all of it is beyond the end"),
    ],
)
def test_without_fail_on_data_loss_the_rest_is_read_and_lost_offsets_are_logged(
    kafka: Kafka, caplog: pytest.LogCaptureFixture, start: int, until: int, left: tuple[int, int], lost: str
) -> None:
    topic = shortened_log(kafka)
    with caplog.at_level(logging.WARNING, "spark_coop_source.fetch.fetch"):
        read = fetched(kafka, topic, start, until, fail_on_data_loss=False, poll_timeout_ms=500)
    assert read == list(range(*left))
    (warning,) = losses(caplog)
    assert warning.startswith(f"DATA_LOSS: {topic}-0: offsets {lost} can no longer be read")


def shortened_log(kafka: Kafka) -> str:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v")] * 100)
    drop_before(kafka, topic, 40)
    return topic


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_log_that_is_cut_while_it_is_read_is_a_data_loss(
    kafka: Kafka, numbers: str, caplog: pytest.LogCaptureFixture, fail_on_data_loss: bool
) -> None:
    """As after an unclean election: the consumer is at an offset that the leader, in its epoch, does not have."""
    tp, client = OurTopicPartition(numbers, 0), {"bootstrap_servers": kafka.bootstrap}
    at = TopicPartition(*tp)
    how = FetchSettings(client, 20_000, fail_on_data_loss)
    cut = iter([True])

    def stopped() -> bool:  # asked before each poll
        if next(cut, False):
            state = consumer._subscription.assignment[at]
            state.seek(OffsetAndMetadata(120, "", 0))
            state.request_position_validation()
        return False

    with consumers.borrowed(client, [tp]) as consumer, caplog.at_level(logging.WARNING, fetching.__name__):
        stretch = fetch(consumer, tp, OffsetRange(120, 150), how, stopped)
        if fail_on_data_loss:
            with pytest.raises(DataLossError, match=rf"{numbers}-0: the log was truncated before offset 120"):
                list(stretch)
        else:
            assert list(stretch) == []
            cut_off, gone = losses(caplog)
            assert "the log was truncated before offset 120" in cut_off
            assert "offsets 120-149 can no longer be read (the log ends at 100)" in gone


def test_a_stretch_beyond_the_end_is_a_data_loss_that_names_the_end(kafka: Kafka, numbers: str) -> None:
    with pytest.raises(DataLossError, match=r"offsets 100-119 can no longer be read \(the log ends at 100\)"):
        fetched(kafka, numbers, 50, 120, poll_timeout_ms=500)
    with pytest.raises(DataLossError, match=r"offsets 110-119 can no longer be read \(the log ends at 100\)"):
        fetched(kafka, numbers, 110, 120)


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_leader_that_does_not_have_the_offset_yet_is_asked_again(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fail_on_data_loss: bool
) -> None:
    """A task asks beyond the end of the log. Meanwhile the log gets there."""
    topic, tries = hundred(kafka), iter([True])

    def there(_: float) -> None:
        if next(tries, False):
            kafka.produce(topic, [Record(b"v")] * 30)

    monkeypatch.setattr(fetching, "LOW_S", 10.0)
    monkeypatch.setattr(fetching, "sleep", there)
    read = fetched(kafka, topic, 110, 120, fail_on_data_loss=fail_on_data_loss, poll_timeout_ms=20_000)
    assert (read, losses(caplog)) == (list(range(110, 120)), [])


def test_a_stretch_in_an_open_transaction_is_not_lost(kafka: Kafka) -> None:
    """It was planned before the isolation level changed."""
    topic = hundred(kafka)
    timeout = pytest.raises(FetchTimeoutError, match="no progress at offset 100")
    with kafka.open_transaction(topic, [Record(b"v")] * 10), timeout:
        fetched(kafka, topic, 90, 105, poll_timeout_ms=500, isolation_level="read_committed")


def test_records_that_go_while_they_are_read_are_a_data_loss(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"x" * 10_000)] * 1_000)
    tp = OurTopicPartition(topic, 0)
    client = {"bootstrap_servers": kafka.bootstrap}

    def read_and_shorten() -> None:
        with consumers.borrowed(client, [tp]) as consumer:
            stretch = fetch(consumer, tp, OffsetRange(0, 1_000), FetchSettings(client, 20_000, fail_on_data_loss=True))
            assert next(stretch).offsets[0] == 0
            drop_before(kafka, topic, 990)
            list(stretch)

    with pytest.raises(DataLossError, match=r"can no longer be read .*the log begins at 990"):
        read_and_shorten()


def test_a_deleted_topic_is_a_data_loss_at_once_and_is_not_created_again(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v")] * 10)
    assert fetched(kafka, topic, 0, 5) == [0, 1, 2, 3, 4]
    kafka.delete_topic(topic)
    with pytest.raises(DataLossError, match=rf"{topic}-0: offsets 5-9 can no longer be read .*no topic '{topic}'"):
        fetched(kafka, topic, 5, 10, poll_timeout_ms=60_000)
    assert fetched(kafka, topic, 5, 10, fail_on_data_loss=False) == []
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        assert topic not in admin.list_topics()


def test_a_recreated_topic_that_is_shorter_is_a_data_loss(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"old")] * 10)
    assert fetched(kafka, topic, 0, 5) == [0, 1, 2, 3, 4]
    kafka.recreate_topic(topic)
    kafka.produce(topic, [Record(b"new")] * 3)
    with pytest.raises(DataLossError, match=r"offsets 5-9 can no longer be read .*the log ends at 3"):
        fetched(kafka, topic, 5, 10)
