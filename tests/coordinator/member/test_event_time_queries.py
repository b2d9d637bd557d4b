"""Queries on a real broker keep their lanes within `maxLaneLead` of one another (rule: lane-lead)."""

from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.member.decision import NotSeen, Seen
from coordinator.member.limits import Limits
from coordinator.member.reading import keep_lead
from coordinator.member.requests import ReadFirstTimes, ResolveOffsets
from coordinator.member.standalone import Standalone
from coordinator.member.state import Life, State
from coordinator.plan.planning import Cutting, OwnedRanges
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.offset_spec import AtOffsets
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Assigned, TopicPartition, Topics
from group_services import Group, TestClock, batches
from kafka_logs import Through, kafka_log
from lane_leads import MINUTE, lanes, minutes, reads
from states import call
from topics import Kafka


class Counted(Through):
    """A log that counts how often it is asked for times."""

    asked = 0

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int | None]:
        self.asked += 1
        return super().first_times(stretches)


def limit(
    state: State, work: OwnedRanges, ends: Mapping[TopicPartition, int], most_ms: int | None, log: Counted
) -> tuple[State, OwnedRanges]:
    """The limit, with the answers of a real log."""
    seen = Seen(0)
    while True:
        try:
            return keep_lead(state, work, ends, seen, call(max_lead_ms=most_ms))
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
    return minutes(kafka)


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


def test_a_query_reads_partitions_side_by_side_in_time(
    log: Counted, tps: tuple[TopicPartition, TopicPartition]
) -> None:
    one, two = tps
    settings = GroupSettings("", max_lead_ms=2 * MINUTE)
    starting = AtOffsets({one: 0, two: 6})
    given = Assigned(dict.fromkeys(tps, (WHOLE,)))
    query = Standalone(settings, given, starting, Cutting(1), log=log, clock=TestClock())
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
    service = members.started(Topics((one.topic,)), AtOffsets({one: 0, two: 6}), settings=settings)
    seen, whys = [], set()
    for read in batches(service, StreamOffset(members.name)):
        seen.append(tuple({lane.until for lane in read.lanes[tp]} for tp in tps))
        whys |= {line.why for line in service.lanes.lines if line.tp == two}
    assert seen == [({3}, {6}), ({6}, {6}), ({9}, {9}), ({10}, {10})], "all lanes of a partition as far"
    assert members.state.stable == {one: 10, two: 10}
    assert "ceiling: maxLaneLead" in whys
