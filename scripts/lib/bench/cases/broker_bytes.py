"""What the broker sends, as the kernel counts it, for many lanes of one partition on one host."""

from collections.abc import Iterator

import psutil

from bench.cases.throughput import small
from bench.sources import drained, ours
from bench.table import Result
from bench.world import World

LANES = 8


def p9(world: World) -> Iterator[Result]:
    """Eight lanes, eight slots: one fetch for all of them is the aim."""
    topic = world.topic(small(world))
    if world.broker.process is None:
        yield Result("P9", "bytes that the broker sends", "", "skipped: COOP_KAFKA is not ours to look into", "")
        return
    with world.widened(LANES):
        rows = ours(world, topic, lanes=str(LANES), slots=str(LANES))
        drained(rows)
        broker = psutil.Process(world.broker.process.pid)
        before = broker.io_counters().write_chars
        drained(rows)
    sent, stored = broker.io_counters().write_chars - before, world.log_bytes(topic)
    work = f"bytes that the broker sends for {LANES} lanes on one host"
    yield Result("P9", work, "bytes in the log", _mebibytes(sent), _mebibytes(stored), sent / stored, 1.05)


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
