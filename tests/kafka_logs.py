"""A `KafkaLog` for tests, and a small log whose times are known."""

import time
from collections.abc import Mapping
from contextlib import closing

from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.kafka_log import KafkaLog
from coordinator.subscription import TopicPartition
from topics import Kafka, Record

T0 = int(time.time() * 1000) - 60_000
"""A minute ago, in ms: so that no broker's retention deletes the records below."""

THREE_SECONDS = [Record(value, timestamp_ms=T0 + ms) for value, ms in ((b"a", 1000), (b"b", 2000), (b"c", 3000))]


def kafka_log(bootstrap: str, settings: Mapping[str, object] | None = None, fail_on_data_loss: bool = True) -> KafkaLog:
    arguments = {"bootstrap_servers": bootstrap, **(settings or {})}
    return KafkaLog(arguments, retries=3, retry_interval_ms=200, fail_on_data_loss=fail_on_data_loss)


def delete_records(kafka: Kafka, tp: TopicPartition, before: int) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        admin.delete_records({KafkaTopicPartition(*tp): before})
