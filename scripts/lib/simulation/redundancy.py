"""Schedules with two replica sets: the real session of the source chooses the set of each driver, and moves it.

    orders    |=== d0 ===|                |=== d2 ===     d0 dies: its set has no member
    orders@2  |=== d1 ===============================
              |=== d2 ===| settles, leaves                two looks later one of two members goes there

Each set is a group of its own over the same logs: every promise holds in each. Both are in one Redis.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from coordinator.assignment.replica_sets import names
from coordinator.assignment.settings import GroupSettings
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import TextRedis
from simulation.checkpoint import Checkpoint
from simulation.driver import Driver
from simulation.redis_server import Line
from simulation.wishes import Wishes
from simulation.work import Work
from simulation.world import World
from spark_coop_source.driver.reader_process import GroupSession
from spark_coop_source.driver.redundant_session import RedundantSession

_FOR_EVER_MS = 1_000_000_000


def spread(world: World) -> None:
    """Two replica sets, if the schedule has them."""
    if world.redundant:
        world.sets = (world, *map(world.beside, names(world.group, 2)[1:]))
        for each in world.sets:
            each.sets = world.sets


class _Plain:
    """The plain commands of a server that has the virtual time. A key of its own lives as long in that time."""

    def __init__(self, plain: TextRedis, now_ms: int, ends: dict[str, int]) -> None:
        self._plain, self._now_ms, self._ends = plain, now_ms, ends

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def time(self) -> tuple[int, int]:
        return self._now_ms // 1_000, self._now_ms % 1_000 * 1_000

    def set(self, key: str, value: str, *, nx: bool, px: int) -> bool | None:
        held = nx and self._now_ms < self._ends.get(key, 0)
        if held:
            return None
        self._ends[key] = self._now_ms + px
        return self._plain.set(key, value, nx=False, px=_FOR_EVER_MS)


class _TimedLine(Line):
    """A connection over which a query looks at all sets."""

    @contextmanager
    def reading(self) -> Iterator[TextRedis]:
        with super().reading() as plain:
            yield cast(TextRedis, _Plain(plain, self._server.now_ms, self._server.held))


class _Session:
    """The session of one set: the part of `GroupSession` that the simulation has."""

    def __init__(self, driver: "RedundantDriver", world: World) -> None:
        self._driver, self._world = driver, world
        driver.serve(world)
        self.set_targets, self.next_offset = driver.service.set_targets, driver.service.next_offset
        self.tasks, self.settle = driver.service.tasks, driver.service.settle

    @property
    def query(self) -> Service:
        """The member of the set."""
        return self._driver.service

    def initial(self) -> StreamOffset:
        """First positions exist when it returns."""
        driver, before = self._driver, self._driver.creating
        driver.open()
        driver.creating = True
        driver.service.first_positions()
        driver.creating = before
        return StreamOffset(self._world.group)

    def end(self) -> None:
        """Leave the set."""
        self._driver.leave()


class _Calls:
    """The calls of Spark on the session of the source."""

    def __init__(self, session: RedundantSession) -> None:
        self.set_targets, self.next_offset, self.tasks = session.set_targets, session.next_offset, session.tasks
        self._session = session

    def first_positions(self) -> None:
        """What Spark asks for by `initialOffset`."""
        self._session.initial()


class RedundantDriver(Driver):
    """A driver with `redundancy=2`."""

    def __init__(
        self, world: World, work: Work, name: str, checkpoint: Checkpoint, wishes: Wishes, settings: GroupSettings
    ) -> None:
        self._sets = {each.group: each for each in world.sets}
        super().__init__(world, work, name, checkpoint, wishes, settings)
        line, sets = _TimedLine(world.server, self.trace), tuple(self._sets)
        self._calls = _Calls(RedundantSession(sets, settings.session_ms, self._opened, line, world.clock))
        self.query = self._calls

    def _opened(self, name: str) -> GroupSession:
        return cast(GroupSession, _Session(self, self._sets[name]))

    def _world_of(self, end: StreamOffset) -> World:
        return self._sets.get(str(end.group), self.world)

    def serve(self, world: World) -> None:
        """Become a member of this set."""
        self.trace(f"is in {world.group}")
        self._serve(world)
        self.query = self._calls

    def leave(self) -> None:
        """Leave the set, for another one."""
        self.trace(f"leaves {self.world.group}")
        self.world.server.seen["moved to another set"] += bool(self.service.state.life.nonce)
        self._leave()
        self.heart, self.tasks = None, []
