"""Members with different views of the cluster, on real servers, without Spark (rule: current-cluster)."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from applications import Application, application, owners, take_turns, times_read
from coordinator.values.subscription import Pattern, Subscription, Topic, TopicPartition, Topics
from group_services import Group, TestClock
from kafka_logs import Through
from streams import keyed


@dataclass
class Behind(Through):
    """A log whose broker, while it is `held`, returns its last topics again."""

    held: bool = False
    last_topics: dict[str, Topic] = field(default_factory=dict)

    def topics(self, subscription: Subscription, *, quick: bool = False) -> dict[str, Topic]:
        if not self.held:
            self.last_topics = self.log.topics(subscription, quick=quick)
        return self.last_topics


def test_a_member_with_an_older_view_records_no_older_count_and_catches_up(members: Group, tp: TopicPartition) -> None:
    behind, added = Behind(members.log()), TopicPartition(tp.topic, 1)
    ahead = application(members, Topics((tp.topic,)))
    late = application(members, Topics((tp.topic,)), log=behind)
    both = (ahead, late)
    take_turns(both, lambda: len(owners(members.state).get(tp, ())) == 2, "both share the one partition")
    behind.held = True
    members.kafka.add_partitions(tp.topic, 2)
    members.kafka.produce(tp.topic, keyed(20))
    take_turns(both, lambda: added in members.state.stable, "the other one has seen the new partition")
    for _ in range(3):
        late.step()
        assert members.state.topics[tp.topic].partitions == 2
    generation = members.state.meta["generation"]
    newcomer = application(members, Topics((tp.topic,)))  # now an assignment is due, and who is behind computes it
    newcomer.service.tasks(newcomer.done)
    take_turns([late], lambda: members.state.meta["generation"] != generation, "who is behind computes")
    assert {tp.partition for r in members.store.members.assignment().values() for tp in r} == {0, 1}, (
        "of what the group knows"
    )
    newcomer.service.leave()
    behind.held = False
    take_turns(both, lambda: sum(members.state.stable.values()) == 25, "and then it reads its part of both")
    assert times_read(both, tp) + times_read(both, added) == 25


class StoppedClock(TestClock):
    """Nothing that was seen ever gets old."""

    def now_ms(self) -> int:
        return 1_000_000


def test_a_member_reads_metadata_again_once_it_is_assigned_an_unknown_partition(
    members: Group, tp: TopicPartition
) -> None:
    first, added = application(members, Topics((tp.topic,))), TopicPartition(tp.topic, 1)
    with closing(Group(members.kafka, members.redis_url, members.name, StoppedClock())) as elsewhere:
        second = application(elsewhere, Topics((tp.topic,)))
        both = (first, second)
        take_turns(both, lambda: len(owners(members.state).get(tp, ())) == 2, "both share the one partition")
        members.kafka.add_partitions(tp.topic, 2)
        take_turns(both, lambda: len(owners(members.state).get(added, ())) == 1, "one of them owns the new partition")
        take_turns(both, lambda: {*owners(members.state)[tp], *owners(members.state)[added]} == members_of(both), "all")


def members_of(applications: Sequence[Application]) -> set[str]:
    return {a.member for a in applications}


@pytest.mark.parametrize("by_pattern", [False, True], ids=["by name", "by pattern"])
def test_members_that_subscribe_to_different_topics_get_only_those(members: Group, by_pattern: bool) -> None:
    narrow, wide = (TopicPartition(members.kafka.create_topic(name), 0) for name in ("narrow", "wide"))
    for tp in (narrow, wide):
        members.kafka.produce(tp.topic, keyed(10))
    both = Pattern(f"^({narrow.topic}|{wide.topic})$") if by_pattern else Topics((narrow.topic, wide.topic))
    of_narrow, of_both = application(members, Topics((narrow.topic,))), application(members, both)
    everybody: tuple[Application, ...] = (of_narrow, of_both)
    done = {narrow: 10, wide: 10}
    take_turns(everybody, lambda: members.state.stable == done, "both topics are read")
    take_turns(
        everybody, lambda: owners(members.state)[narrow] == [of_narrow.member], "who has one topic has all of it"
    )
    assert owners(members.state)[wide] == [of_both.member]
    assert times_read([of_narrow], wide) == 0
    assert times_read(everybody, narrow) == times_read(everybody, wide) == 10


def test_a_topic_that_matches_later_goes_to_the_member_with_the_pattern(members: Group, tp: TopicPartition) -> None:
    by_name = application(members, Topics((tp.topic,)))
    by_pattern = application(members, Pattern(f"^{tp.topic}"))
    everybody = (by_name, by_pattern)
    take_turns(everybody, lambda: members.state.stable == {tp: 5}, "the first topic is read")
    found = TopicPartition(members.kafka.create_topic(f"{tp.topic}-more"), 0)
    members.kafka.produce(found.topic, keyed(4))
    take_turns(everybody, lambda: members.state.stable.get(found) == 4, "the topic found later is read")
    assert owners(members.state)[found] == [by_pattern.member]
