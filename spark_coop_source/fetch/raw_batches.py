"""Lets kafka-python's consumer return whole record batches, still compressed, instead of records.

kafka-python's fetcher makes one `PartitionRecords` of each answer. Ours differs in one thing: a batch of message
format v2 looks like a batch of one record, whose value is the batch. So kafka-python's work on a record applies to a
batch: CRC check, aborted transactions, markers, position, prefetch, errors. Older formats still come record by record,
after `older_formats` has checked their decompressed size.

These are private names of kafka-python. `install` first tests them; if they do not fit, it leaves the consumer as it
is. Nothing here knows the content of a batch.
"""

import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import kafka
from crc32c import crc32c
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from coordinator.kafka import internals
from spark_coop_source.decode.record_batch_v2 import RawBatch
from spark_coop_source.fetch import older_formats

log = logging.getLogger(__name__)

HEAD = struct.Struct(">qiibIhiqqqhii")
"""Header of a batch: base offset, length, leader epoch, magic, crc, attributes, last offset delta, first and largest
time, producer id, its epoch, its sequence, number of records."""

MAGIC_AT, ATTRIBUTES_AT = 16, 21

_V2 = 2
_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20


def install(consumer: KafkaConsumer) -> bool:
    """Let `poll` return records whose `value` is a `RawBatch` and whose `offset` is the last of the batch.

    False, after a warning, if this kafka-python does not allow it: then `poll` returns plain records.
    """
    if not fits(Fetcher.PartitionRecords):
        log.warning("kafka-python %s does not hand out record batches: reading is slower", kafka.__version__)
        older_formats.bound_codecs()
        return False
    internals.replace_parser(consumer, _hooked)
    return True


@cache
def fits(partition_records: type) -> bool:
    """Whether our subclass of `partition_records` can read a batch that kafka-python itself has built."""
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
    """kafka-python's batches of one answer. Batches of format v2 with a user's records become single records."""

    records: MemoryRecords

    def next_batch(self) -> object:
        wire = internals.next_batch_on_the_wire(self.records)
        if wire is not None and len(wire) > MAGIC_AT and wire[MAGIC_AT] < _V2:
            older_formats.check(wire)
        if wire is None or len(wire) < HEAD.size or wire[MAGIC_AT] != _V2:
            return self.records.next_batch()
        if wire[ATTRIBUTES_AT + 1] & _CONTROL:
            return self._control_batch(wire[ATTRIBUTES_AT + 1] & _CODEC)
        internals.skip_batch(self.records)
        return _OneRecord(wire)

    def _control_batch(self, codec: int) -> object:
        if codec:  # kafka-python would decompress it without a bound
            raise CorruptRecordError("a batch of transaction markers that is compressed, which Kafka never does")
        return self.records.next_batch()


class _OneRecord:
    """The fields of a batch that kafka-python's fetcher reads, parsed once, without a copy of the batch."""

    magic = _V2
    is_control_batch = False

    def __init__(self, wire: memoryview) -> None:
        self.wire = wire
        self.base_offset: int
        self.attributes: int
        self.producer_id: int
        self.base_offset, _, self.leader_epoch, _, self._crc, self.attributes, *rest = HEAD.unpack_from(wire)
        last_delta, self.first_timestamp, self.max_timestamp, self.producer_id, _, _, self.count = rest
        self.last_offset = self.base_offset + last_delta
        self.next_offset = self.last_offset + 1
        self.is_transactional = bool(self.attributes & _TRANSACTIONAL)

    def __getattr__(self, name: str) -> object:
        return getattr(DefaultRecordBatch(self.wire), name)

    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    def validate_crc(self) -> bool:
        return bool(crc32c(self.wire[ATTRIBUTES_AT:]) == self._crc)

    def __iter__(self) -> Iterator["_Record"]:
        if not 0 <= self.count <= self.last_offset - self.base_offset + 1:
            what = f"declares {self.count} records of the offsets up to {self.last_offset}"
            raise CorruptRecordError(f"the batch at offset {self.base_offset} {what}")
        if self.count or len(self.wire) > HEAD.size:  # compaction may leave a batch without records
            yield _Record(self._raw(), self.last_offset, len(self.wire))

    def _raw(self) -> RawBatch:
        return RawBatch(
            base_offset=self.base_offset,
            last_offset=self.last_offset,
            count=self.count,
            codec=self.attributes & _CODEC,
            first_timestamp_ms=self.first_timestamp,
            append_time_ms=self.max_timestamp if self.attributes & _APPEND_TIME else None,
            payload=self.wire[HEAD.size :],
        )


@dataclass(frozen=True, slots=True)
class _Record:
    """A batch in the form of a record."""

    value: RawBatch
    offset: int
    size_in_bytes: int
    key: None = None
    timestamp: int = 0
    timestamp_type: int = 0
    checksum: None = None
    headers: tuple[()] = field(default=())

    def validate_crc(self) -> bool:
        return True  # the CRC of the batch has been checked
