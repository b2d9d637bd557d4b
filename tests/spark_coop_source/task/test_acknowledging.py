"""Acknowledgements of rows: each covers its record and holes, and together they leave no hole."""

import timeit
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commit_apis import api
from coordinator.commits.group_commits import GroupCommits
from coordinator.progress.acknowledgement import Acknowledgement, Strip, strips_of
from coordinator.progress.ends import slices_to
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cuts, hash_record
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange, union
from coordinator.values.record_filter import EVERYTHING
from coordinator.values.subscription import TopicPartition, Topics
from group_services import UNLIMITED, Group, batch
from log_fixtures import compacted_log, end, odd_log, rows, task
from spark_coop_source.arrow_output.record_batch import to_arrow
from spark_coop_source.arrow_output.schema import NAMED
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HEADERS
from spark_coop_source.fetch import consumers
from spark_coop_source.select.chosen import Hashed
from spark_coop_source.select.filtering import Filtering
from spark_coop_source.select.lanes import within
from spark_coop_source.task.acknowledging import Acknowledging
from spark_coop_source.task.last_row import with_last_row
from spark_coop_source.task.reads import RecordsRead
from store_world import World
from topics import Kafka, Record

TP = TopicPartition("orders", 0)
HALVES, QUARTERS, EIGHTHS = cuts(2), cuts(4), cuts(8)
KEYS = [b"k-%d" % i for i in range(40)]
EVERY_RECORD = Filtering(EVERYTHING)
Log = dict[int, bytes | None]  # offset -> key; offsets without a record are holes


def chunk_of(log: Log, offsets: Sequence[int]) -> Chunk:
    return Chunk(
        keys=ByteColumn.of([log[o] for o in offsets]),
        values=ByteColumn.of([b""] * len(offsets)),
        offsets=np.array(offsets, np.int64),
        timestamps_ms=np.zeros(len(offsets), np.int64),
        timestamp_types=np.zeros(len(offsets), np.int32),
        headers=pa.array([None] * len(offsets), HEADERS),
    )


def chunks(log: Log, wanted: OffsetRange, size: int) -> Iterator[Chunk]:
    offsets = [o for o in sorted(log) if wanted.start <= o < wanted.until]
    yield from (chunk_of(log, offsets[at : at + size]) for at in range(0, len(offsets), size))


def reads(log: Log, strips: Sequence[Strip], mine: Sequence[Slice], size: int = 3) -> Iterator[RecordsRead]:
    """What a task with these slices reads; all of it is read ahead."""
    stretches, found = union(s.offsets for s in mine), list[RecordsRead]()
    making = Acknowledging(strips, stretches)
    for stretch in stretches:
        for chunk in chunks(log, stretch, size):
            of = Hashed(chunk)
            chosen = EVERY_RECORD.chosen(of, within(of, mine))
            made = making.added(to_arrow(TP, chunk, chosen.rows, ("offset",)), chosen)
            found.append(RecordsRead(made, int(chunk.offsets[-1]) + 1, making.holes))
    return iter([*found, RecordsRead(pa.RecordBatch.from_pylist([]), stretches[-1].until, making.holes)])


Rows = list[tuple[int, tuple[Acknowledgement, ...]]]  # offsets, and parts of their texts


def handed(read: Iterable[RecordsRead]) -> Rows:
    made = [row for batch in with_last_row(iter(read)) for row in batch.to_pylist()]
    return [(row["offset"], Acknowledgement.parse(row["acknowledgement"])) for row in made]


def acknowledged(log: Log, batch: StreamOffset, mine: Sequence[Slice], size: int = 3) -> Rows:
    """The rows that a task with these slices of the batch makes."""
    return handed(reads(log, strips_of(batch, mine)[TP], mine, size))


def covered(rows: Rows) -> list[str]:
    return [" ".join(str(a.offsets) for a in parts) for _, parts in rows]


def batch_of(*lanes: Lane, group: str = "g") -> StreamOffset:
    return StreamOffset(group, "m-1", 0, {"orders": "id-1"}, {TP: lanes})


def one_lane(hashes: HashRange, start: int, until: int) -> Lane:
    return Lane(hashes, "aa.1", start, (OffsetRange(start, until),))


def test_the_last_row_covers_the_holes_of_other_strips() -> None:
    """A lane epoch of its own makes each half a strip. Records of the lower half are at 99 and 110."""
    lower, upper = (
        next(k for k in KEYS if hash_record(k, 0) in HALVES[0]),
        next(k for k in KEYS if hash_record(k, 0) in HALVES[1]),
    )
    batch = batch_of(one_lane(HALVES[0], 95, 130), one_lane(HALVES[1], 95, 130)._replace(epoch="aa.2"))
    assert covered(acknowledged({99: lower, 110: lower}, batch, batch.slices)) == ["95-99", "100-129 95-129"]
    assert covered(acknowledged({99: lower, 110: upper}, batch, batch.slices)) == ["95-99", "95-129 100-129"]
    assert covered(acknowledged({}, batch, batch.slices)) == []


