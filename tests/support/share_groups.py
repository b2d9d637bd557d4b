"""Share groups of Kafka, as a share consumer makes them."""

from collections.abc import Mapping
from contextlib import closing

from confluent_kafka import AcknowledgeType, ShareConsumer
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from topics import Kafka


def share(kafka: Kafka, group: str, topic: str, answers: Mapping[int, AcknowledgeType], count: int) -> None:
    """Read `count` records as a share consumer, answer for some of them, release the others, and leave."""
    earliest = ConfigResource(ConfigResourceType.GROUP, group, configs={"share.auto.offset.reset": "earliest"})
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        admin.alter_configs([earliest])
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    with closing(ShareConsumer(settings)) as consumer:
        consumer.subscribe([topic])
        seen = set[int]()
        while len(seen) < count:
            for message in consumer.poll(1.0):
                assert message.error() is None, message.error()
                offset = int(str(message.offset()))
                seen.add(offset)
                consumer.acknowledge(message, answers.get(offset, AcknowledgeType.RELEASE))
            consumer.commit_sync()
