"""One key in a hundred fails for five minutes: the rate of the others, beside the same work without a failure."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import redis
from pyspark.sql.streaming.query import StreamingQuery

from bench.feed import backlog, keys
from bench.functions import WAITED, fail_or_wait, wait_as_coroutine
from bench.streaming import our_stream
from bench.table import Result, duration
from bench.waiting_stream import Done, Story, counted
from bench.world import World
from coordinator.redis.keys import GroupKeys
from spark_coop_source import OnError, map_keys

KEYS, EACH, WAIT_US, AT_ONCE = 10_000, 100, 10_000, 16
"""Keys, one of how many fails, the wait of a record, and how many keys of a task wait at once."""
WATCHED_S, RECORDS, MANY = 300.0, 1_200_000, 10_000
KEEP, MOST_BYTES, MOST_TRIGGER = 0.98, 1_000, 1.5


@dataclass(frozen=True, slots=True)
class _Seen:
    """One query: its batches behind the first one, the median cost of a trigger, and Redis' bytes of a failing key."""

    batches: tuple[Done, ...]
    trigger_s: float
    bytes_of_a_key: float

    @property
    def rate(self) -> float:
        """Records of the other keys in a second."""
        first, *rest = self.batches
        return sum(b.healthy for b in rest) / (rest[-1].end - first.end)

    @property
    def longest_s(self) -> float:
        """The longest batch."""
        return max(b.seconds for b in self.batches[1:])


def failing(world: World) -> Iterator[Result]:
    """Back-offs of one to ten seconds, so that each failing key is tried again all the time."""
    topic = world.kafka.create_topic("failing")
    backlog(world.broker.address, topic, keys(KEYS, WAIT_US), RECORDS)
    theirs, ours = _watched(world, topic, wait_as_coroutine), _watched(world, topic, fail_or_wait)
    work = f"{KEYS // EACH} of {KEYS:,} keys fail for {_seconds(world):.0f} s, {WAIT_US // 1000} ms of waiting a record"
    against = "no key fails"
    rates = f"{ours.rate:,.0f}/s", f"{theirs.rate:,.0f}/s"
    yield Result("failing", f"{work}: rate of the others", against, *rates, theirs.rate / ours.rate, 1 / KEEP)
    longest = duration(ours.longest_s), duration(theirs.longest_s)
    yield Result("failing", "the longest batch", against, *longest, ours.longest_s / theirs.longest_s)
    trigger = duration(ours.trigger_s), duration(theirs.trigger_s)
    yield Result(
        "failing", "a trigger without its tasks", against, *trigger, ours.trigger_s / theirs.trigger_s, MOST_TRIGGER
    )
    of_a_key, most = f"{ours.bytes_of_a_key:.0f} B", f"{MOST_BYTES:,} B"
    yield Result("failing", "Redis, a failing key", "", of_a_key, most, ours.bytes_of_a_key / MOST_BYTES, 1.0)


def _seconds(world: World) -> float:
    return WATCHED_S / 10 if world.quick else WATCHED_S


def _watched(world: World, topic: str, function: Callable[..., Any]) -> _Seen:
    how = OnError(attempts=1_000, backoff="1s", backoff_max="10s", then="park")
    form = map_keys(function, WAITED, concurrency=AT_ONCE, on_error=how)
    options = our_stream(world, topic, startingOffsets="earliest", **form)
    rows = world.spark.readStream.format("coop-kafka").options(**options).load()
    with counted(world, rows, ",".join(f"k{n}" for n in range(0, KEYS, EACH))) as query:
        story = Story(query)
        story.watch(1, 60)
        costs, until = dict[int, float](), time.monotonic() + _seconds(world)
        while time.monotonic() < until:
            story.watch(1, 20)
            costs |= _trigger_costs(query)
        return _Seen(tuple(story.batches), median(costs.values()), _bytes_of_a_key(world, options["group"]))


def _trigger_costs(query: StreamingQuery) -> Mapping[int, float]:
    """Seconds of each of the last triggers without those of its tasks, by batch."""
    return {
        p["batchId"]: (p["durationMs"]["triggerExecution"] - p["durationMs"]["addBatch"]) / 1000
        for p in query.recentProgress
        if p["numInputRows"]
    }


def _bytes_of_a_key(world: World, group: str) -> float:
    failing_keys = GroupKeys(group).failing
    with redis.Redis.from_url(world.redis.address) as client:
        count = int(client.hlen(failing_keys))
        return int(client.memory_usage(failing_keys, samples=0) or 0) / count if count else 0.0
