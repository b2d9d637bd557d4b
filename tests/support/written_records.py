"""The records of a topic as a plain consumer sees them, and a topic whose records have everything odd."""

from contextlib import closing
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition


def consumed(bootstrap: str, topic: str, *, isolation: str = "read_uncommitted") -> list[Any]:
    """Every record of the topic now, by partition and offset: kafka-python's records."""
    arguments = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", "isolation_level": isolation}
    found: list[Any] = []
    with closing(KafkaConsumer(**arguments, allow_auto_create_topics=False)) as consumer:
        partitions = [KafkaTopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(p) < ends[p] for p in partitions):
            for records in consumer.poll(200).values():
                found += records
    return sorted(found, key=lambda record: (record.partition, record.offset))
