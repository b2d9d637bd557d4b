"""User functions of the benchmarks; imports little, because Python workers import it."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from drivers import points
from spark_coop_source.function.rows import KeyRecords

LETTERS = "key binary, size int, upper binary"
WAITED = "key binary, records int"
CLOCKED = "key binary, records int, began_ns long, ended_ns long"
COUNTED = f"{CLOCKED}, threads int"
WORKED = "key binary, us long"
PASSED = "partition int, offset long, key binary, value binary"
HANG, NOTES = b"hang", "done-"

_LETTERS = pa.schema([("key", pa.binary()), ("size", pa.int32()), ("upper", pa.binary())])
_WAITED = pa.schema([("key", pa.binary()), ("records", pa.int32())])


_CLOCKED = pa.schema([*_WAITED, ("began_ns", pa.int64()), ("ended_ns", pa.int64())])
_COUNTED = pa.schema([*_CLOCKED, ("threads", pa.int32())])
_WORKED = pa.schema([("key", pa.binary()), ("us", pa.int64())])


def wait_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The work of `wait` for a whole batch at a time: one row for each key."""
    for batch in batches:
        waits = pc.cast(pc.cast(batch.column("value"), pa.string()), pa.int64())
        time.sleep((pc.sum(waits).as_py() or 0) / 1_000_000)
        counts = pc.value_counts(batch.column("key"))
        columns = [counts.field("values"), pc.cast(counts.field("counts"), pa.int32())]
        yield pa.RecordBatch.from_arrays(columns, schema=_WAITED)


def spin_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same with a busy core: each record takes as many microseconds of CPU as its value."""
    for batch in batches:
        total = sum(int(value) for value in batch.column("value").to_pylist()) / 1_000_000
        until = time.thread_time() + total
        while time.thread_time() < until:
            pass
        yield pa.RecordBatch.from_arrays(
            [pa.array([None], pa.binary()), pa.array([len(batch)], pa.int32())], schema=_WAITED
        )


def letters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A little work on every record, all in Arrow: the size of its value, and the first letters of it."""
    for batch in batches:
        value = batch.column("value")
        columns = [batch.column("key"), pc.binary_length(value), pc.binary_slice(value, 0, 8)]
        yield pa.RecordBatch.from_arrays(columns, schema=_LETTERS)


def wait(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """One key's records, one after another: for each a wait of as many microseconds as its value."""
    for value in records.arrow.column("value").to_pylist():
        time.sleep(int(value) / 1_000_000)
    return pa.RecordBatch.from_arrays(
        [pa.array([key], pa.binary()), pa.array([len(records)], pa.int32())], schema=_WAITED
    )


def wait_clocked(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The same; returns its start and end, in nanoseconds since 1970."""
    began = time.time_ns()
    waited = wait(key, records)
    clock = [pa.array([at], pa.int64()) for at in (began, time.time_ns())]
    return pa.RecordBatch.from_arrays([*waited.columns, *clock], schema=_CLOCKED)


async def wait_async(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The same as a coroutine; returns also the number of threads of its process."""
    began = time.time_ns()
    for value in records.arrow.column("value").to_pylist():
        await asyncio.sleep(int(value) / 1_000_000)
    return _counted(key, records, began)


async def wait_as_coroutine(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The work of `wait` as a coroutine."""
    for value in records.arrow.column("value").to_pylist():
        await asyncio.sleep(int(value) / 1_000_000)
    return pa.RecordBatch.from_arrays(
        [pa.array([key], pa.binary()), pa.array([len(records)], pa.int32())], schema=_WAITED
    )


async def fail_or_wait(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The same, and an error for one key in a hundred."""
    if int((key or b"k1")[1:]) % 100 == 0:
        raise OSError("this customer is away")
    return await wait_as_coroutine(key, records)


def wait_in_thread(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The same in a thread."""
    began = time.time_ns()
    for value in records.arrow.column("value").to_pylist():
        time.sleep(int(value) / 1_000_000)
    return _counted(key, records, began)


def _counted(key: bytes | None, records: KeyRecords, began: int) -> pa.RecordBatch:
    """The row of a call. Threads are counted now and then: that takes a millisecond."""
    counts = records.arrow.column("offset")[0].as_py() % 50 == 0
    threads = len([*Path("/proc/self/task").iterdir()]) if counts else 0
    row = key, len(records), began, time.time_ns(), threads
    columns = [pa.array([value], field.type) for value, field in zip(row, _COUNTED, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_COUNTED)


def wait_and_return_time(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The same; returns the time that it should wait."""
    waits = [int(value) for value in records.arrow.column("value").to_pylist()]
    time.sleep(sum(waits) / 1_000_000)
    return pa.RecordBatch.from_arrays(
        [pa.array([key], pa.binary()), pa.array([sum(waits)], pa.int64())], schema=_WORKED
    )


def wait_4_ms(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """One key's records unchanged, each after 4 ms."""
    time.sleep(0.004 * len(records))
    return records.arrow.select(["partition", "offset", "key", "value"])


def wait_4_ms_and_note(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The same in a worker of a driver, in whose folder it notes the offsets of what is done."""
    passed = wait_4_ms(key, records)
    with Path(os.environ[points.FOLDER], f"{NOTES}{os.getpid()}").open("a") as file:
        file.writelines(f"{offset}\n" for offset in passed.column("offset").to_pylist())
    return passed


def wait_and_pass(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """One key's records unchanged, each after 15 ms; a record with the value `HANG` never ends."""
    for value in records.arrow.column("value").to_pylist():
        time.sleep(1_000_000 if value == HANG else 0.015)
    return records.arrow.select(["partition", "offset", "key", "value"])
