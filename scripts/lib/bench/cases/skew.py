"""Keys of very different frequency and cost: how evenly the planner spreads them over the slots."""

import random
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from bench.feed import Feed, Work
from bench.functions import WORKED, wait_and_return_time
from bench.shapes import Shape, shapes
from bench.streaming import our_stream, their_stream
from bench.table import Result
from bench.world import World
from spark_coop_source import map_keys

SLOTS, KEYS, ZIPF = 8, 10_000, 1.1
COSTS_US = (1_000, 2_000, 4_000, 8_000, 16_000)  # each cost equally frequent, independent of key frequency
COMMONEST_US = 4_000  # so that the most frequent key, 15 % of all records, fills three quarters of exactly one slot
LOAD = 0.6
BATCHES, SETTLED = 15, 5
THEIR_BATCHES, EVERY = 6, "5 seconds"
PATIENCE_S = 200.0
_SEED, _POLL_S = 11, 0.2


@dataclass
class Shares:
    """The work of each slot in each batch, by the nominal work of its records; a sink for `foreachBatch`."""

    ratios: list[float] = field(default_factory=list)

    def see(self, rows: DataFrame, _batch: int) -> None:
        """Compare the fullest slot of a batch with the best possible: the mean, or the heaviest key."""
        of_slot: defaultdict[int, int] = defaultdict(int)
        of_key: defaultdict[bytes, int] = defaultdict(int)
        for slot, key, us in rows.select(f.spark_partition_id(), "key", "us").collect():
            of_slot[slot] += us
            of_key[bytes(key)] += us
        if of_slot:
            best = max(sum(of_slot.values()) / SLOTS, *of_key.values())
            self.ratios.append(max(of_slot.values()) / best)


def skew(world: World) -> Iterator[Result]:
    """Zipf's law over 10,000 keys, costs from 1 to 16 ms: a load of 60 % of eight slots."""
    world.widen(SLOTS)
    work, weights = _work(), [1 / (rank + 1) ** ZIPF for rank in range(KEYS)]
    mean_us = sum(w * us for w, us in zip(weights, work.values(), strict=True)) / sum(weights)
    topic = world.kafka.create_topic("skew")
    given = our_stream(world, topic, **map_keys(wait_and_return_time, WORKED), slots=str(SLOTS))
    rows = world.spark.readStream.format("coop-kafka").options(**given).load()
    per_second = LOAD * SLOTS * 1_000_000 / mean_us
    ratios = _watched(world, rows, Feed(world.broker.address, topic, work, per_second, weights), BATCHES)
    late = ratios[SETTLED:]
    first = ", ".join(f"{r:.2f}" for r in ratios[:SETTLED])
    note = f"median of {len(late)} batches, {min(late):.2f} - {max(late):.2f}; the first {SETTLED}: {first}"
    what = f"Zipf {ZIPF} over {KEYS:,} keys x 1-16 ms, {SLOTS} slots at 60 %: fullest slot"
    yield Result("skew", what, "best possible", f"{median(late):.2f}", "1", median(late), 1.15, note)
    for shape in shapes(SLOTS):
        yield _theirs(world, shape, work, per_second, weights)


def _theirs(world: World, shape: Shape, work: Work, per_second: float, weights: list[float]) -> Result:
    """Spark's own source, a batch every five seconds: the work of each slot. Nothing waits, as some cannot keep up."""
    topic = world.kafka.create_topic("skew")
    source = world.spark.readStream.format("kafka").options(**their_stream(world, topic, shape.options)).load()
    rows = shape.of(source).select("key", f.col("value").cast("string").cast("long").alias("us"))
    feed = Feed(world.broker.address, topic, work, per_second, weights)
    ratios = _watched(world, rows, feed, THEIR_BATCHES, processingTime=EVERY)[1:]
    note = f"median of {len(ratios)} batches, {min(ratios):.2f} - {max(ratios):.2f}"
    return Result(
        "skew theirs", f"{shape.name}: fullest slot", "best possible", f"{median(ratios):.2f}", "1", note=note
    )


def _watched(world: World, rows: DataFrame, feed: Feed, batches: int, **trigger: str) -> list[float]:
    """The ratios of this many batches."""
    shares, checkpoint = Shares(), world.folder / f"skew-{uuid4().hex[:8]}"
    writer = rows.writeStream.foreachBatch(shares.see).option("checkpointLocation", str(checkpoint))
    query = (writer.trigger(**trigger) if trigger else writer).start()
    try:
        with feed.running():
            deadline = time.monotonic() + PATIENCE_S
            while len(shares.ratios) < batches and query.isActive and time.monotonic() < deadline:
                time.sleep(_POLL_S)
    finally:
        query.stop()
    if len(shares.ratios) <= SETTLED:
        raise RuntimeError(f"{len(shares.ratios)} batches in {PATIENCE_S:g} s: {query.exception()}")
    return shares.ratios


def _work() -> Work:
    chance = random.Random(_SEED)  # noqa: S311  not for secrets
    costs = {b"k%d" % rank: chance.choice(COSTS_US) for rank in range(KEYS)}
    return {**costs, b"k0": COMMONEST_US}
