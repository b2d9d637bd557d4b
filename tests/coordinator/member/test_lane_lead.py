"""Lanes keep within `max.lane.lead` of one another, in the time of records (rule: lane-lead)."""

from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.key_hash import cuts
from coordinator.member.decision import NotSeen, Seen
from coordinator.member.event_time import keep_lead
from coordinator.member.limits import Limits
from coordinator.member.requests import ReadFirstTimes, ResolveOffsets
from coordinator.member.standalone import Standalone
from coordinator.member.state import Life, State
from coordinator.offset_spec import AtOffsets
from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import WHOLE, OffsetRange
from coordinator.settings import GroupSettings, StandaloneSettings
from coordinator.subscription import Assigned, TopicPartition, Topics
from group_services import Group, TestClock, batches
from kafka_logs import T0, Through, delete_records, kafka_log
from log_fixtures import emptied_marker_log, end
from topics import Kafka, Record

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
MINUTE = 60_000


def lanes(*positions: int) -> tuple[OwnedRange, ...]:
    return tuple(OwnedRange(h, p, "e.1") for h, p in zip(cuts(len(positions)), positions, strict=True))


def reads(work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[int]]:
    """How far each lane reads; its position where it waits."""
    return {tp: [max(p.position, p.reach(ends[tp])) for p in parts] for tp, parts in work.items()}


@pytest.mark.parametrize(
    ("positions", "later", "expected"),
    [
        pytest.param((10, 40), 60, [60, 60], id="both read up to the first record that is too late"),
        pytest.param((10, 70), 60, [60, 70], id="a lane that is beyond it waits"),
        pytest.param((10, 70), 100, [100, 100], id="no record is too late"),
        pytest.param((10, 70), 3, [11, 70], id="times jump back: the lane furthest behind reads one offset"),
        pytest.param((100, 70), 80, [100, 80], id="a lane with nothing to read holds nobody up"),
    ],
)
def test_how_far_two_lanes_read(positions: tuple[int, ...], later: int, expected: list[int]) -> None:
    work, ends = {A: lanes(*positions)}, {A: 100}
    assert reads(within_lead(work, {A: later}, unread(work, ends)), ends) == {A: expected}


def test_a_lane_that_may_not_read_holds_nobody_up() -> None:
    parked, other = lanes(10, 40)
    work = {A: (parked._replace(ceiling=10), other), B: lanes(100)}
    assert unread(work, {A: 100, B: 100}) == {A: OffsetRange(40, 100)}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.lists(st.integers(0, 30), min_size=50, max_size=50))
def test_no_lane_reads_what_is_too_late_and_somebody_always_reads(positions: list[int], times: list[int]) -> None:
    work, ends, lead = {A: lanes(*positions)}, {A: len(times)}, 5
    stretches = unread(work, ends)
    if not stretches:
        return
    oldest = times[stretches[A].start]
    later = next((o for o, t in enumerate(times) if t > oldest + lead), len(times))
    until = reads(within_lead(work, {A: later}, stretches), ends)[A]
    read = [range(p, u) for p, u in zip(positions, until, strict=True)]
    assert any(read)
    assert all(times[o] <= oldest + lead for offsets in read for o in offsets if o != stretches[A].start)


# -- on a real broker --------------------------------------------------------------------------


class Counted(Through):
    """A log that counts how often it is asked for times."""

    asked = 0

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int]:
        self.asked += 1
        return super().first_times(stretches)


def limit(
    state: State, work: OwnedRanges, ends: Mapping[TopicPartition, int], most_ms: int | None, log: Counted
) -> tuple[State, OwnedRanges]:
    """The limit, with the answers of a real log."""
    seen = Seen(0)
    while True:
        try:
            return keep_lead(state, work, ends, most_ms, seen)
        except NotSeen as missing:
            request = missing.request
            if request.kind is ReadFirstTimes:
                seen = seen.with_answer(request, log.first_times(request.arguments["stretches"]))
            elif request.kind is ResolveOffsets:
                seen = seen.with_answer(request, log.resolve(**request.arguments))


