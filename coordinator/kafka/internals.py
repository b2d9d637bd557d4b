"""Every private name of kafka-python that this project uses. `setup.cfg` allows the minor version that has them.

    consumer._fetcher, its config, _fetchable_partitions and PartitionRecords    which bytes are requested and parsed
    MemoryRecords._next_slice, _cache_next                                       record batches as they are on the wire
    consumer._manager._build_transport, transport._sock; its cluster             sockets; leaders
    manager.cluster._topics                                                      topics of the first request
    manager._backoff, manager.cluster._coordinators                              failed attempts; groups' coordinators
    admin._find_coordinator_id                                                   the broker that coordinates a group
    producer._accumulator, _sender, _transaction_manager                         records with neither key nor value

`tests/coordinator/kafka/test_internals.py` names what another version lacks.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.net.manager import KafkaConnectionManager

NO_CONTROLLER = "Failed to find active controller id!"
"""The text of an administrator's bare RuntimeError: the controller was another one, twice."""

Fetchable = Callable[[], list[TopicPartition]]


def fetcher_of(consumer: KafkaConsumer) -> Any:
    """The part of a consumer that requests and parses records; it has `config`."""
    return consumer._fetcher


def replace_parser(consumer: KafkaConsumer, changed: Callable[[type], type]) -> None:
    """Let a consumer parse the records of an answer by another class, which `changed` makes of the one in use."""
    fetcher = fetcher_of(consumer)
    fetcher.PartitionRecords = changed(fetcher.PartitionRecords)


def replace_fetchable(consumer: KafkaConsumer, partitions: Fetchable) -> None:
    """Let a consumer ask this function before each request: it returns the partitions to request."""
    fetcher_of(consumer)._fetchable_partitions = partitions


def fetchable(fetcher: Any) -> list[TopicPartition]:
    """What kafka-python itself would request."""
    found: list[TopicPartition] = type(fetcher)._fetchable_partitions(fetcher)
    return found


def fetch_offset(fetcher: Any, at: TopicPartition) -> int:
    """The offset of the next request."""
    return int(fetcher._subscriptions.assignment[at].position.offset)


def next_batch_on_the_wire(records: Any) -> memoryview | None:
    """The bytes of the next record batch of `MemoryRecords`; None at their end."""
    wire: memoryview | None = records._next_slice
    return wire


def skip_batch(records: Any) -> None:
    """Go on to the record batch after it."""
    records._cache_next()


def replace_sockets(consumer: KafkaConsumer, changed: Callable[[Any], Any]) -> bool:
    """Let connections that a consumer opens from now on use other sockets. False if this version does not allow it."""
    manager = getattr(consumer, "_manager", None)
    build: Callable[..., Awaitable[Any]] | None = getattr(manager, "_build_transport", None)
    if build is None:
        return False

    async def built(*node: Any, **how: Any) -> Any:
        transport = await build(*node, **how)
        if hasattr(transport, "_sock"):
            transport._sock = changed(transport._sock)
        return transport

    manager._build_transport = built  # type: ignore[union-attr]
    return True


def request_first(manager: KafkaConnectionManager, topics: Iterable[str]) -> None:
    """Name topics in the first request for metadata. kafka-python sends the second one only 100 ms later.

    Its own `set_topics` would connect at once, without a timeout.
    """
    manager.cluster._topics = set(topics)


def forget_coordinators(manager: KafkaConnectionManager) -> None:
    """Let the next request about a group ask for its coordinator: kafka-python never forgets one."""
    manager.cluster._coordinators.clear()


def groups_of_coordinator(admin: KafkaAdminClient, group: str) -> list[dict[str, Any]]:
    """The groups of the broker that coordinates this one. kafka-python by itself asks all brokers."""
    found: list[dict[str, Any]] = admin.list_groups([admin._manager.run(admin._find_coordinator_id, group)])
    return found


def leader_of(consumer: KafkaConsumer, at: TopicPartition) -> int | None:
    """The id of the broker that a consumer takes for the leader."""
    leader: int | None = consumer._manager.cluster.leader_for_partition(at)
    return leader


def append(producer: KafkaProducer, to: TopicPartition, record: tuple[Any, ...], headers: Any) -> Any:
    """The future of a record (time in ms, key, value). kafka-python's `send` refuses null keys with null values."""
    time_ms, key, value = record
    future, *_ = producer._accumulator.append(to, time_ms, key, value, headers)
    producer._sender.wakeup()
    return future


def join_transaction(producer: KafkaProducer, to: TopicPartition) -> None:
    """Let the running transaction contain a partition, as `send` does."""
    producer._transaction_manager.maybe_add_partition_to_transaction(to)


def drop_unsent(producer: KafkaProducer) -> None:
    """Let `close` not wait for records that were not sent."""
    producer._sender.force_close()
