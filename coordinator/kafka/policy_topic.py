"""The topic `coop-kafka-policies`: policies of the whole Kafka cluster, for all groups and every Redis.

A compacted topic with one partition. A record's key is the name of a policy, and its value is `true` or `false`. The
last record of a name holds; one without a value ends it. Brokers keep compacted topics for ever, so a policy neither
expires nor depends on Redis. Queries need READ on the topic, which
includes DESCRIBE; administrators also CREATE, WRITE and DESCRIBE_CONFIGS.
"""

import time
from collections.abc import Mapping
from contextlib import closing

from kafka import KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import KafkaTimeoutError, TopicAlreadyExistsError
from kafka.protocol.consumer import IsolationLevel

from coordinator.errors import InvalidOptionError, KafkaUnavailableError
from coordinator.kafka.client import arguments_of
from coordinator.kafka.connection import KafkaConnection, Session, open_client
from coordinator.kafka.offsets import described, look_up
from coordinator.kafka.reader import POLL_MS, reader
from coordinator.values.offset_spec import EARLIEST, LATEST
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import POLICIES, TopicPartition

WAIT_S = 8.0
"""Longest wait for the records, which the log is known to have."""

_TP = TopicPartition(POLICIES, 0)
_COMPACTED = {"cleanup.policy": "compact"}


class PolicyTopic:
    """Reads and writes the topic, over the connection of a log."""

    def __init__(self, kafka: Mapping[str, object], connection: KafkaConnection) -> None:
        """`kafka` holds kafka-python's keyword arguments."""
        self._kafka, self._connection = kafka, connection
        self._known: tuple[str, dict[str, str]] | None = None  # as last read

    def read(self) -> tuple[str, dict[str, str]]:
        """Version and policies by name; read again if the version has changed. Empty if there is no such topic.

        While the one partition of the topic is away, those that were read last: no query ends because of it, and none
        waits for longer than a look without patience.
        """
        try:
            self._known = self._read()
        except KafkaUnavailableError:
            if self._known is None:
                raise
        return self._known

    def _read(self) -> tuple[str, dict[str, str]]:
        what = f"the topic {POLICIES!r}"
        patient = self._known is None
        found = self._connection.ask(what, _place, patient=patient)
        if found is None:
            return "", {}
        topic_id, start, end = found
        version = f"{topic_id} {end}"
        if self._known and self._known[0] == version:
            return self._known
        if start == end:  # nobody has set a policy yet, or all records were deleted
            return version, {}
        return version, self._connection.ask(what, lambda _: _values(self._kafka, start, end), patient=patient)

    def write(self, changes: Mapping[str, str]) -> None:
        """Write policies by name; an empty value ends one. Creates the topic if it does not exist."""
        self._connection.ask(f"to create the topic {POLICIES!r}", _create)
        self._connection.ask(f"to write to the topic {POLICIES!r}", lambda _: _write(self._kafka, changes))


def _place(session: Session) -> tuple[str, int, int] | None:
    """The topic's id, its first offset and its log end; None if there is no such topic."""
    topic = described(session, POLICIES)
    if topic is None:
        return None
    first, last = look_up(session, ({_TP: EARLIEST}, {_TP: LATEST}), IsolationLevel.READ_UNCOMMITTED)
    return topic.id, first[_TP].offset, last[_TP].offset


def _values(kafka: Mapping[str, object], start: int, end: int) -> dict[str, str]:
    """The last value of each policy. A value that is not `true` counts as `false`: the strict reading."""
    partition, found = KafkaTopicPartition(*_TP), dict[str, str]()
    with closing(reader(kafka, {_TP: OffsetRange(start, end)})) as consumer:
        deadline = time.monotonic() + WAIT_S
        while consumer.position(partition) < end:
            for record in consumer.poll(POLL_MS).get(partition, ()):
                name = (record.key or b"").decode("utf-8", "replace")
                found.pop(name, None)
                if record.value is not None:
                    found[name] = "true" if record.value == b"true" else "false"
            if time.monotonic() > deadline:
                raise KafkaTimeoutError(f"no record of {_TP} within {WAIT_S:g} s")
    return found


def _create(session: Session) -> None:
    """Create the topic if it does not exist; `InvalidOptionError` if it is not compacted: it would lose policies."""
    try:
        session.admin.create_topics([NewTopic(POLICIES, 1, -1, topic_configs=_COMPACTED)])
        session.admin.wait_for_topics([POLICIES])
    except TopicAlreadyExistsError:
        pass
    resource = ConfigResource(ConfigResourceType.TOPIC, POLICIES)
    configs = session.admin.describe_configs([resource], config_filter="all")["topic"][POLICIES]
    cleanup = configs["cleanup.policy"]["value"]
    if cleanup != _COMPACTED["cleanup.policy"]:
        raise InvalidOptionError(
            f"the topic {POLICIES!r} has cleanup.policy={cleanup}, so Kafka would delete policies",
            f"set cleanup.policy=compact on {POLICIES}",
        )


def _write(kafka: Mapping[str, object], changes: Mapping[str, str]) -> None:
    """Write policies; all of them are acknowledged by all in-sync replicas when this returns."""
    producer, _ = open_client(KafkaProducer, {**arguments_of(KafkaProducer, kafka), "acks": "all"}, [POLICIES])
    with closing(producer):
        sent = [producer.send(POLICIES, v.encode() or None, k.encode(), partition=0) for k, v in changes.items()]
        for each in sent:
            each.get(WAIT_S)
