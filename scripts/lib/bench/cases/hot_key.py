"""One key a hundred times slower than a thousand others: the effect on the others, and on the batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from bench.cases.slots import KEYS, WORK_US, settled
from bench.feed import Feed, backlog, keys
from bench.shapes import Shape, shapes
from bench.table import Result, duration
from bench.waiting_stream import Done, NoBatchError, Story, behind, counted, inside, theirs_behind
from bench.world import World

SLOTS = 8
INSIDE_S, CLOCK_S = 5.0, 10.0
"""The budgets. 10 s is the default. The clock alone needs it, because Spark takes one or two seconds of a batch."""

SLOW, SLOW_US = "k7", 100 * WORK_US
LOAD, FULL_LOAD = 0.7, 0.9
WARM, BATCHES, FOUND_WITHIN, RECOVERING = 6, 30, 10, 11
SLOW_S, OTHERWISE_S, THEIRS_S = 150.0, 60.0, 60.0

Rows = Callable[..., DataFrame]


@dataclass(frozen=True, slots=True)
class Course:
    """A query at a part of the measured capacity of its slots: before, while and after the key is slow."""

    budget_s: float
    load: float
    per_second: float
    before: Sequence[Done]
    slow: Sequence[Done]
    after: Sequence[Done]

    @property
    def found(self) -> int:
        """The first batch over the budget. From then on the planner may know the slow key."""
        return next((i for i, b in enumerate(self.slow) if b.seconds > self.budget_s), 0)

    @property
    def recovered(self) -> Sequence[Done]:
        """The batches after the key recovered."""
        return self.after[: FOUND_WITHIN + 1]

    @property
    def lanes(self) -> str:
        """Numbers of lanes. The slow key should get its own lane, and the lane should merge again."""
        most = max((b.lanes for b in self.slow), default=0)
        before, slow, after = (x[-1].lanes if x else 0 for x in (self.before, self.slow, self.recovered))
        return f"lanes: {before} before, {slow} with the slow key (at most {most}), {after} after"


def hotkey(world: World) -> Iterator[Result]:
    """The work in the read, by key, with a known cost."""
    course = _course(world, inside, INSIDE_S)
    yield from _judged("P7 function in the read", course)
    yield _recovered(course)


def hotkey_clock(world: World) -> Iterator[Result]:
    """The work behind the read, with only the time of whole batches known."""
    course = _course(world, behind, CLOCK_S)
    yield from _judged("P7 mapInArrow", course)
    for shape in shapes(SLOTS):
        yield _theirs(world, shape, course.per_second)


def hotkey_full(world: World) -> Iterator[Result]:
    """The same at 90 %."""
    yield from _judged("P7 mapInArrow", _course(world, behind, CLOCK_S, FULL_LOAD))


def _course(world: World, rows: Rows, budget_s: float, load: float = LOAD) -> Course:
    world.widen(SLOTS)
    options = {"slots": str(SLOTS), "batchTimeBudget": f"{budget_s:g}s"}
    full, topic = world.kafka.create_topic("full"), world.kafka.create_topic("hot")
    backlog(world.broker.address, full, keys(KEYS, WORK_US), 250_000)
    measured = {**options, "batchTimeBudget": f"{INSIDE_S:g}s", "startingOffsets": "earliest"}
    most = settled(world, rows(world, full, **measured), batches=5)
    per_second = load * most
    feed = Feed(world.broker.address, topic, keys(KEYS, WORK_US), per_second)
    with counted(world, rows(world, topic, **options), SLOW) as query, feed.running():
        story = Story(query)
        before = story.watch(WARM, OTHERWISE_S)
        feed.work[SLOW.encode()] = SLOW_US
        slow = story.watch(BATCHES + FOUND_WITHIN // 2, SLOW_S)
        feed.work[SLOW.encode()] = WORK_US
        after = story.watch(RECOVERING, OTHERWISE_S)
        return Course(budget_s, load, per_second, before[WARM // 2 :], slow, after)


def _theirs(world: World, shape: Shape, per_second: float) -> Result:
    """Spark's own source at the same load: the share of healthy records that it processed in the time."""
    topic = world.kafka.create_topic("theirs")
    feed = Feed(world.broker.address, topic, keys(KEYS, WORK_US), per_second)
    with counted(world, theirs_behind(world, topic, shape), SLOW) as query, feed.running():
        story = Story(query)
        before = story.watch(WARM, OTHERWISE_S)
        feed.work[SLOW.encode()] = SLOW_US
        try:
            slow = story.watch(10 * BATCHES, THEIRS_S)
        except NoBatchError:  # each batch takes as long as the arrivals during the last one need
            slow = []
    work = f"{shape.name}, mapInArrow, {per_second:.0f}/s arrive: healthy keys"
    if not slow:
        note = f"no batch ended in {THEIRS_S:g} s; the last before, all keys alike, took {duration(before[-1].seconds)}"
        return Result("P7 theirs", work, "", "0%", "", note=note)
    kept = _kept([before[-1], *slow], per_second)
    note = f"p95 of {len(slow)} batches {duration(_p95(slow))}, the last {duration(slow[-1].seconds)}"
    return Result("P7 theirs", work, "", f"{kept:.0%}", "", note=note)


def _judged(name: str, course: Course) -> Iterator[Result]:
    waiting = f"1 partition, {KEYS:,} keys, 1 ms of waiting, one key 100 ms"
    work = f"{waiting}, {SLOTS} slots at {course.load:.0%}, budget {course.budget_s:g} s"
    first = course.found
    window = course.slow[first : first + BATCHES]
    kept = _kept([course.slow[first - 1] if first else course.before[-1], *window], course.per_second)
    before = f"{len(window)} batches; {course.per_second:.0f}/s arrive; before {_rate(course.before):.0f}/s"
    note = f"{before}; slow key {sum(b.slow for b in window)} records"
    yield Result(name, f"{work}: healthy keys", "arrivals", f"{kept:.0%}", "95 %", 0.95 / kept, 1.0, note)
    p95, limit = _p95(course.slow[course.found + FOUND_WITHIN :]), 1.2 * course.budget_s
    late = [i - course.found for i, b in enumerate(course.slow) if b.seconds > limit]
    note = f"before {duration(_p95(course.before))}; {len(late)} of {len(course.slow)} longer, {late} after the first"
    yield Result(name, "p95 of a batch from the tenth on", "1.2 x budget", *_pair(p95, limit), p95 / limit, 1.0, note)


def _recovered(course: Course) -> Result:
    batches = course.recovered
    note = f"{course.lanes}; its records in each batch: {', '.join(str(b.slow) for b in batches)}"
    last, limit = batches[-1].seconds, course.budget_s
    return Result("P7c", "the key recovers: the tenth batch", "budget", *_pair(last, limit), last / limit, 1.0, note)


def _kept(batches: Sequence[Done], per_second: float) -> float:
    """The part of the healthy records that arrived between the plans of the first and of the last batch.

    A batch reads what had arrived when it was planned, so the first one's records arrived before.
    """
    arrived = per_second * (1 - 1 / KEYS) * (batches[-1].at - batches[0].at)
    return sum(b.healthy for b in batches[1:]) / arrived


def _p95(batches: Sequence[Done]) -> float:
    ordered = sorted(b.seconds for b in batches)
    return ordered[int(0.95 * len(ordered))] if ordered else 0.0


def _rate(batches: Sequence[Done]) -> float:
    return sum(b.healthy + b.slow for b in batches) / (batches[-1].end - batches[0].at)


def _pair(ours: float, limit: float) -> tuple[str, str]:
    return duration(ours), duration(limit)
