"""Keys whose records fail, and records that a filter drops (docs/protocol.md#failing-keys)."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import FilterChangedError
from coordinator.member.service import Service
from coordinator.plan.failing_keys import apart, at_cap, by_partition, room, together
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.progress.acknowledgement import Acknowledgement, strips_of
from coordinator.progress.ends import Ends
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Sealed
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.record_filter import EVERYTHING, RecordFilter
from coordinator.values.subscription import TopicPartition
from failing_records import EARLY, KEY, RECORD, TO_7, reading
from group_services import LONG_MS, UNLIMITED, Group, batch, slices_read, subscribed
from log_fixtures import rows, task
from spark_coop_source.arrow_output.schema import NAMED
from spark_coop_source.fetch import consumers
from store_world import LOWER, SESSION, TP, UPPER, World
from topics import Kafka, Record

ON_EACH_SERVER = True
END, NOW, LONGEST = 20, 1_000, 500
KEYS = (0, 1, 5, 6, 2**62, HASH_MAX - 1, HASH_MAX)
"""Hashes with neighbours, and both ends of the hash space."""
Point = tuple[int, int]


def record(key_hash: int, offset: int, next_ms: int = NOW, *, parked: bool = False) -> FailingRecord:
    return FailingRecord(TP, key_hash, offset, 1, next_ms, parked)


RECORDS = st.dictionaries(
    st.sampled_from(KEYS),
    st.tuples(st.integers(0, 15), st.sampled_from((0, NOW, NOW + 1, NOW + LONGEST, NOW + LONGEST + 1)), st.booleans()),
).map(lambda drawn: [record(h, offset, ms, parked=parked) for h, (offset, ms, parked) in drawn.items()])


def test_defer_is_an_end__its_record_is_written_with_the_seal(world: World) -> None:
    """Rule: defer-is-an-end. A deferred key is an early end of its hash, at the failing record."""
    me = reading(world)
    assert world.store.positions.seal(me, EARLY.digest, TO_7, (RECORD,)).value
    assert world.store.poison.failing() == (RECORD,)
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(TO_7)
    assert world.events("deferred") == ["1 key whose record failed: orders 0 0000000000000005 at offset 7"]
    assert GroupKeys(world.group).failing not in world.kept_for_ever()


def test_defer_is_an_end__only_the_owner_of_the_hash_writes_its_record(world: World) -> None:
    """The new owner may have parked a later record of this key."""
    me = reading(world)
    world.lapse(SESSION + 1)
    other = world.join("m-2", "i2")
    world.store.positions.acquire(other, {TP: (LOWER,)})
    theirs, mine = replace(RECORD, offset=9, parked=True), replace(RECORD, key_hash=UPPER.lo)
    world.redis.hset(GroupKeys(world.group).failing, theirs.field, theirs.text)
    ends: Ends = {TP: HashMap(((KEY, 7), (HashRange(UPPER.lo, UPPER.lo), 7)))}
    assert world.store.positions.seal(me, EARLY.digest, ends, (RECORD, mine)).value
    assert world.store.poison.failing() == (theirs, mine)


def test_defer_is_an_end__a_repeated_seal_parks_no_key_that_was_released(world: World) -> None:
    me = reading(world)
    parked = replace(RECORD, parked=True)
    world.store.positions.seal(me, EARLY.digest, TO_7, (parked,))
    assert world.store.poison.resume((parked,), "it is repaired") == 1
    assert world.store.positions.seal(me, EARLY.digest, TO_7, (parked,)).value
    assert world.store.poison.failing() == ()
    assert world.events("release") == [f"{parked.field}: it is repaired"]
    assert len(world.events("parked")) == 1


def owned(lo: int, hi: int, position: int, ceiling: int | None = None) -> OwnedRange:
    return OwnedRange(HashRange(lo, hi), position, "e.1", ceiling)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[OwnedRange, ...]:
    bounds = sorted({0, *draw(st.sets(st.sampled_from(KEYS[1:]))), HASH_MAX + 1})
    pieces = [owned(lo, until - 1, draw(st.integers(0, 12))) for lo, until in pairwise(bounds)]
    ceilings = st.one_of(st.none(), st.integers(0, 25))
    return tuple(p._replace(ceiling=draw(ceilings)) for p in pieces if draw(st.integers(0, 3)))


def points(work: OwnedRanges) -> set[Point]:
    """The points that the work may read, at the hashes of keys."""
    return {(o, h) for p in work.get(TP, ()) for h in KEYS if h in p.hashes for o in range(p.position, p.reach(END))}


@given(ranges(), RECORDS, st.integers(1, 9))
def test_position_holds_the_key__it_is_read_up_to_its_record_and_all_others_as_before(
    mine: tuple[OwnedRange, ...], records: list[FailingRecord], most: int
) -> None:
    """Rule: position-holds-the-key. The position of a hash decides what is unread."""
    found = apart({TP: mine}, records, NOW, LONGEST, most)
    failing = {r.key_hash: r for r in records}

    def expected(point: Point) -> bool:
        offset, key_hash = point
        (position,) = (p.position for p in mine if key_hash in p.hashes)
        r = failing.get(key_hash)
        if r is None or r.offset < position:
            return len(records) < most
        return offset < r.offset + (not r.parked and not NOW < r.next_ms <= NOW + LONGEST)

    before = points({TP: mine})
    assert points(found.work) == {p for p in before if expected(p)}
    assert points(found.held) == set()


@given(ranges(), RECORDS)
def test_position_holds_the_key__an_entry_is_over_once_the_position_has_passed_it(
    mine: tuple[OwnedRange, ...], records: list[FailingRecord]
) -> None:
    over = {r for r in records if any(r.key_hash in p.hashes and p.position > r.offset for p in mine)}
    assert set(apart({TP: mine}, records, NOW, LONGEST, 100).over) == over


@given(ranges(), RECORDS)
def test_position_holds_the_key__every_owned_hash_stays_in_the_plan_at_its_position(
    mine: tuple[OwnedRange, ...], records: list[FailingRecord]
) -> None:
    found = apart({TP: mine}, records, NOW, LONGEST, 100)
    whole = together(found.work, found.held)[TP]
    assert [p.hashes for p in whole] == sorted(p.hashes for p in whole)
    for key_hash in KEYS:
        now = [(p.position, p.epoch) for p in whole if key_hash in p.hashes]
        assert now == [(p.position, p.epoch) for p in mine if key_hash in p.hashes]
    assert sum(p.hashes.size for p in whole) == sum(p.hashes.size for p in mine)


@pytest.mark.parametrize(
    ("entry", "position", "reads", "waits"),
    [
        pytest.param(record(5, 7, NOW), 7, (7,), False, id="due: its record alone"),
        pytest.param(record(5, 7, NOW + 1), 7, (), True, id="its time has not come"),
        pytest.param(record(5, 7, NOW + LONGEST), 7, (), True, id="the longest delay"),
        pytest.param(record(5, 7, NOW + LONGEST + 1), 7, (7,), False, id="no delay is so long: a clock was wrong"),
        pytest.param(record(5, 7, NOW + 2 * LONGEST, parked=True), 7, (), True, id="parked, by a clock that was wrong"),
        pytest.param(record(5, 7, 0, parked=True), 7, (), True, id="parked: whatever the time"),
        pytest.param(record(5, 7, NOW + 1), 5, (5, 6), False, id="a position below it: up to the record"),
        pytest.param(record(5, 7, NOW), 5, (5, 6, 7), False, id="... and the record too if it is due"),
    ],
)
def test_one_record_at_its_time__its_record_is_read_alone_once_it_is_due(
    entry: FailingRecord, position: int, reads: tuple[int, ...], waits: bool
) -> None:
    """Rule: one-record-at-its-time. The planner leaves out the hash of a failing key until its time has come."""
    found = apart({TP: (OwnedRange(WHOLE, position, "e.1"),)}, [entry], NOW, LONGEST, 10)
    assert sorted(o for o, h in points(found.work) if h == 5) == list(reads)
    assert bool(found.held) == waits
    assert found.due == (frozenset() if waits else {(TP, HashRange(5, 5))})


def test_replay_may_defer__the_lowest_end_of_a_hash_counts(world: World) -> None:
    """Rule: replay-may-defer. A replay of a sealed batch may still defer a key."""
    me = reading(world)
    world.store.positions.seal(me, EARLY.digest, {})
    later = world.join("m-1", "i2")
    assert world.store.positions.authorize(later, EARLY, replayed=True).value.ends == {}
    for end in (7, 5, 6):
        ends: Ends = {TP: HashMap.of(KEY, end)}
        assert world.store.positions.seal(later, EARLY.digest, ends, (replace(RECORD, offset=end),)).value
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed({TP: HashMap.of(KEY, 5)})


@pytest.mark.parametrize(
    ("most", "each"), [(3, 0), (4, 1), (5, 1), (9, 3), pytest.param(2, 0, id="more than the cap, of several members")]
)
def test_deferred_keys_cap__the_tasks_of_a_partition_share_the_room_below_it(most: int, each: int) -> None:
    """Rule: deferred-keys-cap. A partition has at most about `maxDeferredKeys` failing keys."""
    known = by_partition([record(h, 7) for h in KEYS[:3]])
    tasks = [[Slice(TP, h, OffsetRange(0, 8))] for h in WHOLE.cut((2**62,))]
    assert room(known, tasks, most) == {TP: each}


def test_deferred_keys_cap__a_partition_is_at_it() -> None:
    records = [record(h, 7) for h in KEYS[:3]]
    assert at_cap(records, 3) == {TP}
    assert at_cap(records, 4) == frozenset()


def test_filtered_is_done__a_dropped_record_is_a_hole(kafka: Kafka) -> None:
    """Rule: filtered-is-done.

    A task reads each slice to its end and hands over only the records that the query's filter keeps.
    """
    topic, keys = kafka.create_topic("filtered"), [b"k", b"bad", b"bad", b"k", b"bad", b"k", b"bad"]
    kafka.produce(topic, [Record(b"", key) for key in keys])
    batch = StreamOffset(
        "g", "m-1", 0, {topic: "id-1"}, {TopicPartition(topic, 0): (Lane(WHOLE, "aa.1", 0, (OffsetRange(0, 7),)),)}
    )
    plain = task(kafka, batch.slices)
    denied = RecordFilter(deny=frozenset({b"bad"}))
    found = rows(replace(plain, columns=NAMED, strips=strips_of(batch, batch.slices), filter=denied))
    consumers.close_idle()
    assert [str(a.offsets) for row in found for a in Acknowledgement.parse(row["acknowledgement"])] == [
        "0-0",
        "1-3",
        "4-6",
    ]


def test_replay_same_filter__no_other_filter_reads_an_unfinished_batch(members: Group, tp: TopicPartition) -> None:
    """Rule: replay-same-filter. An offset holds the digest of the filter that its batch was planned with."""
    a, b = RecordFilter(deny=frozenset([b"a"])), RecordFilter(deny=frozenset([b"b"]))

    def service(now: RecordFilter) -> Service:
        settings = GroupSettings(members.name, capacity=2, session_ms=LONG_MS, filter=now)
        return members.started(subscribed(tp), settings=settings)

    planned = batch(service(a), StreamOffset(members.name))
    for other in (b, EVERYTHING):
        with pytest.raises(FilterChangedError, match=f"planned with the filter of digest {a.digest}") as error:
            service(other).tasks(planned)
        assert "run the query once more" in error.value.remedy
        assert "availableNow=True" in error.value.remedy
    assert members.state.stable == {tp: 0}
    again = service(a)
    assert slices_read(again, planned) == tuple(sorted(planned.slices))
    assert again.next_offset(planned, UNLIMITED) is None
    assert members.state.stable == {tp: 5}
