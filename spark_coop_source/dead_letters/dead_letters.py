"""The dead letters of one task: each record goes to the topic with its key, value, headers, and eight more headers.

    source           orders-0 @17   key k
    dead letter      orders-dead-P  key k, P by Kafka's default partitioner: records of a key stay in order

A record without a key goes to a partition by that of its source. The time of a dead letter is the time of its write, so
that its retention begins then; the header `coop.timestamp` has the record's own time. Written at least once: an attempt
of a task that is repeated writes its dead letters again. Runs in executor workers, on one thread.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import pyarrow as pa

from coordinator.kafka.partitioning import partition_for
from coordinator.kafka.producer import Outgoing, RecordProducer
from coordinator.values.dead_letter import NO_TIME, DeadLetter, SourceRecord
from coordinator.values.subscription import TopicPartition
from spark_coop_source.dead_letters import producers

_US_PER_MS = 1_000


class DeadLetters:
    """A context manager. At its end, all dead letters are in Kafka, or it raises.

    After another error of the task it does not wait: Spark repeats the task, which writes its dead letters again.
    """

    def __init__(self, topic: str, kafka: Mapping[str, object], group: str) -> None:
        """`kafka`: the settings of the task's consumers. `group`: empty without one. Connects at the first record."""
        self.topic, self.sent = topic, 0
        self._kafka, self._group = kafka, group
        self._producer: RecordProducer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, GeneratorExit):  # the task ended, or ended early as under a LIMIT
            self.flush()
            if self._producer is not None:
                producers.give_back(self._kafka, self.topic, self._producer)
        else:
            self._drop()

    def send(self, row: pa.RecordBatch, error: str, message: str, attempts: int) -> None:
        """Write the record of `row` soon.

        Args:
            row: one record, with the columns of `arrow_output.schema.EVERY` except timestampType.
            error: the exception's class.
            message: the exception's text.
            attempts: of the user's function on this record, in all batches.

        Raises:
            RecordRefusedError: Kafka does not take this record, or an earlier one.
            LogError: Kafka does not answer, or the user may not write to the topic; the subclass names the case.
        """
        letter = DeadLetter(_record(row), self._group, error, message, attempts)
        try:
            if self._producer is None:
                self._producer = producers.take(self._kafka, self.topic)
            self._producer.send(self._outgoing(letter, self._producer.partitions(self.topic)))
        except BaseException:
            self._drop()
            raise
        self.sent += 1

    def flush(self) -> None:
        """Wait until Kafka has every dead letter so far. Raises as `send` does."""
        try:
            if self._producer is not None:
                self._producer.flush()
        except BaseException:
            self._drop()
            raise

    def _outgoing(self, letter: DeadLetter, partitions: int) -> Outgoing:
        record = letter.record
        to = TopicPartition(self.topic, partition_for(record.key, partitions, keyless=record.tp.partition))
        return Outgoing(to, record.key, record.value, letter.headers, None, f"the dead letter of {record}")

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()


def _record(row: pa.RecordBatch) -> SourceRecord:
    (fields,) = row.select(["key", "value", "topic", "partition", "offset", "headers"]).to_pylist()
    us = row.column("timestamp").cast(pa.int64())[0].as_py()
    headers = tuple((header["key"], header["value"]) for header in fields["headers"] or ())
    tp = TopicPartition(fields["topic"], fields["partition"])
    time_ms = NO_TIME if us is None else us // _US_PER_MS
    return SourceRecord(tp, fields["offset"], time_ms, fields["key"], fields["value"], headers)
