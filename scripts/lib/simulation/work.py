"""The user's function: quick, slow for some keys, and endless for some records."""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from simulation.kafka import KEYS, Record
from simulation.world import World

SLOW_MS = 400
_LOOK_MS, _ALWAYS = 1_000, 1_000_000


class Worker(Protocol):
    """The driver whose task works on a record."""

    hangs_since: int | None  # the time when its batch met a record that never ends

    @property
    def running(self) -> bool:
        """Whether it has not ended."""

    def trace(self, what: object) -> None:
        """One line of the story."""


class Work:
    """The slow keys, the endless records, and the drivers that hung on them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.slow: set[bytes | None] = set()
        self.calm = False  # the quiet end: only records take time
        self.endless: set[Record] = set()
        self.held_up: Counter[Record] = Counter()  # drivers, since this was cleared
        self.failing: dict[Record, int] = {}  # the number of calls that will fail

    def turn_slow(self) -> None:
        """A key's records become slow, or quick again."""
        key = self._world.random.choice(KEYS)
        self.slow ^= {key}
        self._world.trace(f"key {KEYS.index(key)} is {'slow' if key in self.slow else 'quick again'}")

    def turn_endless(self) -> None:
        """Make an unread record endless."""
        kafka, delivered = self._world.kafka, self._world.sink.delivered
        unread = [r for log in kafka.records.values() for r in log if r not in delivered]
        if unread:
            record = self._world.random.choice(unread)
            self.endless.add(record)
            self._world.trace(f"{record} will never end")

    def turn_failing(self) -> None:
        """The function will fail on a record that is not delivered: some times, or until it is healed."""
        kafka, delivered = self._world.kafka, self._world.sink.delivered
        unread = [r for log in kafka.records.values() for r in log if r not in delivered]
        if unread:
            record = self._world.random.choice(unread)
            self.failing[record] = self._world.random.choice((1, 2, 4, _ALWAYS))
            self._world.trace(f"{record} will fail {self.failing[record]} times")

    def fails(self, record: Record) -> bool:
        """Whether this call fails."""
        left = self.failing.get(record, 0)
        if left:
            self.failing[record] = left - 1
        return left > 0

    def do(self, driver: Worker, record: Record, alive: Callable[[], None]) -> int:
        """Work on a record of this driver's batch, for its full time. Returns the expected time in ms.

        `alive`: the task's sign of life, each second while the record does not end.
        """
        ms = SLOW_MS if record.key in self.slow else self._world.random.choice((0, 0, 5, 40))
        self._world.scheduler.turn(ms)
        if record in self.endless:
            self._hang(driver, record, alive)
        return ms

    def _hang(self, driver: Worker, record: Record, alive: Callable[[], None]) -> None:
        driver.trace(f"HANGS at {record}")
        self._world.server.seen["hung"] += 1
        if driver.running and driver.hangs_since is None:
            self.held_up[record] += 1
            driver.hangs_since = self._world.scheduler.now_ms
        while record in self.endless:
            self._world.scheduler.turn(_LOOK_MS)
            alive()
