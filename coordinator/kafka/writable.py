"""Whether a user may write to a topic, asked before the first record.

Brokers since Kafka 2.3 report the operations that a user may do on a topic. On an older broker a missing right shows at
the first write only. Knows metadata; writes nothing.
"""

from collections.abc import Mapping
from contextlib import closing

from kafka import errors
from kafka.admin import ACLOperation
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from coordinator.errors import UnknownTopicError
from coordinator.kafka.connection import KafkaConnection
from coordinator.kafka.errors import no_right_to_write

UNREPORTED = 31
"""The one bit of Kafka's -2^31: the broker did not report the operations."""

_NOT_THERE = (errors.UnknownTopicOrPartitionError.errno, errors.InvalidTopicError.errno)


RETRIES, RETRY_INTERVAL_MS = 3, 1_000


def check_writable(kafka: Mapping[str, object], topic: str) -> None:
    """Raise an error unless the topic exists and this user may write to it; never creates it.

    Opens a connection of its own and closes it. Raises `UnknownTopicError`, `KafkaAccessError`, or another `LogError`.
    """
    with closing(KafkaConnection(kafka, retries=RETRIES, retry_interval_ms=RETRY_INTERVAL_MS)) as connection:
        connection.ask(f"the rights on topic {topic!r}", lambda session: _check(session.manager, topic))


def _check(manager: KafkaConnectionManager, topic: str) -> None:
    (found,) = manager.run(_described, manager, topic).topics
    if found.error_code in _NOT_THERE:
        remedy = f"create topic {topic!r}, or correct its name"
        raise UnknownTopicError(f"Kafka has no topic {topic!r}, to which records are to be written", remedy)
    operations = found.authorized_operations
    known = operations is not None and UNREPORTED not in operations
    forbidden = found.error_code == errors.TopicAuthorizationFailedError.errno
    if forbidden or (known and ACLOperation.WRITE not in operations):
        raise no_right_to_write(topic)
    if not found.partitions:
        raise errors.for_code(found.error_code)(topic)


async def _described(manager: KafkaConnectionManager, topic: str) -> MetadataResponse:
    """Runs in kafka-python's thread; any broker will do."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    return await manager.send(request)
