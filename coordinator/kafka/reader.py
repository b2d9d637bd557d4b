"""A consumer that reads stretches of a log, opened for each call: calls are rare, and an idle one is not reliable.

Knows nothing of the use of the records. A query reads in `spark_coop_source/fetch/`.
"""

from collections.abc import Mapping

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.kafka import empty_markers
from coordinator.kafka.client import client_arguments
from coordinator.kafka.connection import ANSWER_BYTES_MAX, IN_TIME, open_client
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

POLL_MS = 500
_OURS: Mapping[str, object] = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",  # retention or compaction may delete the first records meanwhile
    "allow_auto_create_topics": False,
    "receive_message_max_bytes": ANSWER_BYTES_MAX,
}


def reader(
    kafka: Mapping[str, object], stretches: Mapping[TopicPartition, OffsetRange], **settings: object
) -> KafkaConsumer:
    """A consumer at the start of each stretch, with `settings` of kafka-python. Raises kafka-python's errors."""
    arguments = {**IN_TIME, **client_arguments(kafka), **_OURS, **settings}
    consumer, _ = open_client(KafkaConsumer, arguments, {tp.topic for tp in stretches})
    empty_markers.install(consumer)
    consumer.assign([KafkaTopicPartition(*tp) for tp in stretches])
    for tp, stretch in stretches.items():
        consumer.seek(KafkaTopicPartition(*tp), stretch.start)
    return consumer
