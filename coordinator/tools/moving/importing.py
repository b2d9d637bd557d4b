"""Creates a group at the positions of another consumer. Needs Redis and Kafka; runs in the command `coop-kafka`."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.errors import GroupExistsError, UnknownTopicError
from coordinator.progress.segments import Segment
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.operator import OperatorVerbs
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.tools.operations.operations import existing
from coordinator.tools.operations.refusals import operator
from coordinator.values.log import Log
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Bounds, Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class Place:
    """The beginning of the group in one partition."""

    tp: TopicPartition
    position: int
    above: tuple[OffsetRange, ...]  # done offsets, which the group does not read
    clipped: bool  # the log lacks the offset of the other consumer: this is the nearest one

    @property
    def done_above(self) -> int:
        """The number of these offsets."""
        return sum(map(len, self.above))


@dataclass(frozen=True, slots=True)
class Import:
    """A planned import."""

    places: tuple[Place, ...]
    topics: Mapping[str, Topic]
    without: tuple[TopicPartition, ...]  # partitions that the other consumer never committed: they begin at earliest


class Importer:
    """Imports of one group."""

    def __init__(self, client: RedisClient, log: Log, group: str) -> None:
        self._log, self._group, self._store = log, group, OperatorVerbs.of_group(client, group)

    def plan(self, done: Sequence[DoneOffsets]) -> Import:
        """The places, nearest to `done` in the logs of now.

        Raises `UnknownTopicError`, `GroupExistsError`, `GroupTypeError`.
        """
        self._log.must_hold_offsets(self._group)
        if self._store.exists():
            raise _exists(self._group)
        topics = existing(self._log, {d.tp.topic for d in done})
        here = {TopicPartition(t, p) for t, topic in topics.items() for p in topic.partitions}
        if gone := sorted({d.tp for d in done} - here):
            raise UnknownTopicError(
                f"Kafka has no {', '.join(map(str, gone))}, which the other consumer has read",
                "name the topics that Kafka has: --topic NAME, once or more",
            )
        bounds = self._log.bounds(sorted(d.tp for d in done))
        places = tuple(_place(d, bounds[d.tp]) for d in sorted(done, key=lambda d: d.tp))
        return Import(places, topics, tuple(sorted(here - {d.tp for d in done})))

    def execute(self, planned: Import, source: str) -> None:
        """Create the group, wholly or not at all. Raises `GroupExistsError` if it exists by now."""
        known = {name: KnownTopic(topic.id, topic.partitions[-1] + 1) for name, topic in planned.topics.items()}
        places = {p.tp: (p.position, p.above) for p in planned.places}
        why = f"by {operator()}: positions of {source}"
        if not self._store.found(secrets.token_hex(4), why, known, places):
            raise _exists(self._group)


def _exists(group: str) -> GroupExistsError:
    return GroupExistsError(f"Redis already has a group {group!r}, and an import creates one")


def _place(done: DoneOffsets, bounds: Bounds) -> Place:
    position = min(max(done.position, bounds.beginning), bounds.end)
    above = [OffsetRange(r.start, min(r.until, bounds.end)) for r in done.above if r.start < bounds.end]
    segment = Segment(WHOLE, position).add(above)
    return Place(done.tp, segment.position, segment.ics, position != done.position)
