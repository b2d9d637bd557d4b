"""The leader of a partition does not answer (rule: silent-leader). On real servers, without Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from coordinator.member.decision import Seen
from coordinator.member.low_ends import judged
from coordinator.member.service import Service
from coordinator.member.state import LogView
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import Bounds, TopicPartition
from group_services import Group, batch, read, records, subscribed
from kafka_logs import Through
from topics import Record


@dataclass
class Silent(Through):
    """A real log; the leaders of some partitions do not answer, for so many looks."""

    partitions: set[TopicPartition] = field(default_factory=set)
    looks: int = 1_000_000

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        self.looks -= 1
        away = self.partitions if self.looks >= 0 else set()
        return self.bounds([tp for tp in partitions if tp not in away], beginnings)


@pytest.fixture
def two(members: Group) -> tuple[TopicPartition, TopicPartition]:
    """Two partitions of four records each."""
    topic = members.kafka.create_topic("silent", partitions=2)
    for partition in (0, 1):
        members.kafka.produce(topic, [Record(b"%d" % n, b"key-%d" % n, partition) for n in range(4)])
    return TopicPartition(topic, 0), TopicPartition(topic, 1)


def begun(members: Group, tp: TopicPartition, log: Silent) -> tuple[Service, StreamOffset]:
    """A member, and the end of its first batch: it has seen all log ends."""
    member = members.service(subscribed(tp), log=log)
    member.first_positions()
    return member, batch(member, StreamOffset(members.name))


def more(members: Group, *partitions: TopicPartition) -> None:
    for tp in partitions:
        members.kafka.produce(tp.topic, [Record(b"%d" % n, b"key-%d" % n, tp.partition) for n in range(4)])


def test_all_other_partitions_are_read__and_the_silent_one_once_it_answers(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    log = Silent(members.log())
    member, end = begun(members, here, log)
    log.partitions = {away}
    more(members, here, away)
    end = batch(member, end)
    assert records(end) == read(here, 4, 8)
    log.partitions = set()
    assert records(batch(member, end)) == read(away, 4, 8)


def test_another_member_has_read_beyond_the_last_known_end__nothing_is_lost_and_nobody_is_asked() -> None:
    tp = TopicPartition("t", 0)
    log, bounds = judged(LogView(bounds={tp: Bounds(0, 4, 1)}, silent=frozenset({tp})), {tp: 8}, (), Seen(0))
    assert (dict(bounds), dict(log.low), set(log.unsure)) == ({tp: Bounds(0, 8, 1)}, {}, {tp})


@pytest.mark.parametrize("looks", [1, 3])
def test_a_leader_that_has_never_answered__the_start_waits_for_it(
    members: Group, two: tuple[TopicPartition, TopicPartition], looks: int
) -> None:
    here, away = two
    member = members.service(subscribed(here), log=Silent(members.log(), {away}, looks))
    member.first_positions()
    assert records(batch(member, StreamOffset(members.name))) == read(here, 0, 4) | read(away, 0, 4)


def test_available_now_waits_for_the_end_of_each_log(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    log = Silent(members.log())
    member, end = begun(members, here, log)
    more(members, away)
    log.partitions, log.looks = {away}, 3
    member.set_targets()
    assert member.state.pace.targets == {here: 4, away: 8}
    assert records(batch(member, end)) == read(away, 4, 8)
