"""Whether memory stays bounded for any topic: the largest Python process under Spark during the read."""

import threading
from collections.abc import Iterator
from typing import Self

import psutil

from bench.loader import Load
from bench.streaming import drained_stream, our_stream
from bench.table import Result
from bench.world import World

_EVERY_S = 0.02


def memory(world: World) -> Iterator[Result]:
    """Ten times the records, and records of 10 MB. They are streams, so that a reader process is measured too."""
    few, many = (1_000_000, 4_000_000) if world.quick else (1_000_000, 10_000_000)
    base = _peak(world, Load(few))
    yield _result(f"{many:,} x 100 B", _peak(world, Load(many)), f"{few:,} x 100 B", base)
    large = Load(20 if world.quick else 100, 10_000_000, codec="none")
    yield _result(f"{large.records} x 10 MB", _peak(world, large), f"{few:,} x 100 B", base)


def _result(work: str, peak: int, against: str, base: int) -> Result:
    text = "largest Python process (worker or reader) while a stream reads "
    return Result("memory", text + work, against, _mebibytes(peak), _mebibytes(base), peak / base)


def _peak(world: World, load: Load) -> int:
    options = our_stream(world, world.topic(load), startingOffsets="earliest")
    with _Sampler(world.jvm) as sampler:
        drained_stream(world, "coop-kafka", options)
    return sampler.peak


class _Sampler:
    """Polls the resident memory of all Python processes."""

    def __init__(self, jvm: psutil.Process) -> None:
        self.peak = 0
        self._jvm = jvm
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(_EVERY_S):
            for each in self._jvm.children(recursive=True):
                try:
                    if each.name().startswith("python"):  # a fork of the JVM has its size, until it runs Python
                        self.peak = max(self.peak, each.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
