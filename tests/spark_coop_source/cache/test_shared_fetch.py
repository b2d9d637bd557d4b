"""What one task does while others publish, or fail to. `task/test_shared_read.py` has whole tasks, on a real Kafka."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path

import pyarrow as pa
import pytest

from coordinator.plan.sharing import SharedStretch
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache import folder, leftovers, pieces, shared_fetch
from spark_coop_source.cache.block_format import Packed
from spark_coop_source.cache.blocks import Block, BlockCache, opened
from spark_coop_source.cache.publisher import Fetched
from spark_coop_source.cache.shared_fetch import AHEAD, SharedReading

PIECE, BLOCK = 100, 50
SCHEMA = pa.schema([("offset", pa.int64()), ("value", pa.binary())])
NAME = "stretch"
ENOUGH = 1 << 20

Fetching = Callable[[OffsetRange], None]
"""Is told of each piece that is fetched; may raise."""


@pytest.fixture(autouse=True)
def shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(folder, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(leftovers, "_start_sweeper", lambda _: None)
    monkeypatch.setattr(shared_fetch, "PATIENCE_S", inf)
    monkeypatch.setattr(pieces, "FIRST", PIECE)
    monkeypatch.setattr(pieces, "LONGEST", PIECE)
    return tmp_path / f"coop-kafka-{os.getuid()}"


def parts(offsets: OffsetRange) -> list[pa.RecordBatch]:
    """All records lie in the first of two lanes."""
    values = pa.array([b"v" * 100] * len(offsets))
    records = pa.record_batch([pa.array(range(offsets.start, offsets.until)), values], SCHEMA)
    return [records, records.slice(0, 0)]


def reading(cache: BlockCache, fetching: Fetching, until: int = 5 * PIECE) -> SharedReading:
    """The task of the first lane."""

    def fetch(offsets: OffsetRange, stopped: Callable[[], bool]) -> Iterator[Fetched]:
        fetching(offsets)
        for start in range(offsets.start, offsets.until, BLOCK):
            if not stopped():
                block = OffsetRange(start, min(start + BLOCK, offsets.until))
                yield Fetched(block.until, parts(block))

    return SharedReading(cache, NAME, SharedStretch(OffsetRange(0, until), 2, cuts(2)), (0,), SCHEMA, fetch)


def publish(cache: BlockCache, offsets: OffsetRange) -> None:
    """As another task does."""
    packed = Packed.of(parts(offsets))
    assert cache.publish(Block(NAME, offsets, packed.size), packed.write)


def read(of: SharedReading) -> list[int]:
    """The offsets of its records."""
    return [
        offset
        for found in of.read()
        for _, batch in found.parts
        for offset in batch.column("offset").to_pylist()
        if found.offsets.start <= offset < found.offsets.until
    ]


def has_block(shared_memory: Path, start: int) -> bool:
    return any(shared_memory.glob(f"{NAME}.{start}.*"))


def until(done: Callable[[], bool], thread_is_over: Callable[[], bool]) -> None:
    while not done():
        assert not thread_is_over()
        time.sleep(0.005)


def test_a_task_that_waits_for_its_publisher_never_stops_it(shared_memory: Path) -> None:
    """A block of another task reaches into the piece that this task has published as far as it may."""
    with opened(AHEAD * 4_400) as cache, ThreadPoolExecutor(1) as thread:  # a block has about 6,000 bytes
        assert cache
        other = cache.lock(f"{NAME}-{PIECE}")
        assert other
        result = thread.submit(read, reading(cache, lambda _: None))
        until(lambda: has_block(shared_memory, 2 * PIECE), result.done)
        publish(cache, OffsetRange(PIECE, 2 * PIECE + BLOCK))
        assert result.result(30) == list(range(5 * PIECE))
        cache.unlock(other)


def test_an_error_ahead_is_no_error_of_a_task_that_finds_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[int] = []
    looks, be_patient = list[int](), SharedReading._be_patient

    def looked(task: SharedReading) -> None:
        looks.append(task.position)
        be_patient(task)

    monkeypatch.setattr(SharedReading, "_be_patient", looked)

    def fetching(offsets: OffsetRange) -> None:
        fetched.append(offsets.start)
        if fetched.count(2 * PIECE) == 1 and offsets.start == 2 * PIECE:
            raise OSError("the broker has closed the connection")

    with opened(ENOUGH) as cache, ThreadPoolExecutor(1) as thread:
        assert cache
        other = cache.lock(f"{NAME}-{PIECE}")
        assert other
        result = thread.submit(read, reading(cache, fetching))
        until(lambda: 2 * PIECE in fetched, result.done)
        looks.clear()
        until(lambda: len(looks) > 3, result.done)
        assert fetched == [0, 2 * PIECE], "it is not tried again at each look"
        for start in (PIECE, PIECE + BLOCK, 2 * PIECE):
            publish(cache, OffsetRange(start, start + BLOCK))
        cache.unlock(other)
        assert result.result(30) == list(range(5 * PIECE))
    assert fetched == [0, 2 * PIECE, 2 * PIECE + BLOCK, 3 * PIECE, 4 * PIECE]


def test_an_error_at_its_own_position_is_an_error_of_the_task() -> None:
    def fetching(offsets: OffsetRange) -> None:
        if offsets.start >= 2 * PIECE:
            raise OSError("the broker is gone")

    with opened(ENOUGH) as cache:
        assert cache
        task = reading(cache, fetching)
        with pytest.raises(OSError, match="gone"):
            read(task)
        assert task.position == 2 * PIECE


def test_a_task_reads_alone_once_a_block_finds_no_room() -> None:
    fetched: list[int] = []
    with opened(4 * 5_000) as cache:  # a block has about 6,000 bytes, and may have a quarter
        assert cache
        task = reading(cache, lambda offsets: fetched.append(offsets.start))
        assert read(task) == []
        assert task.position == 0
    assert fetched == [0]
