"""Record batches read as a task reads them, and as kafka-python reads them: for what is forged or damaged."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count

import numpy as np
from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords

from coordinator.errors import CoopKafkaError
from coordinator.kafka.empty_markers import passing
from coordinator.values.ranges import OFFSET_MAX, OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output.record_batch import to_arrow
from spark_coop_source.arrow_output.schema import EVERY
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.record_places import chained
from spark_coop_source.decode.sizes import DecodeLimits, TooLarge, UndividedUnit
from spark_coop_source.fetch.fetch import FetchSettings, _Stretch
from spark_coop_source.fetch.looks import LogLooks
from spark_coop_source.fetch.older_formats import MessageSetTooLargeError
from wire_batches import AT, Written, polled

TP = TopicPartition(AT.topic, AT.partition)
MIB = 1024 * 1024
RECORDS = [
    Written(
        b"key %d" % i if i % 4 else None,
        None if i % 7 == 3 else b"value %d " % i * (i % 9),
        1_000 + i,
        tuple((f"h{j}", b"x" * j or None) for j in range(i % 3)),
    )
    for i in range(40)
]


@contextmanager
def settings_only() -> Iterator[KafkaConsumer]:
    """A consumer that never connects: reading what is at hand needs only its settings."""
    with closing(KafkaConsumer(bootstrap_servers="127.0.0.1:1", max_poll_records=65_536, api_version=(4, 2))) as opened:
        yield opened


def compared(consumer: KafkaConsumer, wire: bytes, chunk_bytes: int) -> bool:
    """Whether a batch is read, exactly as kafka-python reads it, and not refused by name; raises `AssertionError`."""
    try:
        ours = shown(read(consumer, wire, chunk_bytes))
    except CoopKafkaError as error:
        assert str(TP) in str(error), error
        assert error.remedy, error
        return False
    try:
        theirs = oracle(wire)
    except Exception as error:  # noqa: BLE001  each codec has its own
        assert java_reads_it(wire, error), error
        before = oracle_until_an_error(wire)
        assert ours[: len(before)] == before or has_wide_attributes(wire)
        return True
    assert ours == theirs or has_wide_attributes(wire)
    return True


def read(
    consumer: KafkaConsumer,
    wire: bytes,
    chunk_bytes: int = 4 * MIB,
    *,
    check_crcs: bool = True,
    until: int = OFFSET_MAX,
) -> list[dict[str, object]]:
    """The rows of an answer of Kafka's that holds `wire`, as a task shows them; raises what the task raises."""
    sizes = DecodeLimits(batch=64 * MIB, record=16 * MIB)
    settings = FetchSettings({"bootstrap_servers": ["broker:9092"]}, 20_000, True, chunk_bytes, sizes)
    stretch = _Stretch(consumer, LogLooks(settings.kafka), TP, OffsetRange(0, until), settings)
    try:
        taken = polled(wire, raw=True, check_crcs=check_crcs)
    except MessageSetTooLargeError as error:
        stretch._pass_over(TooLarge(0, error.last_offset + 1, str(error), UndividedUnit.MESSAGE_SET))
        return []
    except Exception as error:
        raise stretch._explained(error) from error
    return [row for chunk in stretch._wanted(taken) for row in rows(chunk)]


def rows(chunk: Chunk) -> list[dict[str, object]]:
    shown: list[dict[str, object]] = to_arrow(TP, chunk, None, EVERY).drop_columns(["timestamp"]).to_pylist()
    return shown  # Python cannot show all of Spark's times


def oracle(wire: bytes) -> list[tuple[object, ...]]:
    """The records as kafka-python reads them; raises what it raises for any of them."""
    return list(_read_by_kafka_python(wire))


def oracle_until_an_error(wire: bytes) -> list[tuple[object, ...]]:
    """The records that kafka-python reads before one that it cannot read."""
    read: list[tuple[object, ...]] = []
    with suppress(Exception):
        read.extend(_read_by_kafka_python(wire, at_once=1))
    return read


def _read_by_kafka_python(wire: bytes, at_once: int | None = None) -> Iterator[tuple[object, ...]]:
    part = passing(Fetcher.PartitionRecords)(0, AT, MemoryRecords(wire))
    while part and (taken := part.take(at_once)):
        yield from ((r.offset, r.key, r.value, list(r.headers)) for r in taken)


def shown(read: Sequence[dict[str, object]]) -> list[tuple[object, ...]]:
    """Rows as `oracle` shows records."""
    return [(row["offset"], row["key"], row["value"], _headers(row["headers"])) for row in read]


def _headers(of_row: object) -> list[tuple[object, object]]:
    assert of_row is None or isinstance(of_row, list)
    return [(header["key"], header["value"]) for header in of_row or ()]


def java_reads_it(wire: bytes, error: Exception) -> bool:
    """What Java's client reads and kafka-python does not: header keys not in UTF-8, attributes of one byte, nothing."""
    if "UnicodeDecodeError" in str(error):
        return True
    try:  # nothing: a batch without records, however it is compressed
        return DefaultRecordBatch(wire).records_count == 0 or has_wide_attributes(wire)
    except Exception:  # noqa: BLE001  nor does Java's
        return False


def has_wide_attributes(wire: bytes) -> bool:
    """Whether a record's attributes begin like two bytes, as kafka-python reads them; Java reads one."""
    its = DefaultRecordBatch(wire)
    its._maybe_uncompress()
    data = bytes(its._buffer[its._pos :])
    places = np.concatenate(chained(data, 0, its.records_count)[0]).tolist()
    behind_lengths = (next(at for at in count(place) if data[at] < 0x80) + 1 for place in places)
    return any(data[at] >= 0x80 for at in behind_lengths)
