"""A driver whose user acknowledges records of the running batch, and an operator who deletes these commits.

Acknowledged records are in the sink already: only an exact replay reads them again. The user commits offsets, or rows
by the texts that a task of the source makes for them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from coordinator.assignment.settings import GroupSettings
from coordinator.commits.commit_api import NO_OFFSET, CommitApi, Committed
from coordinator.commits.group_commits import GroupCommits
from coordinator.errors import CoopKafkaError, IndividualCommitTooOldError, RedisUnavailableError
from coordinator.progress.acknowledgement import Acknowledgement, strips_of
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.commits import CommitVerbs, Reservation, ReservedTurn, Standing
from coordinator.values.ranges import OffsetRange, union
from coordinator.values.subscription import TopicPartition
from simulation.kafka import Record
from simulation.redis_server import Line
from simulation.sink import Sink, Violation
from simulation.turns import Turns
from simulation.world import World
from spark_coop_source.arrow_output.schema import ACKNOWLEDGEMENT
from spark_coop_source.task.acknowledging import Acknowledging
from spark_coop_source.task.last_row import with_last_row
from spark_coop_source.task.reads import RecordsRead

_CHUNK = 3  # records that a task decodes together


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
    if not in_sink(world, records, end):
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


def acknowledge_rows(
    world: World, line: Line, end: StreamOffset, packed: Sequence[Sequence[Slice]], batch: tuple[str, int]
) -> None:
    """Acknowledge some rows of one task of the running batch, which are in the sink, by their texts."""
    tasks = [slices for slices in packed if slices]
    if not tasks:
        return
    tp = world.random.choice(world.random.choice(tasks)).topic_partition
    slices = world.random.choice([[s for s in task if s.topic_partition == tp] for task in tasks])
    rows = _rows(world, end, slices) if slices else []
    rows = [(record, text) for record, text in rows if record in world.sink.delivered]
    if not rows:
        return
    chosen = world.random.sample(rows, world.random.randint(1, len(rows)))
    parts = [(part, record) for record, text in chosen for part in text.split(" ")]
    lanes: dict[Owned, list[tuple[str, Record]]] = {}
    for part, record in parts:
        lanes.setdefault(Acknowledgement.parse(part)[0].lane, []).append((part, record))
    for lane in sorted(lanes):  # a call each, so that all of it is refused or nothing
        _acknowledge_parts(world, line, lanes[lane], batch, end.filter)


def _acknowledge_parts(
    world: World, line: Line, parts: Sequence[tuple[str, Record]], batch: tuple[str, int], of_filter: str
) -> None:
    """Acknowledge parts of the texts of records. All parts are of one lane."""
    covered = [(a, record) for part, record in parts for a in Acknowledgement.parse(part)]
    own = [r for a, r in covered if a.offsets.start <= r.offset < a.offsets.until and r.hash in a.lane.hashes]
    records = own + [r for a, _ in covered for r in _dropped(world, a, of_filter)]
    world.sink.confirm(records, batch)
    verbs = CommitVerbs(ScriptCalls.of(line, GroupSettings(world.group), now=lambda: world.server.now_ms))
    try:
        GroupCommits(line, verbs).acknowledge([part for part, _ in parts])
        world.server.seen["rows acknowledged"] += 1
        world.server.seen["holes closed"] += sum(len(a.offsets) for a, _ in covered) > len(records)
        world.server.seen["holes behind closed"] += any(a.offsets.until - 1 > r.offset for a, r in covered)
        world.server.seen["holes of other lanes closed"] += len(covered) > len(own)
    except RedisUnavailableError:
        line.trace(f"does not know whether {' '.join(map(str, records))} are acknowledged")
    except CoopKafkaError as refused:
        world.server.seen[type(refused).__name__] += 1
        line.trace(f"is not allowed to acknowledge {' '.join(map(str, records))}: {refused}")
        world.sink.take_back(records, batch)


def _rows(world: World, end: StreamOffset, mine: Sequence[Slice]) -> list[tuple[Record, str]]:
    """The records of a task's slices of one partition, each with its text. The task may end early."""
    stretches, own, reads = union(s.offsets for s in mine), list[Record](), list[RecordsRead]()
    making = Acknowledging(strips_of(end, mine)[mine[0].topic_partition], stretches)
    for chunk in (c for r in stretches for c in _chunks(world, mine[0].topic_partition, r)):
        offsets, hashes = (np.array(x, np.int64) for x in zip(*((r.offset, r.hash) for r in chunk), strict=True))
        kept = np.isin(offsets, [r.offset for r in world.filters.kept(chunk, end.filter)])
        strips, since = making.covered(offsets, hashes, kept)
        rows = [i for i, r in enumerate(chunk) if kept[i] and any(_inside(r, s) for s in mine)]
        at = np.array(rows, np.int64)
        texts = making.texts(strips[at], since[at], offsets[at])
        reads.append(RecordsRead(pa.record_batch({ACKNOWLEDGEMENT: texts}), chunk[-1].offset + 1, making.holes))
        own += [chunk[i] for i in rows]
    reads.append(RecordsRead(pa.RecordBatch.from_pylist([]), stretches[-1].until, making.holes))
    allowed = reads[: world.random.randint(1, len(reads))] if world.chance(0.3) else reads
    texts = [text for batch in with_last_row(iter(allowed)) for text in batch.column(ACKNOWLEDGEMENT).to_pylist()]
    return list(zip(own, texts, strict=False))


def _chunks(world: World, tp: TopicPartition, stretch: OffsetRange) -> Iterator[list[Record]]:
    fetched = [r for r in world.kafka.logs[tp][stretch.start : stretch.until] if not world.kafka.aged(r)]
    yield from (fetched[at : at + _CHUNK] for at in range(0, len(fetched), _CHUNK))


def _dropped(world: World, covered: Acknowledgement, of_filter: str) -> list[Record]:
    """The records that the batch's filter drops, and that this acknowledgement covers."""
    log = world.kafka.logs[covered.tp][covered.offsets.start : covered.offsets.until]
    kept = world.filters.kept(log, of_filter)
    return [r for r in log if r not in kept and r.hash in covered.lane.hashes]


def _inside(record: Record, s: Slice) -> bool:
    return s.offsets.start <= record.offset < s.offsets.until and record.hash in s.hashes


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
    turns: Turns
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

    def reserve(self, tp: TopicPartition, wanted: Reservation, state: str, lease_ms: int) -> ReservedTurn:
        """Count the answers to reservations."""
        if state == "ended":
            hashes = [owned.hashes for owned in wanted.lanes]
            self.turns.end(tp, hashes, wanted.offsets, self._standing.caller.member)
        turn = super().reserve(tp, wanted, state, lease_ms)
        self.seen[f"turn: {turn.word}"] += 1
        return turn


def commits_of(world: World, line: Line, end: StreamOffset) -> Confirming:
    """The Commit API of the batch that ends at this offset."""
    verbs = CommitVerbs(ScriptCalls.of(line, GroupSettings(world.group), now=lambda: world.server.now_ms))
    caller, fields = verbs.member(str(end.member))
    commits = Confirming(line, verbs, Standing.of_batch(caller, end), fields)
    commits.sink, commits.seen, commits.turns = world.sink, world.server.seen, world.turns
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


def in_sink(world: World, records: Sequence[Record], end: StreamOffset) -> bool:
    """Whether the records of the batch that its filter keeps are in the sink, at least one."""
    kept = world.filters.kept(records, end.filter)
    return bool(kept) and all(r in world.sink.delivered for r in kept)
