"""The private names of kafka-python exist. If this fails after an upgrade, change `coordinator/kafka/internals.py`.

What they do is shown by the tests of their users: fetch, raw_batches, needed, large_reads, producer, transactions, log.
"""

import inspect
from collections.abc import Iterator
from contextlib import closing
from operator import attrgetter

import kafka as kafka_python
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.record import MemoryRecords

from coordinator.kafka.internals import NO_CONTROLLER
from topics import Kafka


@pytest.fixture(scope="module")
def owners(kafka: Kafka) -> Iterator[dict[str, object]]:
    servers = {"bootstrap_servers": kafka.bootstrap}
    with (
        closing(KafkaConsumer(**servers)) as consumer,
        closing(KafkaProducer(**servers)) as producer,
        closing(KafkaAdminClient(**servers)) as admin,
    ):
        yield {"consumer": consumer, "producer": producer, "admin": admin, "records": MemoryRecords(b"")}


def test_a_controller_that_moves_twice_is_a_bare_error_of_this_text() -> None:
    source = inspect.getsource(KafkaAdminClient._send_request_to_controller)
    assert f'raise RuntimeError("{NO_CONTROLLER}")' in source


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("consumer", "_fetcher.PartitionRecords._contains_abort_marker"),
        ("consumer", "_fetcher.config"),
        ("consumer", "_fetcher._fetchable_partitions"),
        ("consumer", "_fetcher._subscriptions.assignment"),
        ("consumer", "_manager._build_transport"),
        ("consumer", "_manager.cluster._topics"),
        ("producer", "_accumulator.append"),
        ("producer", "_sender.wakeup"),
        ("producer", "_sender.force_close"),
        ("producer", "_transaction_manager"),
        ("admin", "_manager.run"),
        ("admin", "_find_coordinator_id"),
        ("records", "_next_slice"),
        ("records", "_cache_next"),
    ],
)
def test_a_name_is_there(owners: dict[str, object], owner: str, name: str) -> None:
    try:
        attrgetter(name)(owners[owner])
    except AttributeError:
        pytest.fail(
            f"kafka-python {kafka_python.__version__} has no {owner}.{name}: coordinator/kafka/internals.py uses it"
        )
