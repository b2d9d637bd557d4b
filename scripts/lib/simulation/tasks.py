"""A Spark task that works on its slices: late, retried, twice at once, or on after its driver's end; it may hang.

It reports the costs of the slices to its driver, as executors do. Some reports are lost.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from coordinator.member.service import Service
from coordinator.progress.slices import Slice
from coordinator.telemetry import KeyCost, RecordAt, SliceCost
from simulation.kafka import Record
from simulation.wishes import Wishes
from simulation.work import Work, Worker
from simulation.world import World

_LOST = 0.03


class Owner(Worker, Protocol):
    """The driver of a task."""

    name: str
    wishes: Wishes
    service: Service


class Task:
    """Writes its records slice by slice, in order; done once any attempt is."""

    def __init__(self, world: World, work: Work, driver: Owner, slices: Sequence[tuple[Slice, list[Record]]]) -> None:
        self._work = work
        self._world, self._driver, self._slices, self.done = world, driver, slices, False
        self.records = [r for _, records in slices for r in records]
        attempts = 2 if world.chance(0.05) else 1  # speculation
        self.actors = [world.spawn_writer(f"{driver.name}'s task", self._write) for _ in range(attempts)]

    def _write(self) -> None:
        while not all(self._work_on(s, records) for s, records in self._slices):
            pass  # it failed, and Spark runs it again
        self._world.sink.end_task(self.records)
        self.done = True

    def _work_on(self, s: Slice, records: Sequence[Record]) -> bool:
        """One slice to its end; False if the task failed in it."""
        world, keys = self._world, Counter[int]()
        self._report(SliceCost.nothing(s))
        by_key = self._driver.wishes.in_read and world.chance(0.5)  # the function gets single records
        for record in records:
            if by_key:
                self._report(replace(SliceCost.nothing(s), at=RecordAt(record.hash, record.offset)))
            keys[record.hash] += self._work.do(self._driver, record)
            world.sink.write(record)
            if world.chance(0.02):
                return False
        self._report(self._cost(s, Counter(record.hash for record in records), keys))
        return True

    def _cost(self, s: Slice, rows: Counter[int], keys: Counter[int]) -> SliceCost:
        """Exact where the function runs in `read`; else only a report that the slice was read."""
        exact = self._driver.wishes.in_read
        costs = tuple(KeyCost(h, float(ms), rows[h]) for h, ms in keys.most_common(8)) if exact else ()
        return SliceCost(
            s.topic_partition,
            s.hashes,
            s.offsets,
            rows.total(),
            0,
            0.0,
            float(sum(keys.values()) * exact),
            costs,
            finished=True,
        )

    def _report(self, cost: SliceCost) -> None:
        if not self._world.chance(_LOST):
            self._driver.service.receive([cost])
