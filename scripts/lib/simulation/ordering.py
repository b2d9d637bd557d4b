"""A driver whose user commits a slice of its batch in order.

It reserves the slice before the tasks begin, and commits it after them, if all of its records are in the sink.
"""

from collections.abc import Collection

from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import CoopKafkaError
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.ranges import OffsetRange
from simulation.acknowledging import Confirming, commits_of, records_of
from simulation.kafka import Record
from simulation.redis_server import Line
from simulation.turns import Reserved
from simulation.world import SESSION_MS, World


class Ordering:
    """The ordered commit of one batch."""

    def __init__(self, world: World, line: Line, end: StreamOffset, batch: tuple[str, int]) -> None:
        self._world, self._line, self._end, self._batch = world, line, end, batch
        self._lease_ms = world.random.choice((500, SESSION_MS))
        self._mine: tuple[Confirming, OrderedCommits, Reserved, Lane] | None = None

    def reserve(self) -> None:
        """Reserve one slice of the batch, or a part of it."""
        slices = [(tp, lane, r) for tp, lane in self._end for r in lane.offsets]
        if not slices:
            return
        tp, lane, r = self._world.random.choice(slices)
        offsets = OffsetRange(r.start, self._world.random.randint(r.start + 1, r.until))
        try:
            commits = commits_of(self._world, self._line, self._end)
            worker = OrderedCommits(commits, "worker", self._lease_ms, self._world.clock)
            worker.reserve(tp, offsets, lanes=[Owned(lane.hashes, lane.epoch)])
        except CoopKafkaError as refused:
            self._refused(refused, f"reserve {offsets} of {tp}")
        else:
            self._mine = commits, worker, self._world.turns.add(tp, lane.hashes, offsets, str(self._end.member)), lane

    def commit(self, read: Collection[Record]) -> None:
        """Commit the reserved slice in order, if its records are in the sink. Tasks have `read` so much."""
        if not self._mine:
            return
        world, (commits, worker, mine, lane) = self._world, self._mine
        records = records_of(world, mine.tp, lane, mine.offsets)
        kept = world.filters.kept(records, self._end.filter)
        if not all(r in world.sink.delivered if r in kept else r in read for r in records):
            return
        commits.confirms(records, self._batch)
        others = world.turns.others(mine)
        try:
            worker.commit(mine.tp, mine.offsets, lanes=[Owned(lane.hashes, lane.epoch)])
        except CoopKafkaError as refused:
            self._refused(refused, f"commit {mine} in order")
        else:
            world.server.seen["ordered"] += 1
            world.turns.check(mine, others)

    def _refused(self, refused: CoopKafkaError, what: str) -> None:
        self._world.server.seen[type(refused).__name__] += 1
        self._line.trace(f"may not {what}: {refused}")
