"""A partition at the cap of individual commits, on a real Kafka and Redis: a member that waits gets work."""

from dataclasses import dataclass

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.commits.commit_api import CommitApi
from coordinator.errors import MaxIndividualCommitReachedError
from coordinator.member.service import Service
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.planning import Cutting
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.replies import Joining
from coordinator.redis.store import store_of
from coordinator.values.offset_spec import Earliest
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, StillClock, batch, subscribed
from streams import eventually, keyed

SLOW_MS, QUICK_MS = 900.0, 1.0


@dataclass
class Worker:
    """A member whose tasks report the times that a test chooses."""

    service: Service
    end: StreamOffset

    def asks(self) -> bool:
        """One call of `latestOffset`: whether it returns a batch, which the sink completes before the next call."""
        end = self.service.next_offset(self.end, UNLIMITED)
        self.end = end or self.end
        return end is not None

    def work(self, slow: HashRange | None = None) -> None:
        """A batch, whose tasks report what each record took, by its hash."""
        self.end = batch(self.service, self.end)
        for s in (s for task in self.service.tasks(self.end) for s in task):
            ms = len(s.offsets) * (SLOW_MS if slow and s.hashes.lo in slow else QUICK_MS)
            self.service.receive(
                [SliceCost(s.topic_partition, s.hashes, s.offsets, len(s.offsets), 10, 0.0, ms, (), True)]
            )


def worker(members: Group, tp: TopicPartition) -> Worker:
    settings = GroupSettings(
        members.name, capacity=4, session_ms=60_000, batch_budget_ms=1_000, max_individual_commits=1
    )
    store, me = store_of(ScriptCalls.of(members.client, settings)), Joining({"host": "h"})
    log, clock = members.log(), members.clock
    service = Service(settings, subscribed(tp), Earliest(), Cutting(4), store=store, log=log, clock=clock, me=me)
    return Worker(service, StreamOffset(members.name))


def more(members: Group, tp: TopicPartition, count: int) -> None:
    """Records come, and a second passes."""
    members.kafka.produce(tp.topic, keyed(count))
    members.clock.skip(1_000)


def owned(members: Group, tp: TopicPartition) -> dict[str, HashRange]:
    """The one range that each member owns."""
    return {member: hashes for hashes, _, member in members.state.owners[tp]}


def halves(hashes: HashRange, beside: HashRange) -> list[HashRange]:
    """The half of a range that is next to another one, then the other half."""
    middle = (hashes.lo + hashes.hi) // 2
    found = [HashRange(hashes.lo, middle), HashRange(middle + 1, hashes.hi)]
    return found if beside.lo < hashes.lo else found[::-1]


def acknowledge(members: Group, tp: TopicPartition, member: str, hashes: HashRange, from_end: int) -> int:
    """A member commits one offset for some of its hashes; returns the individual commits that the partition holds."""
    end = members.log().bounds([tp])[tp].end
    members.store.positions.report_ends({tp: end}, {})
    done = OffsetRange(end - from_end, end - from_end + 1)
    with CommitApi.of_member(members.redis_url, members.name, member) as commits:
        (lane,) = commits.lanes[tp]
        return commits.commit(tp, [done], lanes=[Owned(hashes, lane.epoch)]).held


@pytest.fixture
def pair(members: Group, tp: TopicPartition) -> tuple[Worker, Worker]:
    """Two members that own one half each."""
    return halved(members, tp)


def halved(members: Group, tp: TopicPartition) -> tuple[Worker, Worker]:
    """Two new members that own one half each."""
    members.clock = StillClock()
    one, two = worker(members, tp), worker(members, tp)
    one.service.first_positions()
    one.work()
    assert not two.asks(), "it joins"
    assert not one.asks(), "it releases one half"
    assert not two.asks(), "it acquires that half"
    return one, two


def test_at_the_cap_a_member_that_waits_gets_a_part_of_the_range_behind(
    members: Group, tp: TopicPartition, pair: tuple[Worker, Worker]
) -> None:
    """One member has read all records. Of the other's half, the keys next to it are slow."""
    ahead, behind = pair
    ours, theirs = (owned(members, tp)[each.service.member] for each in pair)
    slow, quick = halves(theirs, beside=ours)
    for _ in range(3):
        more(members, tp, 200)
        ahead.work()
        behind.work(slow)
    more(members, tp, 20)
    assert acknowledge(members, tp, behind.service.member, quick, 5) == 1
    assert not ahead.asks(), "the partition is full"
    assert {line.why for line in ahead.service.lanes.lines} == {"ceiling: individual commits"}

    with pytest.raises(MaxIndividualCommitReachedError):
        acknowledge(members, tp, behind.service.member, quick, 3)
    assert not ahead.asks(), "it computes the assignment that is due"
    behind.work(slow)
    assert ahead.asks(), "it waits no more"
    given = ahead.end.slices
    assert all(s.hashes.lo in slow for s in given)
    assert {s.offsets.start for s in given} == {members.state.stable[tp]}


def test_at_the_cap_without_slow_keys_no_range_moves_before_its_owner_has_died(
    members: Group, tp: TopicPartition
) -> None:
    """The member behind is in a batch: it heartbeats, commits nothing, and then dies."""
    ahead, behind = halved(members, tp)
    ours, theirs = (owned(members, tp)[each.service.member] for each in (ahead, behind))
    more(members, tp, 20)
    ahead.work()
    behind.work()
    acknowledge(members, tp, behind.service.member, theirs, 5)
    with pytest.raises(MaxIndividualCommitReachedError):
        acknowledge(members, tp, behind.service.member, theirs, 3)
    generation = int(members.state.meta["generation"])
    for _ in range(5):
        members.clock.skip(1_000)
        behind.service.heartbeat()
        assert not ahead.asks(), "it waits"
        with pytest.raises(MaxIndividualCommitReachedError):
            acknowledge(members, tp, behind.service.member, theirs, 3)
    assert owned(members, tp) == {ahead.service.member: ours, behind.service.member: theirs}
    assert int(members.state.meta["generation"]) == generation + 1, "one assignment, however often the cap refuses"

    stuck = members.state.stable[tp]
    members.lose(behind.service)
    eventually(lambda: ahead.asks() and behind.service.member not in owned(members, tp), "the lease of the dead ends")
    assert min(s.offsets.start for s in ahead.end.slices if s.hashes.lo in theirs) == stuck
