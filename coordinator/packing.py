"""Which slices share a task: the longest first, each onto the task with the least to do (spec 4.3).

Pure and deterministic, from the slices alone, so that a replay packs the same batch the same way.
Knows nothing of Spark; a task here is a tuple of slices.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from coordinator.slices import Slice, weight

Task = tuple[Slice, ...]


def pack(slices: Sequence[Slice], *, tasks: int, max_weight: float | None = None) -> tuple[Task, ...]:
    """The tasks that read `slices`, the heaviest task first, none empty.

    About `tasks` of them; more where `max_weight` says that a task may not be heavier, fewer where
    there are not as many slices. Slices that share a hash of a partition are in one task; in every
    task the slices of a partition are in offset order (spec 2, input partition). A task is heavier
    than `max_weight` only if it is a single slice, or slices that must not be parted.
    """
    bundles = sorted(_bundles(slices), key=lambda bundle: (-weight(bundle), bundle))
    loads = _gathered(_longest_first(bundles, tasks, max_weight))
    packed = (tuple(sorted(chain.from_iterable(load), key=_offset_order)) for load in loads if load)
    return tuple(sorted(packed, key=lambda task: (-weight(task), task)))


def _bundles(slices: Iterable[Slice]) -> Iterator[Task]:
    """What must stay together: slices of one partition whose hashes overlap, directly or through others."""
    for _, of_partition in groupby(sorted(slices), key=lambda s: s.topic_partition):
        bundle: list[Slice] = []
        highest = -1
        for s in of_partition:
            if bundle and s.hashes.lo > highest:
                yield tuple(bundle)
                bundle = []
            bundle.append(s)
            highest = max(highest, s.hashes.hi)
        yield tuple(bundle)


def _longest_first(bundles: Iterable[Task], tasks: int, max_weight: float | None) -> list[list[Task]]:
    loads: list[list[Task]] = [[] for _ in range(tasks)]
    totals = [0.0] * tasks
    for bundle in bundles:
        least = min(range(len(totals)), key=totals.__getitem__)
        if max_weight is not None and totals[least] and totals[least] + weight(bundle) > max_weight:
            least = len(totals)
            loads.append([])
            totals.append(0.0)
        loads[least].append(bundle)
        totals[least] += weight(bundle)
    return loads


def _gathered(loads: list[list[Task]]) -> list[list[Task]]:
    """The same loads, with neighbours together: bundles of equal weight change places at no cost.

    A partition that fewer tasks read is fetched fewer times.
    """
    pools: defaultdict[float, list[Task]] = defaultdict(list)
    for bundle in chain.from_iterable(loads):
        pools[weight(bundle)].append(bundle)
    handed_out = {w: iter(sorted(pool)) for w, pool in pools.items()}
    return [[next(handed_out[weight(bundle)]) for bundle in load] for load in loads]


def _offset_order(s: Slice) -> tuple[str, int, int, int]:
    return s.topic, s.partition, s.offsets.start, s.hashes.lo
