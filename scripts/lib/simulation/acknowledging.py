"""A driver whose user acknowledges records of the running batch, and an operator who deletes these commits.

Acknowledged records are in the sink already: only an exact replay reads them again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

from coordinator.commits.commit_api import NO_OFFSET, CommitApi, Committed
from coordinator.errors import CoopKafkaError, IndividualCommitTooOldError, RedisUnavailableError
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.ranges import OffsetRange
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.commits import CommitVerbs, Reservation, Standing, Turn
from coordinator.settings import GroupSettings
from coordinator.subscription import TopicPartition
from simulation.kafka import Record
from simulation.redis_server import Line
from simulation.sink import Sink, Violation
from simulation.world import World


def acknowledge(world: World, line: Line, end: StreamOffset, batch: tuple[str, int]) -> None:
    """Commit some offsets of one lane of the running batch, all of whose records are in the sink.

    Or an operator deletes such commits during the batch.
    """
    if world.chance(0.3):
        _delete(world, damage=world.chance(0.3))
    lanes = [(tp, lane, r) for tp, lane in end for r in lane.offsets]
    if not lanes:
        return
    tp, lane, r = world.random.choice(lanes)
    if world.chance(0.1):
        _acknowledge_beyond(world, line, end, tp, lane)
    start = world.random.randrange(r.start, r.until)
    offsets = OffsetRange(start, world.random.randint(start + 1, r.until))
    if r.start and world.chance(0.1):
        offsets = OffsetRange(0, world.random.randint(1, r.start))  # late: mostly done long ago
    records = records_of(world, tp, lane, offsets)
    if not records or not all(r in world.sink.delivered for r in records):
        return
    try:
        commits = commits_of(world, line, end)
        commits.confirms(records, batch)
        commits.commit(tp, [offsets], lanes=[Owned(lane.hashes, lane.epoch)])
        world.server.seen["acknowledged"] += 1
    except RedisUnavailableError:
        line.trace(f"does not know whether {offsets} of {tp} is acknowledged")
    except IndividualCommitTooOldError:
        world.server.seen["IndividualCommitTooOldError"] += (
            1  # all of it is done, perhaps by this very call, sent twice
        )
    except CoopKafkaError as refused:
        world.server.seen[type(refused).__name__] += 1
        line.trace(f"is not allowed to acknowledge {offsets} of {tp}: {refused}")


def _acknowledge_beyond(world: World, line: Line, end: StreamOffset, tp: TopicPartition, lane: Lane) -> None:
    """Commit offsets of a lane that its batch does not read, mostly of unwritten records: never allowed."""
    start = lane.until + world.random.randint(-1, 3)
    offsets = OffsetRange(max(start, 0), lane.until + world.random.randint(4, 9))
    try:
        commits_of(world, line, end).commit(tp, [offsets], lanes=[Owned(lane.hashes, lane.epoch)])
    except RedisUnavailableError:
        line.trace(f"does not know whether {offsets} of {tp} is refused")
    except CoopKafkaError as refused:
        world.server.seen[type(refused).__name__] += 1
    else:
        raise Violation(f"BEYOND: {offsets} of {tp} is acknowledged, and {lane.hashes} was read to {lane.until}")


class Confirming(CommitApi):
    """A Commit API whose user has written the records of each commit to the sink before."""

    sink: Sink
    seen: Counter[str]
    records: Sequence[Record] = ()
    batch = ("", 0)

    def confirms(self, records: Sequence[Record], batch: tuple[str, int]) -> None:
        """The next commits are of these records."""
        self.records, self.batch = records, batch

    def commit(
        self,
        tp: TopicPartition,
        ranges: Sequence[OffsetRange],
        *,
        offset: int = NO_OFFSET,
        lanes: Iterable[Owned] | None = None,
    ) -> Committed:
        """Confirm the records first, because other actors run during the call. A refusal takes that back."""
        self.sink.confirm(self.records, self.batch)
        try:
            return super().commit(tp, ranges, offset=offset, lanes=lanes)
        except (RedisUnavailableError, IndividualCommitTooOldError):
            raise  # the commit may be done, or all of it was done before
        except CoopKafkaError:
            self.sink.take_back(self.records, self.batch)
            raise

    def reserve(self, tp: TopicPartition, wanted: Reservation, state: str, lease_ms: int) -> Turn:
        """Count the answers to reservations."""
        turn = super().reserve(tp, wanted, state, lease_ms)
        self.seen[f"turn: {turn.word}"] += 1
        return turn


def commits_of(world: World, line: Line, end: StreamOffset) -> Confirming:
    """The Commit API of the batch that ends at this offset."""
    verbs = CommitVerbs(ScriptCalls.of(line, GroupSettings(world.group), now=lambda: world.server.now_ms))
    caller, fields = verbs.member(str(end.member))
    commits = Confirming(line, verbs, Standing.of_batch(caller, end), fields)
    commits.sink, commits.seen = world.sink, world.server.seen
    return commits


def _delete(world: World, *, damage: bool) -> None:
    """An operator deletes or damages individual commits of a partition."""
    tp = world.random.choice(list(world.kafka.logs))
    raw, key = world.server.raw, world.server.keys.ics(tp)
    fields = sorted(name.decode() for name in cast(list[bytes], raw.hkeys(key)))
    if not fields:
        return
    if damage:
        raw.hset(key, world.random.choice(["junk", *fields]), world.random.choice(("9-5", "junk", "5-6,8-9")))
    else:
        raw.delete(key)
    world.trace(f"individual commits of {tp} are {'damaged' if damage else 'deleted'}")
    world.server.seen["deletions"] += 1
    world.server.seen["damaged"] += damage
    world.invariants.check()


def records_of(world: World, tp: TopicPartition, lane: Lane, offsets: OffsetRange) -> list[Record]:
    """The records of a lane at these offsets."""
    log = world.kafka.logs[tp][offsets.start : offsets.until]
    return [r for r in log if r.hash in lane.hashes and not world.kafka.aged(r)]