def test_an_attempt_whose_given_ends_leave_out_a_strip_covers_nothing_of_it() -> None:
    """Its lower half ended at its beginning, so this attempt reads the upper half from 120 only."""
    upper = next(k for k in KEYS if hash_record(k, 0) in HALVES[1])
    batch = batch_of(one_lane(HALVES[0], 95, 130), one_lane(HALVES[1], 120, 130))
    mine = slices_to(batch.slices, {TP: HashMap.of(HALVES[0], 95)})
    found = handed(reads({125: upper}, strips_of(batch, batch.slices)[TP], mine))
    assert covered(found) == ["120-129"], "no hole of 95-129 in the lower half"


def test_a_task_that_ends_early_covers_holes_up_to_its_end() -> None:
    """Records of later reads exist already, since a thread reads ahead."""
    batch = batch_of(one_lane(HALVES[0], 95, 130), one_lane(HALVES[1], 95, 130)._replace(epoch="aa.2"))
    lower = next(k for k in KEYS if hash_record(k, 0) in HALVES[0])
    log: Log = dict.fromkeys((99, 110, 121), lower)
    strips = strips_of(batch, batch.slices)[TP]
    assert covered(handed(islice(reads(log, strips, batch.slices, 1), 2))) == ["95-99", "100-110 95-110"]


def test_rows_stay_in_order_and_one_is_held_back() -> None:
    batch = batch_of(one_lane(WHOLE, 0, 10))
    log: Log = dict.fromkeys(range(7), b"k")
    made = with_last_row(reads(log, strips_of(batch, batch.slices)[TP], batch.slices, 3))
    assert [each.column("offset").to_pylist() for each in made] == [[0, 1], [2], [3, 4], [5], [6]]


def test_offsets_between_may_hold_records_of_other_hashes_and_of_other_tasks() -> None:
    mine = next(h for h in QUARTERS if hash_record(b"k-1", 0) in h)
    others = [k for k in KEYS if hash_record(k, 0) not in mine]
    log: Log = {99: b"k-1", 100: others[0], 105: others[1], 110: b"k-1", 115: others[2], 121: b"k-1"}
    alone = batch_of(one_lane(mine, 95, 130))
    assert covered(acknowledged(log, alone, alone.slices)) == ["95-99", "100-110", "111-129"]
    whole = batch_of(*(one_lane(h, 95, 130) for h in QUARTERS))
    with_others = acknowledged(log, whole, [s for s in whole.slices if s.hashes == mine])
    assert covered(with_others) == ["95-99", "100-110", "111-129"]
    assert {a.lane.hashes for _, (a,) in with_others} == {mine}, "it covers no lane of another task"


def test_a_task_that_acknowledges_in_order_needs_no_individual_commit(world: World) -> None:
    """Another task reads the other hashes of the same offsets, and has acknowledged nothing yet. The cap is 50."""
    batch = batch_of(*(one_lane(h, 0, 400) for h in QUARTERS), group=world.group)
    making = Acknowledging(
        strips_of(batch, [s for s in batch.slices if s.hashes in QUARTERS[:2]])[TP], (OffsetRange(0, 400),)
    )
    offsets = np.arange(400, dtype=np.int64)
    hashes = np.array([hash_record(KEYS[o % 40], o) for o in range(400)], np.int64)
    strips, since = making.covered(offsets, hashes, np.ones(400, np.bool_))
    own = np.flatnonzero(strips >= 0)
    api(world, 0, max_individual_commits=50).close()
    with GroupCommits.of_group(world.url, world.group) as commits:
        for text in making.texts(strips[own], since[own], offsets[own]).to_pylist():
            assert commits.acknowledge(text) == {TP: 0}
            assert not world.ics()
    assert len(own) > 100


def seconds(strips: int) -> float:
    """The shortest time for a chunk of 100 records in the last one of many strips."""
    reads = tuple(OffsetRange(200 * n, 200 * n + 100) for n in range(strips))
    batch = batch_of(Lane(WHOLE, "aa.1", 0, reads))
    making = Acknowledging(strips_of(batch, batch.slices)[TP], reads)
    offsets = np.arange(200 * (strips - 1), 200 * (strips - 1) + 100, dtype=np.int64)
    kept = np.ones(100, np.bool_)
    assert set(making.covered(offsets, offsets, kept)[0].tolist()) == {strips - 1}
    return min(timeit.repeat(lambda: making.covered(offsets, offsets, kept), number=10, repeat=5))


