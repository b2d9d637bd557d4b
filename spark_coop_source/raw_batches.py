"""Lets kafka-python's consumer hand out whole record batches, still compressed, instead of records.

kafka-python's fetcher makes one `PartitionRecords` of each answer; ours differs in one thing: a batch of
message format v2 is walked as if it held a single record, whose value is the batch. What kafka-python does
around a record then holds for a batch: CRC check, aborted transactions, markers, position, prefetch, errors.
Older formats still come record by record.

These are private names of kafka-python: `install` tries them first and leaves the consumer as it is where
they no longer fit. Nothing here knows what is inside a batch.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import kafka
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from spark_coop_source.record_batch_v2 import RawBatch

log = logging.getLogger(__name__)


def install(consumer: KafkaConsumer) -> bool:
    """Let `poll` give records whose `value` is a `RawBatch` and whose `offset` is the batch's last.

    False, after a warning, if this kafka-python cannot: then `poll` gives records as ever.
    """
    if not fits(Fetcher.PartitionRecords):
        log.warning("kafka-python %s does not hand out record batches: reading is slower", kafka.__version__)
        return False
    consumer._fetcher.PartitionRecords = _hooked(Fetcher.PartitionRecords)  # noqa: SLF001
    return True


@cache
def fits(partition_records: type) -> bool:
    """Whether our subclass of `partition_records` gives a batch that kafka-python itself has built."""
    try:
        builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1000, offset=0)
        builder.append(timestamp=1, key=b"k", value=b"v")
        builder.close()
        part = _hooked(partition_records)(0, TopicPartition("trial", 0), builder.records())
        (record,) = part.take(10)
    except Exception as error:  # noqa: BLE001  whatever a future version raises
        log.debug("the hook into kafka-python does not fit: %r", error)
        return False
    return isinstance(record.value, RawBatch) and (record.value.count, part.next_fetch_offset) == (1, 1)


@cache
def _hooked(partition_records: Any) -> type:
    class RawPartitionRecords(partition_records):  # type: ignore[misc]
        def __init__(self, fetch_offset: int, tp: TopicPartition, records: MemoryRecords, **how: object) -> None:
            super().__init__(fetch_offset, tp, _Batches(records), **how)

    return RawPartitionRecords


@dataclass(frozen=True, slots=True)
class _Batches:
    """kafka-python's batches of one answer, those of format v2 as single records."""

    records: MemoryRecords

    def next_batch(self) -> object:
        batch = self.records.next_batch()
        return _OneRecord(batch) if isinstance(batch, DefaultRecordBatch) else batch


@dataclass(frozen=True, slots=True)
class _OneRecord:
    """kafka-python's batch in everything but what iterating over it gives."""

    batch: DefaultRecordBatch

    def __getattr__(self, name: str) -> object:
        return getattr(self.batch, name)

    def __next__(self) -> object:  # how kafka-python looks into a marker
        return next(self.batch)

    def __iter__(self) -> Iterator["_Record"]:
        if self.batch.records_count:  # compaction may leave a batch without records
            yield _Record(_raw(self.batch), self.batch.last_offset, self.batch.size_in_bytes)


@dataclass(frozen=True, slots=True)
class _Record:
    """A batch that passes for a record."""

    value: RawBatch
    offset: int
    size_in_bytes: int
    key: None = None
    timestamp: int = 0
    timestamp_type: int = 0
    checksum: None = None
    headers: tuple[()] = field(default=())

    def validate_crc(self) -> bool:
        return True  # that of the batch has been checked


def _raw(batch: DefaultRecordBatch) -> RawBatch:
    return RawBatch(
        base_offset=batch.base_offset,
        count=batch.records_count,
        codec=batch.compression_type,
        first_timestamp_ms=batch.first_timestamp,
        append_time_ms=batch.max_timestamp if batch.timestamp_type == batch.LOG_APPEND_TIME else None,
        payload=memoryview(batch._buffer)[batch.HEADER_STRUCT.size :],  # noqa: SLF001
    )
