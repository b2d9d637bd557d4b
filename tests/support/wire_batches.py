"""Record batches as Kafka keeps them, built by kafka-python, to compare with decoded ones."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from crc32c import crc32c
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import ConsumerRecord, Fetcher
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from coordinator.kafka.empty_markers import passing
from spark_coop_source.fetch import raw_batches

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
AT = TopicPartition("orders", 0)


@dataclass(frozen=True, slots=True)
class Written:
    """A record as a producer sends it."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def batch(records: Sequence[Written], first: int = 0, *, magic: int = 2, codec: str = "none") -> bytes:
    """One batch, whose first record has the offset `first`; under v0 and v1 without a codec, a message a record."""
    apart = magic < 2 and codec == "none"
    builder = MemoryRecordsBuilder(
        magic=magic, compression_type=CODECS[codec], batch_size=2**31 - 1, offset=first if apart else 0
    )
    for record in records:
        builder.append(record.timestamp_ms, record.key, record.value, list(record.headers))
    builder.close()
    built = bytearray(builder.buffer())
    if not apart:  # the broker sets the offset, which no CRC covers: under v1 the last one
        built[:8] = (first if magic == 2 else first + len(records) - 1).to_bytes(8, "big")
    return bytes(built)


def emptied(offset: int, *, marker: bool, producer: int = 7) -> bytes:
    """The head of a producer's last batch, which the cleaner leaves."""
    transactional, control = 0x10, 0x20
    attributes = transactional | (control if marker else 0)
    signed = struct.pack(">hiqqqhii", attributes, 0, 0, 0, producer, 0, 0, 0)
    return struct.pack(">qiibI", offset, 9 + len(signed), 0, 2, crc32c(signed)) + signed


def polled(wire: bytes, *, raw: bool, fetch_offset: int = 0, **how: object) -> list[ConsumerRecord]:
    """The records that kafka-python reads from an answer with `wire`, with or without our hook."""
    kind = passing(Fetcher.PartitionRecords)
    part = (raw_batches._hooked(kind) if raw else kind)(fetch_offset, AT, MemoryRecords(wire), **how)
    return list(part.take())


def plain(wire: bytes, fetch_offset: int = 0) -> list[tuple[object, ...]]:
    """The records of `wire` as kafka-python reads them, each as `columns` shows it."""
    return [
        (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, list(r.headers))
        for r in polled(wire, raw=False, fetch_offset=fetch_offset)
    ]


texts = st.binary(max_size=40) | st.binary(min_size=100, max_size=300)
headers = st.lists(st.tuples(st.text(max_size=70), st.none() | texts), max_size=3).map(tuple)
times = st.integers(0, 2**40) | st.sampled_from([2**62, 1, 64, 8192])
written = st.builds(Written, st.none() | texts, st.none() | texts, times, headers)
batches = st.lists(
    st.tuples(st.lists(written, min_size=1, max_size=90), st.sampled_from(sorted(CODECS))), min_size=1, max_size=5
)
