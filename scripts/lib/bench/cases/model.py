"""The planner in a model of a query, with simulated keys, costs, slots and clock; mostly only the clock shows costs.

The work is behind the read. 1,000 keys of 1 ms, some of them slow, on eight slots; and a backlog of few keys on four.
Needs neither Kafka nor Spark.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.table import Result
from bench.workload import Workload, few_keys
from bench.world import World
from coordinator.values.key_hash import hash_key

HEALTHY = {b"k%d" % i: 1.0 for i in range(1_000)}
SLOTS, BUDGET_MS, SPARK_MS = 8, 10_000, 200
ARRIVALS = range(1, 13)
MOST_BATCHES, BATCHES, SETTLED = 60, 30, 10
MINUTES, RECORDS = 15, 4_000_000


@dataclass(frozen=True)
class Load:
    """What differs between two lines of the first table."""

    what: str
    slow_ms: dict[bytes, float] = field(default_factory=lambda: {b"k7": 100.0})
    per_second: float = 5_600.0
    budget_ms: int = BUDGET_MS
    spark_ms: float = SPARK_MS
    noisy_ms: float = 0.0
    exact: bool = False

    def workload(self, seed: int) -> Workload:
        """The model of it."""
        given: dict[str, Any] = {"spark_ms": self.spark_ms, "noisy_ms": self.noisy_ms, "exact": self.exact}
        costs = HEALTHY | self.slow_ms
        return Workload(costs, SLOTS, self.per_second, budget_ms=self.budget_ms, seed=seed, **given)


LOADS = (
    Load("cost by key (`function`)", exact=True),
    Load("the clock alone"),
    Load("two slow keys, 62 %", {b"k7": 100.0, b"k300": 100.0}, 5_000.0),
    Load("one key of 1,000 ms", {b"k7": 1_000.0}),
    Load("budget 2 s", budget_ms=2_000),
    Load("1 s of Spark a batch", spark_ms=1_000.0),
    Load("0.5 - 2.5 s of Spark a batch, 60 %", per_second=4_800.0, spark_ms=500.0, noisy_ms=2_000.0),
    Load("1 s of Spark a batch, budget 3 s", budget_ms=3_000, spark_ms=1_000.0),
)
RARE = ((10.0, 500, 5), *((s, rate, MINUTES) for s in (30.0, 10.0, 5.0) for rate in (500, 2_000, 4_000)))
"""Seconds of a slow record, records a second, minutes."""

SPARKS = (300.0, 300.0), (500.0, 1_500.0)
"""For a backlog: Spark's time of a batch, and by how much it varies."""


def model(_: World) -> Iterator[Result]:
    """All three tables."""
    for load in LOADS:
        kept, p95 = zip(*(_thirty(load, seed) for seed in ARRIVALS), strict=True)
        note = f"p95 of a batch {min(p95):.1f} - {max(p95):.1f} x budget"
        yield Result("model", f"{load.what}: healthy keys", "", f"{min(kept):.0%} - {max(kept):.0%}", "", note=note)
    for seconds, rate, minutes in RARE:
        behind, longest, p95 = zip(*(_rare(seconds, rate, minutes, seed) for seed in ARRIVALS[:8]), strict=True)
        work = f"a record of one key takes {seconds:g} s, {rate:,} records/s, {minutes} minutes"
        note = f"longest batch {_spread(longest)}; p95 {_spread(p95)}"
        yield Result("model rare", f"{work}: others are behind", "", _spread(behind), "", note=note)
    for spark_ms, noisy_ms in SPARKS:
        took, unread, longest = zip(*(_backlog(spark_ms, noisy_ms, seed) for seed in ARRIVALS), strict=True)
        work = f"a backlog of 20,000 records, {spark_ms / 1e3:g} - {(spark_ms + noisy_ms) / 1e3:g} s of Spark a batch"
        note = f"{min(unread):.0%} - {max(unread):.0%} of the slow key left; longest work of a batch {_spread(longest)}"
        yield Result("model backlog", f"{work}: until the others are done", "", _spread(took), "", note=note)


def _thirty(load: Load, seed: int) -> tuple[float, float]:
    """The part of healthy arrivals that thirty batches read, and p95 of a batch from the tenth on, in budgets."""
    work, slow = load.workload(seed), {hash_key(key) for key in load.slow_ms}
    while work.run(1)[0].ms <= 0.8 * load.budget_ms and len(work.batches) < MOST_BATCHES:
        pass
    end, lag = work.end, work.lag(lambda h: h not in slow)
    after = sorted(b.ms for b in work.run(BATCHES)[SETTLED:])
    arrived, late = work.end - end, work.lag(lambda h: h not in slow) - lag
    return (arrived - late) / arrived, (after[int(0.95 * len(after))] + load.spark_ms) / load.budget_ms


def _rare(seconds: float, rate: int, minutes: int, seed: int) -> tuple[float, float, float]:
    """Seconds that the others are behind at the end, the longest batch, and p95 of all."""
    work, slow = Workload({**HEALTHY, b"k7": 1_000 * seconds}, SLOTS, rate, seed=seed, records=RECORDS), hash_key(b"k7")
    work.run_for(60_000 * minutes)
    took = sorted(b.ms / 1_000 for b in work.batches)
    return work.lag(lambda h: h != slow) / rate, took[-1], took[int(0.95 * len(took))]


def _backlog(spark_ms: float, noisy_ms: float, seed: int) -> tuple[float, float, float]:
    """Seconds until the others are done, the part of the slow key that is left, the longest batch from the third on."""
    work, slow = few_keys(spark_ms, noisy_ms, seed), hash_key(b"k7")
    began, all_slow = work.clock.now, work.lag(lambda h: h == slow)
    while work.lag(lambda h: h != slow):
        work.run(1)
    took = (work.clock.now - began) / 1_000
    return took, work.lag(lambda h: h == slow) / all_slow, max(b.ms for b in work.batches[2:]) / 1_000


def _spread(values: tuple[float, ...]) -> str:
    return f"{min(values):.0f} - {max(values):.0f} s (median {median(values):.0f} s)"
