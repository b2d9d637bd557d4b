"""A query with `redundancy`: a member of one replica set at a time.

    first call    the set that the checkpoint names; without a checkpoint the set with the least capacity
    next_offset   if this member has to move: commit the batch in the sink, leave, go on in the other set

Each set is a group, so a `GroupSession` does the work. A move looks like a restart with an empty checkpoint: the next
offset names the other set. After a crash the checkpoint decides again. A run with AvailableNow never moves.

Runs in the stream reader's process, on its main thread.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Self

from coordinator.assignment.replica_sets import move, names
from coordinator.errors import StoreError
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.plan.packing import Task
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.replica_sets import adopt_policies, chosen_set, members_of
from coordinator.values.clock import BootClock, Clock
from spark_coop_source.driver.reader_process import GroupSession, let_nothing_interrupt
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.task.partition import TaskEnding
from spark_coop_source.telemetry.report import ReportTo

log = logging.getLogger(__name__)


class RedundantSession:
    """The calls of a stream reader; see the module."""

    def __init__(
        self,
        sets: Sequence[str],
        session_ms: int,
        opens: Callable[[str], GroupSession],
        client: RedisClient,
        clock: Clock,
    ) -> None:
        """`sets`: their names. `opens`: the session of a member of one of them."""
        self._names, self._session_ms, self._opens = sets, session_ms, opens
        self._client, self._clock = client, clock
        self._session: GroupSession | None = None
        self._set = ""
        self._left: StreamOffset | None = None  # the last offset in the set before, until a batch is planned
        self._look_at_ms, self._empty = 0, ""  # the next look at all sets, and the set that the last one would go to
        self._targets = False

    @classmethod
    def of(cls, options: SourceOptions) -> Self:
        """The session of a query with these options."""
        sets = names(str(options.group), options.redundancy)
        client = RedisClient(str(options.redis_url))
        return cls(
            sets, options.session_ms, lambda name: GroupSession(replace(options, group=name)), client, BootClock()
        )

    def initial(self) -> StreamOffset:
        """See `GroupSession.initial`."""
        return self._of(StreamOffset(None)).initial()

    def set_targets(self) -> None:
        """AvailableNow: the run ends where the logs end at its first call."""
        self._targets = True

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """Move to another set if this member has to, then the next offset there."""
        if start == self._left:
            return self._current.next_offset(StreamOffset(self._set), limits)
        session = self._of(start)
        if to := self._due(session):
            log.warning("replica set %s has no member: member %s leaves %s for it", to, session.query.member, self._set)
            session.settle(start)
            session.end()
            self._left, start = start, StreamOffset(to)
            session = self._opened(to)
            session.initial()
        return session.next_offset(start, limits)

    def tasks(self, end: StreamOffset) -> tuple[Task, ...]:
        """See `Service.tasks`."""
        return self._of(end).tasks(end)

    def report_to(self, slices: Iterable[Slice]) -> ReportTo | None:
        """See `TaskServer.report_to`."""
        return self._current.report_to(slices)

    def ending(self, tasks: Sequence[Task]) -> TaskEnding | None:
        """See `GroupSession.ending`."""
        return self._current.ending(tasks)

    @property
    def query(self) -> Service:
        """What this process knows of its query in the current set."""
        return self._current.query

    def close(self) -> None:
        """See `GroupSession.close`."""
        let_nothing_interrupt()
        if self._session:
            self._session.close()
        self._client.close()

    @property
    def _current(self) -> GroupSession:
        if self._session is None:
            raise RuntimeError("no call of Spark has named an offset yet")
        return self._session

    def _of(self, offset: StreamOffset) -> GroupSession:
        """The session of the set that the offset names. A new query chooses one.

        So does the next life of a query that has died in its first batch: before the replay, Spark asks for the initial
        offset, which names no set.
        """
        if offset.group in self._names and offset.group != self._set:
            if self._session:
                self._session.end()
            self._opened(str(offset.group))
        elif self._session is None:
            self._opened(chosen_set(self._client, self._names, self._session_ms))
        return self._current

    def _opened(self, name: str) -> GroupSession:
        self._set = name
        adopt_policies(self._client, self._names, name)
        self._session = session = self._opens(name)
        if self._targets:
            session.set_targets()
        return session

    def _due(self, session: GroupSession) -> str | None:
        """The set to move to, if two looks in a row, a session apart, found it without a member."""
        if self._targets or self._clock.now_ms() < self._look_at_ms:
            return None
        self._look_at_ms = self._clock.now_ms() + self._session_ms
        try:
            due = move(*members_of(self._client, self._names))
            adopt_policies(self._client, self._names, self._set)  # set while this set began
        except StoreError as error:  # an outage, which the next call of the service handles; or damage in another set
            log.warning("group %s: the replica sets cannot be read: %s", self._names[0], error)
            return None
        before, self._empty = self._empty, due.to if due and due.member == session.query.member else ""
        return self._empty if self._empty == before and before else None
