"""`ordering=none` beside lanes: bytes that the broker sends to three hosts, and a key with most of the records."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from bench.cases.throughput import small
from bench.feed import backlog, keys
from bench.hosts import members
from bench.loader import produce
from bench.table import Result, duration
from bench.waiting_stream import behind
from bench.world import World

SLOTS, KEYS, WORK_US = 8, 1_000, 1_000
HOT = 0.6  # of all records have one key
RECORDS = 60_000

NONE, KEY = {"ordering": "none"}, {"ordering": "key"}
HOSTS = 3


@dataclass(frozen=True, slots=True)
class Sent:
    """A log that all hosts read to its end together."""

    ratio: float  # bytes that the broker sent / bytes of the log
    rows: int
    seconds: float  # of reading


def none_bytes(world: World) -> Iterator[Result]:
    """The broker's bytes for three hosts that share one partition, without order and in lanes."""
    none, key = _sent(world, NONE), _sent(world, KEY)
    work = f"bytes that the broker sends of {none.rows:,} records of one partition to {HOSTS} hosts, `ordering=none`"
    note = f"{none.rows / none.seconds:,.0f} records/s; lanes {key.rows / key.seconds:,.0f}"
    yield Result("none bytes", work, "bytes in the log", f"{none.ratio:.2f}", "1", none.ratio, 1.05, note)
    yield Result("none bytes", "the same with lanes", "bytes in the log", f"{key.ratio:.2f}", "1", key.ratio)


def none_hot_key(world: World) -> Iterator[Result]:
    """One key has most of the records, and each record waits: the time to the end of the log."""
    world.widen(SLOTS)
    topic, work = world.kafka.create_topic("hot"), keys(KEYS, WORK_US, hot=WORK_US)
    weights = [HOT if key == b"hot" else (1 - HOT) / KEYS for key in work]
    backlog(world.broker.address, topic, work, RECORDS, weights)
    none, key = _drained_s(world, topic, NONE), _drained_s(world, topic, KEY)
    what = f"one key has {HOT:.0%} of {RECORDS:,} records of {WORK_US / 1_000:g} ms, {SLOTS} slots, `ordering=none`"
    note = f"{RECORDS / none:,.0f} records/s; in order {RECORDS / key:,.0f}"
    yield Result("none hotkey", what, "`ordering=key`", duration(none), duration(key), none / key, 0.5, note)


def _drained_s(world: World, topic: str, ordering: dict[str, str]) -> float:
    rows = behind(world, topic, slots=str(SLOTS), startingOffsets="earliest", **ordering)
    writer = rows.writeStream.format("noop").option("checkpointLocation", world.checkpoint())
    began = time.monotonic()
    writer.trigger(availableNow=True).start().awaitTermination()
    return time.monotonic() - began


def _sent(world: World, ordering: dict[str, str]) -> Sent:
    """Members in this process, each of which reads its own tasks, in turns. No host has the cache of another."""
    load = small(world)
    topic = world.kafka.create_topic("hosts")
    if world.broker.process is None:
        raise RuntimeError("COOP_KAFKA is not ours to look into")
    broker = psutil.Process(world.broker.process.pid)
    with members(world, topic, HOSTS, **ordering) as hosts:
        for _ in range(HOSTS):  # all join, and share the ranges, before there are records
            for each in hosts:
                each.turn()
        produce(world.broker.address, topic, load)
        before = broker.io_counters().write_chars
        while sum(each.rows for each in hosts) < load.records:
            for each in hosts:
                each.turn()
        sent = broker.io_counters().write_chars - before
        return Sent(sent / world.log_bytes(topic), sum(m.rows for m in hosts), sum(m.seconds for m in hosts))