def test_strips_at_other_offsets_cost_nothing() -> None:
    assert seconds(600) < 20 * seconds(1), "it was 200 times as much"


@st.composite
def logs(draw: st.DrawFn) -> Log:
    offsets = draw(st.lists(st.integers(0, 60), unique=True, max_size=40))
    return {o: draw(st.sampled_from([None, *KEYS[:12]])) for o in sorted(offsets)}


@st.composite
def batches(draw: st.DrawFn) -> StreamOffset:
    """Lanes of several epochs; most read the same, some begin or end elsewhere, or have done offsets inside."""
    common = tuple(sorted(draw(st.lists(st.integers(0, 60), min_size=2, max_size=2, unique=True))))

    def reads() -> tuple[OffsetRange, ...]:
        if draw(st.booleans()):
            return (OffsetRange(*common),)
        edges = sorted(draw(st.lists(st.integers(0, 60), min_size=2, max_size=6, unique=True)))
        return tuple(OffsetRange(a, b) for a, b in list(pairwise(edges))[::2])

    epochs = [draw(st.sampled_from(["aa.1", "aa.2"])) for _ in QUARTERS]
    some = draw(st.lists(st.sampled_from(range(4)), min_size=1, unique=True).map(sorted))
    lanes = [(QUARTERS[i], epochs[i], reads()) for i in some]
    return batch_of(*(Lane(h, epoch, of[0].start, of) for h, epoch, of in lanes))


Points = set[tuple[int, int]]  # offsets and hashes


def inside(points: Points, hashes: HashRange, offsets: OffsetRange) -> Points:
    return {(o, h) for o, h in points if offsets.start <= o < offsets.until and h in hashes}


def check_rows(found: Rows, points: Points, read: Points) -> None:
    """Each row covers its own record of all records of the log, and no other one."""
    assert sorted(o for o, _ in found) == sorted(o for o, _ in read)
    for offset, parts in found:
        of_row = [point for a in parts for point in inside(points, a.lane.hashes, a.offsets)]
        assert [o for o, _ in of_row] == [offset], "only the record itself"


@given(logs(), batches(), st.integers(1, 7), st.data())
def test_each_covers_its_own_record_only_and_together_they_leave_no_hole(
    log: Log, batch: StreamOffset, size: int, data: st.DataObject
) -> None:
    """Any cut of the batch in tasks, and of the log in chunks. A task may end after any of its reads."""
    numbers = {lane.hashes: data.draw(st.integers(0, 2)) for lane in batch.lanes[TP]}
    points = {(o, hash_record(key, o)) for o, key in log.items()}
    for mine in filter(None, ([s for s in batch.slices if numbers[s.hashes] == n] for n in range(3))):
        strips = strips_of(batch, mine)[TP]
        some = list(islice(reads(log, strips, mine, size), data.draw(st.integers(1, 40))))
        end = some[-1].until
        read = {
            p
            for s in mine
            if (some_of := s.within(OffsetRange(0, end)))
            for p in inside(points, s.hashes, some_of.offsets)
        }
        found = handed(some)
        check_rows(found, points, read)
        for strip in (strip.area for strip in strips if found):
            covered = {
                o
                for _, parts in found
                for a in parts
                if a.lane.hashes == strip.hashes
                for o in range(a.offsets.start, a.offsets.until)
            }
            before = set(range(strip.offsets.start, min(strip.offsets.until, end)))
            assert covered & set(range(strip.offsets.start, strip.offsets.until)) == before, "no hole is left"


@given(logs(), batches(), st.integers(1, 7), st.data())
def test_an_attempt_that_reads_to_given_ends_covers_no_record_that_it_does_not_read(
    log: Log, batch: StreamOffset, size: int, data: st.DataObject
) -> None:
    """Its strips are those of the plan; any hashes may end earlier."""
    ends = {TP: HashMap((hashes, data.draw(st.integers(0, 61))) for hashes in EIGHTHS)}
    mine = slices_to(batch.slices, ends)
    if mine:
        points = {(o, hash_record(key, o)) for o, key in log.items()}
        read = {p for s in mine for p in inside(points, s.hashes, s.offsets)}
        check_rows(handed(reads(log, strips_of(batch, batch.slices)[TP], mine, size)), points, read)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("log", [odd_log, compacted_log], ids=["odd", "compacted"])
