"""A record's key hash is computed once in a task: a column carries it to the meter and to the cuts for the function."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from arrow_records import ALL, batch, points
from coordinator.plan import sharing
from coordinator.plan.sharing import shared_stretches
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts, hash_record
from coordinator.values.ranges import OffsetRange
from log_fixtures import lane, task, whole
from spark_coop_source.arrow_output.schema import PLAIN
from spark_coop_source.function.rows import KeyRecords
from spark_coop_source.function.slice_batches import SliceTable, by_key, by_slice
from spark_coop_source.function.user_function import UserFunction, as_text
from spark_coop_source.select import hashing
from spark_coop_source.select.hash_column import HASH, hashes_of, with_hashes, without_hashes
from spark_coop_source.select.murmur3 import murmur3
from spark_coop_source.task.partition import Sharing, SlicePartition
from spark_coop_source.task.read import read_slices
from spark_coop_source.telemetry.report import ReportTo
from topics import Kafka, Record

KEYS = [b"a", None, b"b", b"a", b""]
OUTPUT = StructType([StructField("key", BinaryType()), StructField("offset", LongType())])
MANY = 6_000


def test_carried_hashes_are_those_that_would_be_computed() -> None:
    records = batch(KEYS, first=7)
    carried = with_hashes(records, hashes_of(records))
    assert hashes_of(carried).tolist() == [hash_record(key, 7 + i) for i, key in enumerate(KEYS)]
    assert hashes_of(carried.slice(2, 2)).tolist() == [hash_record(b"b", 0), hash_record(b"a", 0)]
    assert without_hashes(carried).equals(records)
    assert without_hashes(records).equals(records)


@pytest.mark.parametrize("cut", [by_key, by_slice])
def test_cuts_use_carried_hashes_and_drop_them(cut: object, monkeypatch: pytest.MonkeyPatch) -> None:
    records = batch(KEYS)
    carried = with_hashes(records, hashes_of(records))
    table = SliceTable(Slice(ALL.topic_partition, hashes, OffsetRange(0, 100)) for hashes in cuts(2))
    monkeypatch.setattr(hashing, "murmur3", None)  # calling it fails
    made = list(cut(carried, table))  # type: ignore[operator]
    assert sorted(offset for each in made for _, offset in points([each.records])) == [0, 1, 2, 3, 4]
    assert all(each.records.schema.names == list(PLAIN) for each in made)
    assert all(hash_record(key, offset) in each.of.hashes for each in made for key, offset in points([each.records]))


def of_key(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    assert records.arrow.schema.names == list(PLAIN)
    return records.arrow.select(["key", "offset"])


def of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for records in batches:
        assert records.schema.names == list(PLAIN)
        yield records.select(["key", "offset"])


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    made = kafka.create_topic()
    kafka.produce(made, [Record(b"v", b"%d" % (i % 997) if i % 10 else None) for i in range(MANY)], compression="lz4")
    return made


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of byte strings that each call hashed."""
    counts: list[int] = []

    def counted(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint64]:
        counts.append(len(starts))
        return murmur3(data, starts, lengths)

    monkeypatch.setattr(hashing, "murmur3", counted)
    return counts


def reported(kafka: Kafka, slices: list[Slice]) -> SlicePartition:
    return replace(task(kafka, slices), report=ReportTo("127.0.0.1", 9, 1, b"key"))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("per_key", [False, True])
def test_a_record_is_hashed_once(
    kafka: Kafka, topic: str, hashed: list[int], monkeypatch: pytest.MonkeyPatch, per_key: bool, shared: bool
) -> None:
    monkeypatch.setattr(sharing, "WORTH_IT", 1)
    each = [reported(kafka, [lane(topic, h, 0, MANY) for h in cuts(8)[at : at + 2]]) for at in (0, 6)]
    if shared:
        how = Sharing(f"{topic}-{per_key}", 64 * 1024 * 1024, shared_stretches([of.slices for of in each]))
        each = [replace(of, sharing=how) for of in each]
    function = UserFunction(as_text(of_key if per_key else of_batches), OUTPUT, "keys" if per_key else "batches")
    made = [points(read_slices(of, function)) for of in each]
    expected = [hash_record(b"%d" % (i % 997) if i % 10 else None, i) for i in range(MANY)]
    for of, read in zip(each, made, strict=True):
        mine = [i for i, key_hash in enumerate(expected) if any(key_hash in s.hashes for s in of.slices)]
        assert sorted(offset for _, offset in read) == mine
    keyless = MANY // 10
    assert sum(hashed) == (MANY + keyless) * (1 if shared else 2), "by each task that fetches, once"


def test_a_function_of_batches_on_a_whole_partition_needs_no_hashes(
    kafka: Kafka, topic: str, hashed: list[int]
) -> None:
    function = UserFunction(as_text(of_batches), OUTPUT, "batches")
    assert len(points(read_slices(reported(kafka, [whole(topic, 0, MANY)]), function))) == MANY
    assert hashed == []


def test_rows_for_spark_have_no_hashes(kafka: Kafka, topic: str) -> None:
    read = list(read_slices(reported(kafka, [lane(topic, h, 0, MANY) for h in cuts(4)[:2]])))
    assert {name for each in read for name in each.schema.names} == set(PLAIN) - {HASH.name}
