"""Tasks hand over exactly the records that a filter keeps, and copy nothing of the others."""

import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from coordinator.errors import LogError
from coordinator.plan import sharing
from coordinator.plan.sharing import shared_stretches
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HashRange
from coordinator.values.record_filter import EVERYTHING, RecordFilter
from filter_oracle import keeps
from log_fixtures import compacted_log, end, lane, odd_log, rows, task, whole
from spark_coop_source.cache import folder as cache_folder
from spark_coop_source.cache import leftovers
from spark_coop_source.fetch import consumers, raw_batches
from spark_coop_source.task.partition import Sharing, SlicePartition
from spark_coop_source.task.readings import Readings
from topics import Kafka, Record

ROOM = 64 * 1024 * 1024
KIB = 1024
LATEST = {"message.timestamp.after.max.ms": str(2**63 - 1)}
FILTERS = [
    pytest.param(RecordFilter(cuts(3)[:2]), id="key ranges"),
    pytest.param(RecordFilter(allow=frozenset([b"a", b"", None])), id="some keys and no key"),
    pytest.param(RecordFilter(deny=frozenset([b"a", b"1"])), id="all but two keys"),
    pytest.param(RecordFilter(least_bytes=3, most_bytes=1_500), id="sizes"),
    pytest.param(RecordFilter(most_bytes=1), id="tombstones of short keys"),
    pytest.param(RecordFilter(cuts(2)[1:], frozenset([b"a", b"b", None]), frozenset([b"b"]), 1, 10_000), id="all"),
    pytest.param(RecordFilter((HashRange(5, 5),)), id="none"),
]

Rows = list[dict[str, object]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(cache_folder, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(leftovers, "_start_sweeper", lambda _: None)  # a process for each of these folders
    monkeypatch.setattr(sharing, "WORTH_IT", 1)
    consumers.close_idle()
    yield tmp_path / f"coop-kafka-{os.getuid()}"
    consumers.close_idle()


@pytest.fixture(scope="module", params=[None, "zstd", "compacted"])
def log(request: pytest.FixtureRequest, kafka: Kafka) -> str:
    return compacted_log(kafka) if request.param == "compacted" else odd_log(kafka, request.param)


def kept(of: RecordFilter, every: Rows) -> Rows:
    return [r for r in every if keeps(of, cast(bytes, r["key"]), cast(bytes, r["value"]), cast(int, r["offset"]))]


def together(tasks: list[SlicePartition]) -> list[SlicePartition]:
    """The same tasks as the input partitions of one batch."""
    how = Sharing(uuid.uuid4().hex, ROOM, shared_stretches([each.slices for each in tasks]))
    return [replace(each, sharing=how) for each in tasks]


@pytest.mark.parametrize("of", FILTERS)
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_every_way_of_reading_keeps_the_records_of_the_definition(
    kafka: Kafka, log: str, level: str, of: RecordFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = end(kafka, log)
    every = task(kafka, [whole(log, 0, last)], include_headers=True, isolation_level=level)
    expected = kept(of, rows(every))
    assert rows(replace(every, filter=of)) == expected
    lanes = [replace(every, slices=(lane(log, hashes, 0, last),), filter=of) for hashes in cuts(3)]
    with ThreadPoolExecutor(3) as threads:
        shared = [row for found in threads.map(rows, together(lanes)) for row in found]
    assert sorted(shared, key=lambda row: cast(int, row["offset"])) == expected
    monkeypatch.setattr(raw_batches, "fits", lambda _: False)  # single records, as of older formats
    consumers.close_idle()
    assert rows(replace(every, filter=of)) == expected


def test_the_filters_of_this_module_keep_some_records_and_drop_some(kafka: Kafka) -> None:
    topic = odd_log(kafka)
    every = rows(task(kafka, [whole(topic, 0, end(kafka, topic))]))
    counts = {param.id: len(kept(cast(RecordFilter, param.values[0]), every)) for param in FILTERS}
    assert counts.pop("none") == 0
    assert [name for name, count in counts.items() if not 0 < count < len(every)] == []


@pytest.mark.parametrize("shared", [False, True])
def test_a_record_that_spark_cannot_show_harms_nobody_once_it_is_filtered(kafka: Kafka, shared: bool) -> None:
    """Its time is decoded only if the record is kept."""
    topic = kafka.create_topic("late", config=LATEST)
    kafka.produce(topic, [Record(b"1", b"a"), Record(b"2", b"bad", timestamp_ms=2**62), Record(b"3", b"a")])
    lanes = [task(kafka, [lane(topic, hashes, 0, 3)]) for hashes in cuts(2)]
    with pytest.raises(LogError, match="beyond any Spark timestamp"):
        _ = [rows(each) for each in lanes]
    lanes = [replace(each, filter=RecordFilter(deny=frozenset([b"bad"]))) for each in lanes]
    found = [row["offset"] for each in (together(lanes) if shared else lanes) for row in rows(each)]
    assert sorted(map(int, map(str, found))) == [0, 2]


@pytest.mark.parametrize("shared", [False, True])
def test_values_of_dropped_records_are_in_no_column_and_in_no_shared_block(
    kafka: Kafka, folder: Path, shared: bool
) -> None:
    topic = kafka.create_topic("large")
    kafka.produce(topic, [Record(bytes(10 * KIB), b"%d" % (i % 100)) for i in range(1_000)], compression="lz4")
    lanes = [
        replace(task(kafka, [lane(topic, hashes, 0, 1_000)]), filter=RecordFilter(allow=frozenset([b"7"])))
        for hashes in cuts(2)
    ]
    copied = blocks = count = 0
    for each in together(lanes) if shared else lanes:
        tp = each.slices[0].topic_partition
        with Readings(each, each.columns, [tp]) as readings:
            for read in readings.of(tp, each.slices):
                blocks = max(blocks, sum(file.stat().st_size for file in folder.glob("*.*.*.*")))
                copied, count = copied + read.records.nbytes, count + len(read.records)
    assert count == 10
    assert 10 * 10 * KIB <= copied < 11 * 10 * KIB
    assert (30 * KIB < blocks < 20 * 10 * KIB) if shared else blocks == 0


@pytest.mark.parametrize("shared", [False, True])
def test_a_batch_counts_each_dropped_record_once(kafka: Kafka, shared: bool) -> None:
    topic = kafka.create_topic("counted")
    kafka.produce(topic, [Record(b"v", b"%d" % (i % 50)) for i in range(500)])
    of = RecordFilter(deny=frozenset([b"3", b"4"]))
    lanes = [replace(task(kafka, [lane(topic, hashes, 0, 500)]), filter=of) for hashes in cuts(3)]
    kept_rows = dropped = 0
    for each in together(lanes) if shared else lanes:
        tp = each.slices[0].topic_partition
        with Readings(each, each.columns, [tp]) as readings:
            kept_rows += sum(len(read.records) for read in readings.of(tp, each.slices))
            dropped += readings.filtered[tp]
    assert (kept_rows, dropped) == (480, 20)


def test_without_a_filter_no_record_is_compared(kafka: Kafka) -> None:
    topic = kafka.create_topic("plain")
    kafka.produce(topic, [Record(b"v", b"k")] * 3)
    plain = task(kafka, [whole(topic, 0, 3)])
    assert plain.filter == EVERYTHING
    assert len(rows(plain)) == 3
