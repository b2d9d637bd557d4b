"""Time to read a topic into a sink that does nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from statistics import median
from types import MappingProxyType

from bench.loader import Load
from bench.runner import Sample, alternate, seconds, timed
from bench.sources import ONE_LANE, TUNED, drained, named, ours, theirs
from bench.table import Result, duration, result
from bench.world import World

LANES = (1, 2, 4, 8, 16)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def small(world: World) -> Load:
    """Four million records of 100 bytes."""
    return Load(1_000_000 if world.quick else 4_000_000)


def p1(world: World) -> Iterator[Result]:
    """One partition: in one lane, which decodes beside the JVM's work, and as for a user who sets nothing."""
    yield _compared(world, "P1", small(world), 1.0, ours_too=ONE_LANE)
    yield _compared(world, "P1", small(world), 0.85)


def p2(world: World) -> Iterator[Result]:
    """Eight partitions."""
    yield _compared(world, "P2", replace(small(world), partitions=8), 0.7)


def p3(world: World) -> Iterator[Result]:
    """Larger records, in the same two ways."""
    load = Load(150_000 if world.quick else 600_000, 1_000)
    yield _compared(world, "P3", load, 1.0, ours_too=ONE_LANE)
    yield _compared(world, "P3", load, 1.0)


def codec(world: World) -> Iterator[Result]:
    """One partition in every codec, and in the small batches that Java's producer makes by default."""
    for name in CODECS:
        yield _compared(world, f"codec {name}", replace(small(world), codec=name), None, ours_too=ONE_LANE)
    yield _compared(world, "codec 16k", replace(small(world), batch_bytes=16_384), None, ours_too=ONE_LANE)


def lanes(world: World) -> Iterator[Result]:
    """One partition cut in more and more lanes, all at once: the CPU of the Python workers for each lane."""
    with world.widened(max(LANES)):
        yield from _lanes(world)


def _lanes(world: World) -> Iterator[Result]:
    first = _cpu_of_lanes(world, 1)
    for count in LANES:
        cpu = first if count == 1 else _cpu_of_lanes(world, count)
        yield _of_lanes(f"lanes {count}", f"{count} lanes of one partition", cpu, first, 2.0 if count == 8 else None)
    apart = _cpu_of_lanes(world, 8, sharedCache="0")
    yield _of_lanes("lanes 8 apart", "8 lanes, each of which fetches for itself", apart, first, None)


def _cpu_of_lanes(world: World, count: int, **options: str) -> tuple[Sample, ...]:
    rows = ours(world, world.topic(small(world)), lanes=str(count), slots=str(count), **options)
    drained(rows)
    return tuple(timed(partial(drained, rows), world.python_cpu) for _ in range(world.times))


def _of_lanes(name: str, work: str, some: tuple[Sample, ...], first: tuple[Sample, ...], aim: float | None) -> Result:
    cpu, of_first = (median(each.cpu for each in samples) for samples in (some, first))
    wall = f"took {duration(seconds(some))}"
    work += ", CPU of the Python workers"
    return Result(name, work, "1 lane", duration(cpu), duration(of_first), cpu / of_first, aim, wall)


def _compared(
    world: World,
    name: str,
    load: Load,
    aim: float | None,
    *,
    ours_too: Mapping[str, str] = MappingProxyType({}),
) -> Result:
    topic = world.topic(load)
    mine, other = ours(world, topic, **ours_too), theirs(world, topic, TUNED)
    pair = alternate(lambda: drained(mine), lambda: drained(other), times=world.times, cpu=world.cpu)
    partitions = "1 partition" if load.partitions == 1 else f"{load.partitions} partitions"
    work = f"{partitions}, {load.records:,} x {load.size} B, {load.codec}"
    work += f", {load.batch_bytes // 1024} KiB batches" if load.batch_bytes < 65_536 else ""
    work += f", {named(ours_too)}"
    return result(name, work, "tuned", pair, aim)
