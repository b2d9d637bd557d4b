"""A Spark task that writes what it read: late, retried, twice at once, or on after its driver's end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulation.kafka import Record

if TYPE_CHECKING:
    from simulation.world import World


class Task:
    """Writes its records in order; done once any attempt is."""

    def __init__(self, world: "World", name: str, records: Sequence[Record]) -> None:
        self._world, self.records, self.done = world, records, False
        attempts = 2 if world.chance(0.05) else 1  # speculation
        self.actors = [world.scheduler.spawn(name, self._write) for _ in range(attempts)]

    def _write(self) -> None:
        i = 0
        while i < len(self.records):
            self._world.scheduler.turn(self._world.random.choice((0, 0, 5, 40)))
            self._world.sink.write(self.records[i])
            i += 1
            if self._world.chance(0.02):
                i = 0  # it failed, and Spark runs it again
        self.done = True
