"""How throughput grows with slots, for work that waits or needs a core: one partition, a thousand even keys."""

from collections.abc import Callable, Iterator
from functools import partial

from pyspark.sql import DataFrame

from bench.feed import backlog, keys
from bench.functions import WAITED, wait_all
from bench.runner import timed
from bench.shapes import shapes
from bench.sources import drained, theirs
from bench.table import Result
from bench.waiting_stream import Story, behind, counted, inside, spinning_behind, spinning_inside
from bench.world import World

WAITING, BUSY = (1, 2, 4, 8), (1, 2)
KEYS, WORK_US = 1_000, 1_000
BATCHES, MOST_S = 12, 240.0
BUDGET, QUICK_BUDGET = "10s", "3s"
"""The default; and a budget that is too short where Spark itself takes a second or two of a batch."""

RECORDS = 16_000  # for Spark's own source, once

Rows = Callable[..., DataFrame]


def waiting_inside(world: World) -> Iterator[Result]:
    """Ours as a stream with a backlog, after the planner has settled: work that waits, in the read."""
    yield from _scaling(world, "P6 function in the read", inside, WAITING)


def waiting_behind(world: World) -> Iterator[Result]:
    """The same behind the read; Spark's own source as a batch."""
    yield from _scaling(world, "P6 mapInArrow", behind, WAITING)
    yield from _theirs(world)


def busy(world: World) -> Iterator[Result]:
    """Work that needs a core, in the read and behind it."""
    yield from _scaling(world, "P6 CPU", spinning_inside, BUSY)
    yield from _scaling(world, "P6 CPU mapInArrow", spinning_behind, BUSY)


def _scaling(world: World, name: str, rows: Rows, slots: tuple[int, ...]) -> Iterator[Result]:
    world.widen(max(WAITING))
    topic = world.kafka.create_topic("slots")
    backlog(world.broker.address, topic, keys(KEYS, WORK_US), 250_000 if world.quick else 1_000_000)
    budget, one = QUICK_BUDGET if world.quick else BUDGET, 0.0
    for count in slots:
        rate = settled(world, rows(world, topic, **_options(count, budget)))
        one = one or rate
        wanted = 0.9 * count * one
        aim = 1.0 if count > 1 else None
        work = f"{count} slots, budget {budget}, records a second"
        yield Result(name, work, "0.9 x slots x one", f"{rate:.0f}", f"{wanted:.0f}", wanted / rate, aim)


def _options(slots: int, budget: str) -> dict[str, str]:
    return {"slots": str(slots), "batchTimeBudget": budget, "startingOffsets": "earliest"}


def settled(world: World, rows: DataFrame, batches: int = BATCHES) -> float:
    """Records a second of the second half of the batches."""
    with counted(world, rows) as query:
        seen = Story(query).watch(batches, MOST_S)
    late = seen[len(seen) // 2 :]
    return sum(b.healthy for b in late) / (late[-1].end - late[0].at)


def _theirs(world: World) -> Iterator[Result]:
    topic = world.kafka.create_topic("plain")
    backlog(world.broker.address, topic, keys(KEYS, WORK_US), RECORDS)
    most = max(WAITING)
    for shape in shapes(most):
        rows = shape.of(theirs(world, topic, shape.options)).select("key", "value").mapInArrow(wait_all, WAITED)
        took = timed(partial(drained, rows), world.cpu).seconds
        work = f"{shape.name}, {most} slots, mapInArrow"
        yield Result("P6 theirs", work, "", f"{RECORDS / took:.0f}", "")