@pytest.fixture
def log(kafka: Kafka) -> Iterator[Counted]:
    with closing(kafka_log(kafka.bootstrap)) as log:
        yield Counted(log)


@pytest.fixture
def tps(kafka: Kafka) -> tuple[TopicPartition, TopicPartition]:
    """Two partitions with a record a minute, ten each."""
    topic = kafka.create_topic("minutes", partitions=2)
    records = [Record(b"v", b"k", p, timestamp_ms=T0 - 3_600_000 + i * MINUTE) for p in (0, 1) for i in range(10)]
    kafka.produce(topic, records)
    return TopicPartition(topic, 0), TopicPartition(topic, 1)


def test_times_come_from_the_log_and_are_asked_for_once(
    log: Counted, tps: tuple[TopicPartition, TopicPartition]
) -> None:
    one, two = tps
    work, ends = {one: lanes(2, 9), two: lanes(4)}, {one: 10, two: 10}
    state = State(Life(""))
    for _ in range(2):
        state, limited = limit(state, work, ends, 3 * MINUTE, log)
        assert reads(limited, ends) == {one: [6, 9], two: [6]}
    assert log.asked == 1
    assert limit(state, work, ends, None, log)[1] is work
    assert limit(state, {one: lanes(10)}, ends, 3 * MINUTE, log)[1] == {one: lanes(10)}
    assert log.asked == 1, "Kafka is not asked without the option, or where there is nothing to read"


def test_what_is_gone_or_no_record_has_no_time(
    kafka: Kafka, log: Counted, tps: tuple[TopicPartition, TopicPartition]
) -> None:
    one, two = tps
    delete_records(kafka, one, 5)
    with kafka.open_transaction(two.topic, [Record(b"first", b"k", 1)]):
        pass
    found = log.first_times({one: OffsetRange(0, 10), two: OffsetRange(11, 12)})
    assert found == {one: T0 - 3_600_000 + 5 * MINUTE}, "the marker at the end of a transaction is no record"


def test_a_marker_that_the_cleaner_has_emptied_is_passed(kafka: Kafka) -> None:
    topic = emptied_marker_log(kafka)
    tp = TopicPartition(topic, 0)
    with closing(kafka_log(kafka.bootstrap, {"isolation_level": "read_committed"})) as log:
        assert log.first_times({tp: OffsetRange(0, end(kafka, topic))}).keys() == {tp}


def test_a_query_reads_partitions_side_by_side_in_time(
    log: Counted, tps: tuple[TopicPartition, TopicPartition]
) -> None:
    one, two = tps
    settings = StandaloneSettings(max_lead_ms=2 * MINUTE)
    starting = AtOffsets({one: 0, two: 6})
    given = Assigned(dict.fromkeys(tps, (WHOLE,)))
    query = Standalone(given, starting, Cutting(1), log=log, clock=TestClock(), settings=settings)
    offset, seen = query.initial(), []
    while (end := query.next_offset(offset, Limits())) is not None:
        offset = end
        seen.append(tuple(max(lane.until for lane in offset.lanes[tp]) for tp in tps))
    assert seen == [(3, 6), (6, 6), (9, 9), (10, 10)]


def test_a_member_of_a_group_reads_partitions_side_by_side_in_time(
    members: Group, tps: tuple[TopicPartition, TopicPartition]
) -> None:
    one, two = tps
    settings = GroupSettings(members.name, capacity=2, session_ms=60_000, max_lead_ms=2 * MINUTE)
    service = members.service(Topics((one.topic,)), AtOffsets({one: 0, two: 6}), settings=settings)
    service.first_positions()
    seen, whys = [], set()
    for read in batches(service, StreamOffset(members.name)):
        seen.append(tuple({lane.until for lane in read.lanes[tp]} for tp in tps))
        whys |= {line.why for line in service.lanes.lines if line.tp == two}
    assert seen == [({3}, {6}), ({6}, {6}), ({9}, {9}), ({10}, {10})], "all lanes of a partition as far"
    assert members.state.stable == {one: 10, two: 10}
    assert "ceiling: max.lane.lead" in whys
