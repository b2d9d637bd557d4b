"""Writes records and commits a group's offsets in one transaction of Kafka: both, or neither.

    with producer.transaction(group, offsets):      begin
        producer.send(record)                       records, invisible under read_committed
                                                    flush, offsets, commit: or abort after an error

A second producer of the same id fences the first one. A transaction that a killed process left is aborted by the next
one of its id, or by the broker after a minute.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from coordinator.kafka import internals
from coordinator.kafka.errors import explained
from coordinator.kafka.producer import Outgoing, RecordProducer
from coordinator.values.subscription import TopicPartition


class TransactionalProducer(RecordProducer):
    """The only producer with its id, from its start on."""

    def __init__(self, kafka: Mapping[str, object], topic: str, transactional_id: str) -> None:
        """Raises as `RecordProducer`; also if the user may not use the id."""
        super().__init__(kafka, [topic], {"transactional_id": transactional_id})
        try:
            self.kafka.init_transactions()
        except KafkaError as error:
            self.close()
            raise explained(error, _asked(transactional_id), self.servers) from None
        self._id = transactional_id

    def send(self, record: Outgoing) -> None:
        """As `RecordProducer.send`, within a transaction."""
        internals.join_transaction(self.kafka, KafkaTopicPartition(*record.to))
        super().send(record)

    @contextmanager
    def transaction(self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> Iterator[None]:
        """The records that the body sends, and these offsets of Kafka's group with their metadata: all or nothing."""
        entries = {KafkaTopicPartition(*tp): OffsetAndMetadata(at, text, -1) for tp, (at, text) in offsets.items()}
        try:
            self.kafka.begin_transaction()
            yield
            self.flush()
            self.kafka.send_offsets_to_transaction(entries, group)
            self.kafka.commit_transaction()
        except BaseException as error:
            with suppress(KafkaError):
                self.kafka.abort_transaction()
            if isinstance(error, KafkaError):
                raise explained(error, _asked(self._id), self.servers) from None
            raise


def _asked(transactional_id: str) -> str:
    return f"a transaction with the id {transactional_id!r}"
