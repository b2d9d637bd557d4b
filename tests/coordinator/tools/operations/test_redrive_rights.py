"""The rights that a user needs for a redrive, on a broker with access rights: each one that is missing is named."""

from contextlib import closing

import pytest
from kafka.admin import ACLOperation, ResourceType

from coordinator.errors import KafkaAccessError
from coordinator.kafka.log import KafkaLog
from coordinator.tools.operations.redrive import Redrive, RedriveRequest
from coordinator.values.dead_letter import DeadLetter, SourceRecord
from coordinator.values.subscription import TopicPartition
from guarded_broker import GuardedBroker
from topics import Record
from written_records import consumed


def test_a_user_without_the_rights_is_told_which_are_missing(guarded: GuardedBroker, group: str) -> None:
    topic, dead = guarded.kafka.create_topic("orders"), guarded.kafka.create_topic("orders-dead")
    with closing(KafkaLog(guarded.settings, retries=20, retry_interval_ms=500)) as log:
        redrive = Redrive(guarded.settings, log, RedriveRequest(group, topic, dead), lambda *_: None)
        with pytest.raises(KafkaAccessError, match=f"write to topic '{topic}'"):
            redrive.check()
        guarded.grant(ResourceType.TOPIC, topic, ACLOperation.WRITE, ACLOperation.READ)
        redrive.check()
        with pytest.raises(KafkaAccessError, match="a transaction with the id") as error:
            redrive.execute()
        assert "WRITE and DESCRIBE on that transactional id" in error.value.remedy
        guarded.grant(ResourceType.TRANSACTIONAL_ID, redrive._wanted.transactional_id, ACLOperation.WRITE)
        guarded.grant(ResourceType.TOPIC, dead, ACLOperation.READ)
        guarded.grant(ResourceType.GROUP, redrive._wanted.kafka_group, ACLOperation.READ)
        letter = DeadLetter(SourceRecord(TopicPartition(topic, 0), 5, -1, b"k", b"v"), group, "E", "", 1)
        guarded.kafka.produce(dead, [Record(b"v", b"k", 0, letter.headers)])  # type: ignore[arg-type]
        assert [found.source_offset for found in redrive.execute().letters] == [5]
    assert len(consumed(guarded.kafka.bootstrap, topic)) == 1
