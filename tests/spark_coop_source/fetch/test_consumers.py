"""Idle consumers are kept for the next task: with the same settings, a few of them, and never after an error."""

import pytest
from kafka import TopicPartition

from coordinator.kafka.client import Secret
from coordinator.values.subscription import TopicPartition as OurTopicPartition
from spark_coop_source.fetch import consumers, idle_clients
from stretches import hundred
from topics import Kafka

pytestmark = pytest.mark.usefixtures("closed_clients")


@pytest.fixture(scope="module")
def numbers(kafka: Kafka) -> str:
    """A topic with a hundred records and nothing odd."""
    return hundred(kafka)


def test_a_consumer_is_kept_for_the_next_task_with_the_same_settings(kafka: Kafka, numbers: str) -> None:
    tp = OurTopicPartition(numbers, 0)
    client = {"bootstrap_servers": kafka.bootstrap}
    with consumers.borrowed(client, [tp]) as first, consumers.borrowed(client, [tp]) as meanwhile:
        assert meanwhile is not first, "one consumer is never in two hands"
    with consumers.borrowed(client, [tp]) as again:
        assert again in (first, meanwhile)
    with consumers.borrowed({**client, "max_poll_records": 7}, [tp]) as other:
        assert other not in (first, meanwhile)


def test_a_new_consumer_knows_the_leaders_of_its_partitions(kafka: Kafka, numbers: str) -> None:
    """kafka-python would ask for them at the first poll, and not sooner than 100 ms after its first request."""
    client = {"bootstrap_servers": kafka.bootstrap, "client_id": "new"}
    with consumers.borrowed(client, [OurTopicPartition(numbers, 0)]) as consumer:
        assert consumer._manager.cluster.leader_for_partition(TopicPartition(numbers, 0)) is not None


def test_a_consumer_that_was_idle_for_long_is_not_used_again(
    kafka: Kafka, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tp = OurTopicPartition(numbers, 0)
    client = {"bootstrap_servers": kafka.bootstrap}
    with consumers.borrowed(client, [tp]) as first:
        pass
    monkeypatch.setattr(idle_clients, "IDLE_S", -1.0)
    with consumers.borrowed(client, [tp]) as second:
        assert second is not first


def test_a_consumer_is_closed_after_an_error(kafka: Kafka, numbers: str) -> None:
    tp = OurTopicPartition(numbers, 0)
    client = {"bootstrap_servers": kafka.bootstrap}
    borrowing = consumers.borrowed(client, [tp])
    failed = borrowing.__enter__()
    error = RuntimeError("whatever went wrong in the task")
    assert not borrowing.__exit__(type(error), error, None), "the error goes on its way"
    with consumers.borrowed(client, [tp]) as next_one:
        assert next_one is not failed


def test_only_a_few_idle_consumers_are_kept(kafka: Kafka, numbers: str) -> None:
    tp = OurTopicPartition(numbers, 0)
    clients = [{"bootstrap_servers": kafka.bootstrap, "client_id": str(i)} for i in range(consumers.MOST_IDLE + 1)]
    opened = []
    for client in clients:
        with consumers.borrowed(client, [tp]) as consumer:
            opened.append(consumer)
    with consumers.borrowed(clients[-1], [tp]) as newest, consumers.borrowed(clients[0], [tp]) as oldest:
        assert newest is opened[-1]
        assert oldest is not opened[0]


def test_passwords_that_differ_are_different_settings(kafka: Kafka, numbers: str) -> None:
    tp = OurTopicPartition(numbers, 0)
    one, other = ({"bootstrap_servers": kafka.bootstrap, "sasl_plain_password": Secret(p)} for p in ("one", "other"))
    with consumers.borrowed(one, [tp]) as first:
        pass
    with consumers.borrowed(other, [tp]) as second:
        assert second is not first
