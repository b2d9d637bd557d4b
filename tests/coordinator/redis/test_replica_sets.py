"""The choice of a replica set on a real Redis, and a member that moves from one to another."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from coordinator.assignment.policies import Policy
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replica_sets import adopt_policies, chosen_set, first_of, members_of, siblings
from coordinator.values.subscription import Topics
from group_services import UNLIMITED, Group
from streams import eventually, keyed
from topics import Kafka

HOLD_MS = 60_000


@pytest.fixture
def client(redis_url: str) -> Iterator[RedisClient]:
    with closing(RedisClient(redis_url)) as made:
        yield made


@pytest.fixture
def sets(kafka: Kafka, redis_url: str, group: str) -> Iterator[list[Group]]:
    """Two replica sets."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Group(kafka, redis_url, name))) for name in (group, f"{group}@2")]


def planned(group: Group, member: Service) -> StreamOffset:
    """The first batch of a member."""
    member.first_positions()
    end = member.next_offset(StreamOffset(group.name), UNLIMITED)
    assert end is not None
    return end


def test_members_that_start_at_once_choose_different_sets(client: RedisClient, group: str) -> None:
    sets = [group, f"{group}@2", f"{group}@3"]
    assert [chosen_set(client, sets, HOLD_MS) for _ in sets] == sets
    assert chosen_set(client, sets, HOLD_MS) == group, "all are held: then the first"


def test_a_younger_set_has_the_policies_of_the_first_one(client: RedisClient, sets: list[Group]) -> None:
    """Rule: one-member-a-set."""
    first, second = sets
    names, topic = [first.name, second.name], first.kafka.create_topic("policed")
    first.service(Topics((topic,))).first_positions()
    first.policies.set_policy({"accept.range.fetch:orders": "false", "accept.individual.commit": "false"})
    first.policies.copy("id-p 1", Policy(refused_topics=frozenset({"bills"})))
    second.policies.set_policy({"accept.individual.commit": "true"})
    for _ in range(2):
        adopt_policies(client, names, second.name)
        assert second.policies.policy() == Policy(refused_topics=frozenset({"orders"}))
    adopt_policies(client, names, first.name)
    assert first.policies.policy().refused_topics == {"orders"}


def test_a_member_that_chose_and_never_joined_holds_its_set_for_a_time(client: RedisClient, group: str) -> None:
    sets = [group, f"{group}@2"]
    assert chosen_set(client, sets, 1) == group
    with client.reading() as redis:
        while redis.exists(GroupKeys(group).chosen):
            time.sleep(0.01)
    assert chosen_set(client, sets, 1) == group


def test_the_choice_counts_members_with_a_lease(sets: list[Group], kafka: Kafka, client: RedisClient) -> None:
    topic = kafka.create_topic("sets")
    names = [s.name for s in sets]
    member = sets[0].service(Topics((topic,)), session_ms=60_000)
    kafka.produce(topic, keyed(10))
    planned(sets[0], member)
    assert members_of(client, names).sets == {names[0]: {member.member: 2}, names[1]: {}}
    assert chosen_set(client, names, HOLD_MS) == names[1]
    assert chosen_set(client, names, HOLD_MS) == names[0], "the other one is held"
    member.leave()


def test_a_member_whose_lease_has_ended_does_not_count(sets: list[Group], kafka: Kafka, client: RedisClient) -> None:
    topic = kafka.create_topic("sets")
    kafka.produce(topic, keyed(10))
    dies = sets[0].service(Topics((topic,)), session_ms=1_000)
    planned(sets[0], dies)
    eventually(lambda: members_of(client, [sets[0].name]).sets == {sets[0].name: {}}, "its lease ends")
    assert dies.member in sets[0].state.members, "it is still in the group"


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        pytest.param(["g", "g@10", "g@2", "h@2"], ("g@2", "g@10"), id="in order of numbers"),
        pytest.param(["g", "g@", "g@x", "g@2@3", "g2", "g@02", "g@２"], (), id="other names"),
    ],
)
def test_replica_sets_of_a_group_are_found_by_name(groups: list[str], found: tuple[str, ...]) -> None:
    assert siblings("g", groups) == found


@pytest.mark.parametrize(
    ("name", "first"), [("g@2", "g"), ("h@2", None), ("g", None), ("g@x", None), ("@2", None), ("g@２", None)]
)
def test_a_replica_set_belongs_to_the_group_of_its_name(name: str, first: str | None) -> None:
    assert first_of(name, ["g", "g@2"]) == first