def test_real_logs_have_no_holes_left(kafka: Kafka, log: Callable[[Kafka], str], level: str) -> None:
    topic = log(kafka)
    tp, last = TopicPartition(topic, 0), end(kafka, topic)
    lanes = tuple(Lane(h, "aa.1", 0, (OffsetRange(0, last),)) for h in QUARTERS)
    batch = StreamOffset("g", "m-1", 0, {topic: "id-1"}, {tp: lanes})
    tasks = [[s for s in batch.slices if s.hashes in some] for some in (QUARTERS[:1], QUARTERS[1:])]
    found = list[dict[str, object]]()
    for mine in tasks:
        plain = task(kafka, mine, isolation_level=level)
        found += rows(replace(plain, columns=NAMED, strips=strips_of(batch, mine)))
    consumers.close_idle()
    parsed = [a for row in found for a in Acknowledgement.parse(row["acknowledgement"])]
    ends = dict.fromkeys({a.lane for a in parsed}, 0)
    for a in sorted(parsed, key=lambda a: a.offsets):
        assert a.offsets.start == ends[a.lane]
        ends[a.lane] = a.offsets.until
    assert set(ends.values()) == {last}
    assert len(found) < last, "it has holes"


def key_in(hashes: HashRange) -> bytes:
    return next(key for key in KEYS if hash_record(key, 0) in hashes)


@pytest.mark.parametrize("numbers", [(0, 1, 0), (1, 0, 1), (0, 0, 1)], ids=str)
def test_records_99_110_and_121_give_stable_122_whichever_of_two_tasks_reads_them(
    members: Group, numbers: tuple[int, ...]
) -> None:
    """Aborted records and markers lie between them. Each record is acknowledged alone, the last one first."""
    topic = members.kafka.create_topic("holes")
    tp = TopicPartition(topic, 0)
    service = members.service(Topics((topic,)), session_ms=60_000)
    members.kafka.produce(topic, [Record(b"", b"k-%d" % (i % 9)) for i in range(99)])
    service.first_positions()
    first = batch(service, StreamOffset(members.name))
    aborted = [Record(b"", key) for key in KEYS[:9]]
    for number in numbers:
        members.kafka.produce(topic, [Record(b"", key_in(HALVES[number]))])
        if end(members.kafka, topic) < 122:
            members.kafka.produce_aborted(topic, aborted)
    after = service.next_offset(first, UNLIMITED)
    assert after is not None
    found, tasks = list[dict[str, object]](), service.tasks(after)
    assert len(tasks) == 2
    for mine in tasks:
        plain = task(members.kafka, mine, isolation_level="read_committed")
        found += rows(replace(plain, columns=NAMED, strips=strips_of(after, mine)))
    consumers.close_idle()
    assert sorted(row["offset"] for row in found) == [99, 110, 121]  # type: ignore[type-var]
    with GroupCommits.of_group(members.redis_url, members.name) as commits:
        answers = [commits.acknowledge(str(row["acknowledgement"])) for row in reversed(found)]
    assert answers[-1] == {tp: 122}
    assert members.state.stable[tp] == 122
    assert not members.redis.exists(GroupKeys(members.name).ics(tp))


def test_a_member_of_half_the_hashes_moves_its_positions_over_the_records_of_the_other(members: Group) -> None:
    topic = members.kafka.create_topic("halves")
    tp, nothing = TopicPartition(topic, 0), StreamOffset(members.name)
    one, other = (members.service(Topics((topic,)), session_ms=60_000) for _ in range(2))
    one.first_positions()
    members.kafka.produce(topic, [Record(b"", b"k-%d" % (i % 9)) for i in range(5)])
    first = batch(one, nothing)
    assert other.next_offset(nothing, UNLIMITED) is None  # it joins, and `one` still owns everything
    assert one.next_offset(first, UNLIMITED) is None  # it commits, and releases one half
    assert other.next_offset(nothing, UNLIMITED) is None
    members.kafka.produce(topic, [Record(b"", b"k-%d" % (i * 7 % 40)) for i in range(60)])
    half = batch(other, nothing)
    tasks = other.tasks(half)
    found = [
        row
        for each in tasks
        for row in rows(replace(task(members.kafka, each), columns=NAMED, strips=strips_of(half, each)))
    ]
    consumers.close_idle()
    assert 0 < len(found) < 60
    with GroupCommits.of_group(members.redis_url, members.name) as commits:
        for row in found:
            assert commits.acknowledge(str(row["acknowledgement"])) == {tp: 5}, "the other half is still there"
        mine = [part for part in commits.committed(tp).ranges if part.owner == other.member]
    assert {(part.position, part.done) for part in mine} == {(65, ())}
