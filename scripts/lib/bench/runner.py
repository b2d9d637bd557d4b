"""Runs two ways to do the same work in turns, and compares them.

Pure except for the clock; knows nothing of Spark or Kafka.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

Work = Callable[[], object]
Cpu = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: wall-clock seconds, and CPU seconds of every process except the servers."""

    seconds: float
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Runs of two ways, the same number of each, in the order of their turns."""

    ours: tuple[Sample, ...]
    theirs: tuple[Sample, ...]

    @property
    def ratio(self) -> float:
        """Median of our seconds / median of theirs: below 1 ours is faster."""
        return seconds(self.ours) / seconds(self.theirs)

    @property
    def cpu_ratio(self) -> float | None:
        """The same for CPU seconds, which a busy machine disturbs less; None where they were not measured."""
        mine, other = (median(each.cpu for each in side) for side in (self.ours, self.theirs))
        return mine / other if mine and other else None

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest ratio of two neighbouring runs."""
        ratios = [a.seconds / b.seconds for a, b in zip(self.ours, self.theirs, strict=True)]
        return min(ratios), max(ratios)


def seconds(samples: Sequence[Sample]) -> float:
    """The median."""
    return median(each.seconds for each in samples)


def timed(work: Work, cpu: Cpu) -> Sample:
    """One run of `work`; `cpu` returns the CPU seconds used so far."""
    before, began = cpu(), perf_counter()
    work()
    return Sample(perf_counter() - began, cpu() - before)


def alternate(ours: Work, theirs: Work, *, times: int, cpu: Cpu, warm: int = 1) -> Pair:
    """Both `warm` times unmeasured, then `times` times in turns. Each turn starts with the other way."""
    for _ in range(warm):
        ours()
        theirs()
    of_us: list[Sample] = []
    of_them: list[Sample] = []
    for turn in range(times):
        for work, samples in ((ours, of_us), (theirs, of_them))[:: -1 if turn % 2 else 1]:
            samples.append(timed(work, cpu))
    return Pair(tuple(of_us), tuple(of_them))
