"""Ranges of a dead member: the next owner reads a little of them at first, then twice as much."""

from dataclasses import dataclass
from typing import cast

import pytest

from coordinator.member.service import Service
from coordinator.plan.cost.pace import START_RECORDS
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.lane_lines import lines_of
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, StillClock, batch, subscribed
from streams import eventually, keyed


def keys_of(end: StreamOffset) -> float:
    """Which part of all keys a batch is of."""
    return sum(lane.hashes.share for _, lane in end)


def most_above(end: StreamOffset, kept: HashRange) -> int:
    """The records that a batch reads of lanes beyond those hashes, at most, if keys are even."""
    return sum(round((x.until - x.position) * x.hashes.share) for _, x in end if x.hashes.lo > kept.hi)


@dataclass
class Worker:
    """A member whose batches take a set time, which only the clock measures."""

    service: Service
    members: Group
    topic: str
    end: StreamOffset

    def work(self, ms: int = 0) -> StreamOffset:
        """Two records come, and a batch is worked on."""
        self.members.kafka.produce(self.topic, keyed(2))
        self.end = batch(self.service, self.end)
        self.members.clock.skip(ms)
        return self.end


def test_ranges_taken_over_by_force_start_small_and_double(members: Group, tp: TopicPartition) -> None:
    members.clock, nothing = StillClock(), StreamOffset(members.name)
    ours, other = members.service(subscribed(tp), session_ms=60_000), members.service(subscribed(tp), session_ms=2_000)
    ours.first_positions()
    worker = Worker(ours, members, tp.topic, nothing)
    for more in (0, 0, 1_000, 9_000):  # by now so many may be read at once
        members.kafka.produce(tp.topic, keyed(more))
        worker.work()

    def halved() -> bool:
        worker.work()
        other.heartbeat()
        end = other.next_offset(nothing, UNLIMITED) or nothing
        other.tasks(end)
        return keys_of(end) == pytest.approx(0.5)

    eventually(halved, "the other one has begun a batch, and reports nothing more")
    lanes = sorted(lane.hashes for _, lane in worker.end)
    kept = HashRange(lanes[0].lo, lanes[-1].hi)
    members.kafka.produce(tp.topic, keyed(20_000))
    eventually(lambda: keys_of(worker.work()) == pytest.approx(1), "its session is over, and all is ours")
    first = worker.end
    members.clock.skip(3_200)
    assert [most_above(end, kept) for end in (first, worker.work())] == [START_RECORDS, 2 * START_RECORDS]
    text = cast(dict[str, str], members.redis.hgetall(GroupKeys(members.name).lanes))[ours.member]
    assert {(x.hashes.lo > kept.hi, x.why) for x in lines_of(text)} == {(True, "slow start"), (False, "all there is")}
