"""Measures the bytes that the broker sends, by the kernel's count, for many lanes of one partition on one host."""

from collections.abc import Iterator

import psutil

from bench.cases.throughput import small
from bench.loader import Load
from bench.sources import drained, ours
from bench.table import Result
from bench.world import World

LANES = 8
LARGE = Load(100, size=1_000_000, keys=100)


def p9(world: World) -> Iterator[Result]:
    """Eight lanes, eight slots. The aim is one fetch for all of them, however few the records."""
    broker = world.broker.process
    if broker is None:
        yield Result("P9", "bytes that the broker sends", "", "skipped: COOP_KAFKA is not ours to look into", "")
        return
    with world.widened(LANES):
        yield _sent("P9", world, psutil.Process(broker.pid), small(world))
        yield _sent("P9 1 MB", world, psutil.Process(broker.pid), LARGE)


def _sent(name: str, world: World, broker: psutil.Process, load: Load) -> Result:
    topic = world.topic(load)
    rows = ours(world, topic, lanes=str(LANES), slots=str(LANES))
    drained(rows)
    before = broker.io_counters().write_chars
    drained(rows)
    sent, stored = broker.io_counters().write_chars - before, world.log_bytes(topic)
    work = f"bytes that the broker sends of {load.records:,} records for {LANES} lanes on one host"
    return Result(name, work, "bytes in the log", _mebibytes(sent), _mebibytes(stored), sent / stored, 1.05)


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
