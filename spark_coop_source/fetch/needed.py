"""Requests the bytes that a stretch needs, and not the log behind it.

kafka-python requests as many bytes each time, and also ahead of the caller, however few offsets are missing. Here each
request has about the bytes of the missing offsets. The record batches of the last answers show their size:

    log        |-----|-----|-----|-----|-----|-----|
    stretch    |==========================|
    requests   |first|------ the rest ------|         then none

Knows offsets and sizes; nothing of the content of a record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from weakref import WeakKeyDictionary

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from coordinator.kafka import internals
from coordinator.values.ranges import OFFSET_MAX
from spark_coop_source.decode.record_batch_v2 import RawBatch
from spark_coop_source.fetch.raw_batches import HEAD

LEAST_BYTES = 16 * 1024
"""Bytes of a request at least, and of the first one, which shows the size of record batches. One always comes whole."""

MARGIN = 0.25
"""Of a record batch, because batches differ. If the last batch does not fit, it is fetched again."""

RECORD_BYTES = 30
"""About the bytes of a record besides its key and value, where kafka-python returns record by record."""


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Record batches of the last answers. Each answer counts twice as much as the one before."""

    batches: float = 0.0
    offsets: float = 0.0
    size: float = 0.0  # in bytes

    def after(self, records: Sequence[ConsumerRecord]) -> "BatchSizes":
        """With the record batches of one more answer, of which there is at least one."""
        first = records[0].value
        start = first.base_offset if isinstance(first, RawBatch) else records[0].offset
        batches, offsets = len(records), records[-1].offset + 1 - start
        size = sum(map(_size, records))
        return BatchSizes(self.batches / 2 + batches, self.offsets / 2 + offsets, self.size / 2 + size)

    def bytes_for(self, offsets: int) -> int:
        """About the bytes of the record batches that hold the next `offsets`."""
        batches = ceil(offsets * self.batches / self.offsets) + MARGIN
        return max(LEAST_BYTES, ceil(batches * self.size / self.batches))


def _size(record: ConsumerRecord) -> int:
    if isinstance(record.value, RawBatch):
        return HEAD.size + len(record.value.payload)
    return RECORD_BYTES + len(record.key or b"") + len(record.value or b"")


_seen: WeakKeyDictionary[KafkaConsumer, dict[TopicPartition, BatchSizes | None]] = WeakKeyDictionary()


def limit(consumer: KafkaConsumer, ends: Mapping[TopicPartition, int]) -> "Needed":
    """Let `consumer` request these partitions up to these offsets, and others without an end, until the next call."""
    needed = Needed(consumer, ends)
    internals.replace_fetchable(consumer, needed.partitions)
    return needed


class Needed:
    """What the requests of one consumer have to bring."""

    def __init__(self, consumer: KafkaConsumer, ends: Mapping[TopicPartition, int]) -> None:
        self._fetcher = internals.fetcher_of(consumer)
        self._most = int(consumer.config["max_partition_fetch_bytes"])
        self._ends = ends
        self._seen = _seen.setdefault(consumer, {})

    def saw(self, at: TopicPartition, records: Sequence[ConsumerRecord]) -> None:
        """An answer has come, with these records; with none, if it has only markers and aborted transactions."""
        self._seen[at] = (self._seen.get(at) or BatchSizes()).after(records) if records else None

    def partitions(self) -> list[TopicPartition]:
        """kafka-python's `_fetchable_partitions`, which it calls before each request."""
        fetcher = self._fetcher
        missing = {at: self._missing(at) for at in internals.fetchable(fetcher)}
        wanted = [at for at, offsets in missing.items() if offsets > 0]
        if wanted:
            size = max(self._bytes(at, missing[at]) for at in wanted)
            fetcher.config["max_partition_fetch_bytes"] = min(size, self._most)
        return wanted

    def _missing(self, at: TopicPartition) -> int:
        return self._ends.get(at, OFFSET_MAX) - internals.fetch_offset(self._fetcher, at)

    def _bytes(self, at: TopicPartition, offsets: int) -> int:
        if at not in self._seen:
            return LEAST_BYTES
        sizes = self._seen[at]
        return sizes.bytes_for(offsets) if sizes else self._most
