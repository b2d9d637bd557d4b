"""Gates before new partitions: what a member saw of growing topics, and so how far it may read them (spec 4.3, R8).

    look     the group's growths, and the time by Redis         `Holding.refresh`
    bounds   the ends of all logs: up to where new partitions could be read
    sight    then the older partitions' high watermarks: what they must be done with first
    limit    then their positions, and the pieces of new partitions under their ceilings

The order matters: a record that was in a new partition when its end was seen came after all records of its
key that its producer wrote to an older one, and those lie below a watermark seen later. Watermarks, not
ends: a transaction that is open in an older partition may have been committed in the new one already.
Part of the service, on its thread.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count

from coordinator.member.log_view import LogView
from coordinator.member.membership import Membership
from coordinator.plan.planning import OwnedRanges, bounded
from coordinator.progress.growth import OPEN, Growth, Segments, Sight, ceilings, levels, older_partitions, remembered
from coordinator.redis.store import RedisStore
from coordinator.subscription import Bounds, TopicPartition

_log = logging.getLogger(__name__)


class Gates:
    """Remembers what was seen of topics that grew; see the module."""

    def __init__(self, group: str, store: RedisStore, membership: Membership, view: LogView) -> None:
        self._group, self._store, self._membership, self._view = group, store, membership, view
        self._sights: tuple[Sight, ...] = ()
        self._numbers = count()
        self._topic_ids: Mapping[str, str] = {}  # of the topics that the sights are of
        self._told: set[Growth] = set()
        self._over: set[tuple[Growth, int]] = set()  # growths that hold nothing back any more, with the reset epoch
        self.closed: frozenset[TopicPartition] = frozenset()  # new partitions that are not free yet

    def targets(self, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, int]:
        """Where AvailableNow ends: the ends in `bounds`, seen before this call, and older partitions a little later.

        So a new partition can be read up to its target as soon as the older ones are at theirs.
        """
        ask = self._membership.outside
        older = older_partitions(ask(self._store.growths), ask(self._store.partition_counts), self._view.topics)
        self._see(bounds, older & bounds.keys())
        return {tp: b.end for tp, b in bounds.items()} | dict(self._sights[-1].marks)

    def limit(
        self,
        work: OwnedRanges,
        bounds: Mapping[TopicPartition, Bounds],
        growths: Collection[Growth],
        *,
        reset: int,
        now_ms: int,
    ) -> OwnedRanges:
        """The pieces of new partitions under ceilings; `bounds` were seen before this call, `now_ms` before them."""
        mine = [g for g in growths if g.topic in self._view.topics and g.topic_id == self._view.topics[g.topic].id]
        self._tell(mine)
        active = [g for g in mine if g.kept and (g, reset) not in self._over]
        self.closed = frozenset(tp for g in active for tp in g.newer)
        if not active:
            self._sights = ()
            return work
        older = {tp for g in active for tp in g.holding}
        self._see(bounds, older)
        self._record([g for g in active if now_ms >= g.until_ms and not g.ends])
        positions = self._positions(older)
        for growth in active:
            of_steps = {step: levels(step, positions, self._sights) for step in growth.steps}
            if growth.ends and all(level == ((0, OPEN),) for level in of_steps.values()):
                self._over.add((growth, reset))
            for step, level in of_steps.items():
                gated = {tp: bounded(work[tp], ceilings(level, tp, self._sights)) for tp in step.newer if tp in work}
                work = {**work, **gated}
        return work

    def _see(self, bounds: Mapping[TopicPartition, Bounds], older: Collection[TopicPartition]) -> None:
        topic_ids = {name: topic.id for name, topic in self._view.topics.items()}
        if topic_ids != self._topic_ids:
            self._sights, self._topic_ids = (), topic_ids
        marks = self._view.high_watermarks(sorted(older))
        sight = Sight(next(self._numbers), {tp: b.end for tp, b in bounds.items()}, marks)
        self._sights = remembered(self._sights, sight)

    def _record(self, ended: Collection[Growth]) -> None:
        """The grace is over: where the older partitions end now is all that must be passed; the first one wins."""
        marks = self._sights[-1].marks
        if ended:
            known = [replace(g, ends=tuple(marks[tp] for tp in g.holding)) for g in ended]
            self._membership.outside(lambda: self._store.grow(known))

    def _positions(self, older: Collection[TopicPartition]) -> dict[TopicPartition, Segments]:
        """How far the older partitions are, of those that this or another member should read."""
        assignment = self._membership.outside(self._store.assignment)
        read = {tp for ranges in assignment.values() for tp in ranges} | set(self._view.partitions)
        wanted = sorted(tp for tp in older if tp in read)
        return dict(self._membership.outside(lambda: self._store.positions(wanted)))

    def _tell(self, growths: Collection[Growth]) -> None:
        for growth in {replace(g, ends=()) for g in growths} - self._told:
            self._told.add(growth)
            _log.log(logging.INFO if growth.kept else logging.WARNING, "group %s: %s", self._group, growth)
