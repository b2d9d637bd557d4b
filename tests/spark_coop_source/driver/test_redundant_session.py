"""The replica set of a query's process, on real servers: chosen, or named by the checkpoint."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import cast

import pytest

from coordinator.assignment.replica_sets import names
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, TestClock, subscribed
from spark_coop_source.driver.reader_process import GroupSession
from spark_coop_source.driver.redundant_session import RedundantSession
from topics import Kafka

SESSION_MS = 60_000


class Member:
    """The session of one set, as `GroupSession` has it, without threads and processes."""

    def __init__(self, service: Service) -> None:
        self.service, self.query, self.name = service, service, str(service.setup.settings.group)
        self.next_offset, self.tasks, self.settle = service.next_offset, service.tasks, service.settle
        self.end = service.leave

    def initial(self) -> StreamOffset:
        self.service.first_positions()
        return StreamOffset(self.name)


class Sets:
    """Two replica sets of one topic, and the processes of queries on them."""

    def __init__(self, kafka: Kafka, redis_url: str, group: str, tp: TopicPartition, stack: ExitStack) -> None:
        self._stack, self._url, self._tp, self._clock = stack, redis_url, tp, TestClock()
        made = [stack.enter_context(closing(Group(kafka, redis_url, name, self._clock))) for name in names(group, 2)]
        self.groups = {each.name: each for each in made}

    def _opened(self, name: str) -> GroupSession:
        service = self.groups[name].service(subscribed(self._tp), session_ms=SESSION_MS)
        return cast(GroupSession, Member(service))

    def process(self) -> RedundantSession:
        client = self._stack.enter_context(closing(RedisClient(self._url)))
        return RedundantSession(tuple(self.groups), SESSION_MS, self._opened, client, self._clock)


@pytest.fixture
def sets(kafka: Kafka, redis_url: str, group: str, tp: TopicPartition) -> Iterator[Sets]:
    with ExitStack() as stack:
        yield Sets(kafka, redis_url, group, tp, stack)


def planned(process: RedundantSession) -> StreamOffset:
    end = process.next_offset(process.initial(), UNLIMITED)
    assert end is not None
    return end


def test_queries_that_start_after_one_another_join_different_sets(sets: Sets) -> None:
    assert [planned(sets.process()).group for _ in sets.groups] == list(sets.groups)


def test_a_replay_of_the_first_batch_goes_on_in_the_set_that_the_checkpoint_names(sets: Sets) -> None:
    """Spark asks for the initial offset first. The lease of the life before is no reason for another set."""
    end = planned(sets.process())
    again = sets.process()
    again.initial()
    assert {s.offsets.until for task in again.tasks(end) for s in task} == {5}
    assert again.next_offset(end, UNLIMITED) is None
    named = sets.groups[str(end.group)].state
    assert named.stable == dict.fromkeys(end.lanes, 5)
    assert list(named.leases_ms) == [end.member]
