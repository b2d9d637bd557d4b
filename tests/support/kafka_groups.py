"""Kafka's own groups, as Kafka's own client sees them."""

from contextlib import closing

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import OffsetAndMetadata, TopicPartition


def commit(bootstrap: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    """Commit as a plain consumer of that group would, and leave."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)) as consumer:
        consumer.assign([TopicPartition(topic, p) for p in offsets])
        consumer.commit({TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()})


def committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    """The offsets of a topic that Kafka's own group has committed."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        found = admin.list_group_offsets({group: None})[group]
    return {tp.partition: o.offset for tp, o in found.items() if tp.topic == topic}


def forget(bootstrap: str, group: str) -> None:
    """Delete Kafka's own group, with all that it has committed."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        assert admin.delete_groups([group]) == {group: "OK"}
