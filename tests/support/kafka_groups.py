"""Kafka's own groups, as Kafka's own clients and its own tool see them."""

import subprocess
from contextlib import closing

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import OffsetAndMetadata, TopicPartition

from broker_jars import BROKER
from spark_coop_source.servers.programs import in_java


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


def described(bootstrap: str, group: str) -> list[list[str]]:
    """The rows of the table of `kafka-consumer-groups --describe`, the Java class itself."""
    return _rows(bootstrap, group, "--describe")


def reset_to_earliest(bootstrap: str, group: str, topic: str) -> None:
    """The same tool resets the offsets of a topic."""
    assert _rows(bootstrap, group, "--reset-offsets", "--to-earliest", "--topic", topic, "--execute")


def _rows(bootstrap: str, group: str, *arguments: str) -> list[list[str]]:
    command = [*in_java(BROKER), "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"]
    command += ["--bootstrap-server", bootstrap, "--group", group, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True)
    return [line.split() for line in done.stdout.splitlines() if line.startswith(group)]
