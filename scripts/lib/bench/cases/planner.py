"""The CPU time to plan a batch of 10,000 lanes by cost: 1,000 partitions, ten segments each."""

import time
from collections.abc import Iterator
from statistics import median

from bench.table import Result, duration
from bench.world import World
from coordinator.plan.cost.quotas import Budget
from coordinator.plan.cost.steering import Steering
from coordinator.plan.planning import Cutting, plan, with_positions
from coordinator.progress.ownership import Owned
from coordinator.progress.segments import Progress, Segment
from coordinator.values.clock import BootClock
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition

PARTITIONS, SEGMENTS, SLOTS = 1_000, 10, 8
LIMIT_S = 0.2


def plan_time(world: World) -> Iterator[Result]:
    """CPU of quotas and plan alone; without Kafka, Redis and Spark."""
    tps = [TopicPartition("t", i) for i in range(PARTITIONS)]
    owned, ends = {tp: (Owned(WHOLE, "e.1"),) for tp in tps}, dict.fromkeys(tps, 1_000)
    steering = Steering(BootClock(), Cutting(SLOTS), Budget(10_000, SLOTS))
    took = []
    for turn in range(world.times):
        at = {tp: Progress(tuple(Segment(h, 100 + i + turn) for i, h in enumerate(cuts(SEGMENTS)))) for tp in tps}
        began = time.process_time()
        granted = steering.grant(with_positions(owned, at), ends)
        plan(granted.work, ends, granted.cutting)
        took.append(time.process_time() - began)
    seconds = median(took)
    work = f"plan {PARTITIONS:,} partitions x {SEGMENTS} lanes: CPU"
    yield Result("P10", work, "", duration(seconds), duration(LIMIT_S), seconds / LIMIT_S, 1.0)
