"""A topic grows while producers write and members read: records of a key stay in order (rule: growth-order).

On a real broker and a real Redis, without Spark: members take turns, so that runs are the same every time.
"""

import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Self, cast

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.log import Log
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, TopicPartition, Topics
from group_services import Group, batches, run, slices_read
from growing_topics import Arrival, Producer, in_new_partitions, out_of_order, topic_of_two
from kafka_logs import kafka_log
from log_fixtures import rows, task
from streams import eventually
from topics import Kafka, Record
from verdict import require

SLOW = Limits(max_offsets=40)  # so that the older partitions keep a backlog


HOUR_MS = 3_600_000

DOUBLED = {4: "abc"}
BY_ONE = {3: "ab", 4: "cab"}  # one producer knows 2 until it knows 4
NOT_ALL = "not a multiple, so keys that moved between older partitions may be out of order"


def arrival(batch: int, row: Mapping[str, object]) -> Arrival:
    key, value = (cast(bytes, row[column]).decode() for column in ("key", "value"))
    return Arrival.of(batch, cast(int, row["partition"]), key, value)


def with_grace(members: Group, growth_grace_ms: int) -> GroupSettings:
    return GroupSettings(members.name, capacity=2, session_ms=60_000, growth_grace_ms=growth_grace_ms)


@dataclass
class Story:
    """Two members read a topic of two partitions that grows under three producers; they take turns."""

    members: Group
    topic: str
    growth_grace_ms: int
    producers: dict[str, Producer] = field(default_factory=lambda: {n: Producer(n, 2) for n in "abc"})
    readers: list[tuple[Service, StreamOffset]] = field(default_factory=list)
    delivered: list[Arrival] = field(default_factory=list)
    batches: int = 0

    def play(self, growths: Mapping[int, str]) -> Self:
        """The topic grows to these counts. After each, the named producers learn of it one by one.

        The second member joins after the first of them.
        """
        self.produce(100)
        self.join()
        self.turns(2)
        for partitions, learning in growths.items():
            self.members.kafka.add_partitions(self.topic, partitions)
            for name in learning:
                self.producers[name].partitions = partitions
                self.produce(16)
                self.turns(2)
                if len(self.readers) == 1:
                    self.join()
                self.produce(16)
                self.turns(3)
        eventually(self.everything_read, "everything is read")
        return self

    def join(self) -> None:
        service = self.members.started(Topics((self.topic,)), settings=with_grace(self.members, self.growth_grace_ms))
        self.readers.append((service, StreamOffset(self.members.name)))

    def produce(self, count: int) -> None:
        of_each = (p.records(count) for p in self.producers.values())
        self.members.kafka.produce(self.topic, [r for together in zip(*of_each, strict=True) for r in together])

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.readers = [(service, self._turn(service, at)) for service, at in self.readers]

    def _turn(self, service: Service, at: StreamOffset) -> StreamOffset:
        end = service.next_offset(at, SLOW)
        if end is None:
            return at
        read = rows(task(self.members.kafka, slices_read(service, end)))
        self.batches += 1
        self.delivered += [arrival(self.batches, row) for row in read]
        return end

    def everything_read(self) -> bool:
        self.turns(1)
        return len({(d.producer, d.number) for d in self.delivered}) == sum(p.written for p in self.producers.values())


def growths(members: Group) -> list[str]:
    """The reasons in the growth events."""
    entries = cast(list[tuple[str, dict[str, str]]], members.redis.xrange(GroupKeys(members.name).events))
    return [fields["why"] for _, fields in entries if fields["event"] == "growth"]


def test_a_doubled_topic_is_read_in_order_and_without_the_rule_it_would_not_be(members: Group, kafka: Kafka) -> None:
    without = Group(kafka, members.redis_url, f"{members.name}-without")
    with closing(without):
        story = Story(without, topic_of_two(kafka), growth_grace_ms=0).play(DOUBLED)
        assert len(out_of_order(story.delivered)) > 20, "without the rule keys are out of order"
        assert growths(without) == [
            f"{story.topic}: 2 -> 4 partitions; partitionGrowthGrace is 0, so key order across it is not kept"
        ]
    story = Story(members, topic_of_two(kafka), growth_grace_ms=HOUR_MS).play(DOUBLED)
    require(not out_of_order(story.delivered), out_of_order(story.delivered))
    promise = "key order across it is kept if it did not grow twice within seconds"
    assert growths(members) == [f"{story.topic}: 2 -> 4 partitions; {promise}"]


def test_a_topic_that_grows_by_one_twice_is_in_order_in_its_new_partitions_and_without_the_rule_it_would_not_be(
    members: Group, kafka: Kafka
) -> None:
    with closing(Group(kafka, members.redis_url, f"{members.name}-without")) as without:
        story = Story(without, topic_of_two(kafka), growth_grace_ms=0).play(BY_ONE)
        assert len(in_new_partitions(out_of_order(story.delivered))) > 5, "without the rule keys are out of order"
    story = Story(members, topic_of_two(kafka), growth_grace_ms=HOUR_MS).play(BY_ONE)
    wrong = in_new_partitions(out_of_order(story.delivered))
    require(not wrong, wrong)
    assert growths(members) == [f"{story.topic}: {step} partitions; {NOT_ALL}" for step in ("2 -> 3", "3 -> 4")]


def test_growth_to_no_multiple_warns_that_keys_between_older_partitions_may_be_out_of_order(
    members: Group, kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = topic_of_two(kafka)
    run(members, Topics((topic,)))
    kafka.add_partitions(topic, 3)
    with caplog.at_level(logging.WARNING, "coordinator"):
        run(members, Topics((topic,)))
    assert growths(members) == [f"{topic}: 2 -> 3 partitions; {NOT_ALL}"]
    assert [m for m in caplog.messages if f"from 2 to 3 partitions; {NOT_ALL}" in m] != []


def test_one_available_now_run_reads_a_topic_in_order_that_grew_between_runs(members: Group, kafka: Kafka) -> None:
    topic = topic_of_two(kafka)
    run(members, Topics((topic,)))
    assert [*members.state.growths] == [], "a new group sees no growth"
    old, new = Producer("one", 2), Producer("one", 4)
    kafka.produce(topic, old.records(16))
    kafka.add_partitions(topic, 4)
    kafka.produce(topic, new.records(16))
    service = members.aiming(Topics((topic,)), session_ms=60_000)
    read = [{s.partition for s in end.slices} for end in batches(service, StreamOffset(members.name))]
    assert read == [{0, 1}, {2, 3}]
    (growth,) = members.state.growths
    assert (growth.topic, growth.old, growth.new, growth.until_ms - growth.seen_ms) == (topic, 2, 4, 600_000)


def test_a_topic_that_doubled_twice_between_runs_is_read_in_order(members: Group, kafka: Kafka) -> None:
    """The group sees one growth, from 1 to 4 partitions; a key was in partition 1 before it came to 3."""
    topic = kafka.create_topic("growing", partitions=1)
    run(members, Topics((topic,)))
    for partitions in (2, 4):
        kafka.add_partitions(topic, partitions)
        kafka.produce(topic, Producer("one", partitions).records(16))
    service = members.aiming(Topics((topic,)), session_ms=60_000)
    read = [{s.partition for s in end.slices} for end in batches(service, StreamOffset(members.name))]
    assert read == [{0}, {1}, {2, 3}]


def committed_reads(members: Group) -> Log:
    return kafka_log(members.kafka.bootstrap, {"isolation_level": "read_committed"})


def test_available_now_leaves_a_gated_partition_out_and_ends(members: Group, kafka: Kafka) -> None:
    """A transaction is open in an older partition: the end of the older records is not known yet."""
    topic = topic_of_two(kafka)
    run(members, Topics((topic,)))
    with kafka.open_transaction(topic, [Record(b"first", b"a", 0)]):
        kafka.add_partitions(topic, 4)
        kafka.produce(topic, [Record(b"second", b"a", 2)])
        with closing(committed_reads(members)) as log:
            service = members.aiming(Topics((topic,)), log=log, session_ms=60_000)
            assert [e.slices for e in batches(service, StreamOffset(members.name))] == []
            assert {line.why for line in service.lanes.lines if line.tp.partition == 2} == {"ceiling: older partitions"}
            service.leave()
    with closing(committed_reads(members)) as log:
        older = TopicPartition(topic, 0)
        eventually(lambda: log.bounds([older])[older].end == 2, "the transaction's marker is in the log")
        service = members.aiming(Topics((topic,)), log=log, session_ms=60_000)
        assert [{s.partition for s in e.slices} for e in batches(service, StreamOffset(members.name))] == [{0}, {2}]


def test_once_the_grace_is_over_a_new_partition_waits_for_the_recorded_ends_only(members: Group, kafka: Kafka) -> None:
    topic, producer = topic_of_two(kafka), Producer("one", 2)
    service = members.started(Topics((topic,)), settings=with_grace(members, 1))
    kafka.produce(topic, producer.records(160))
    seen = [StreamOffset(members.name)]
    kafka.add_partitions(topic, 4)
    kafka.produce(topic, Producer("other", 4).records(16))

    def recorded() -> bool:
        end = service.next_offset(seen[-1], Limits(max_offsets=4))
        if end is not None:
            service.tasks(end)
            seen.append(end)
        return bool(members.state.growths and members.state.growths[0].ends)

    eventually(recorded, "the ends are recorded")
    (growth,) = members.state.growths
    assert growth.ends == (84, 84), "80 of the one producer, 4 of the other, in each"
    kafka.produce(topic, producer.records(160))
    # they are at 84 at most, and a batch later at 124; the one after that has the new partitions
    while max((s.offsets.until for s in seen[-1].slices if s.partition < 2), default=0) < 125:
        end = service.next_offset(seen[-1], SLOW)
        assert end is not None
        service.tasks(end)
        seen.append(end)
    assert {partition for end in seen for partition in {s.partition for s in end.slices}} == {0, 1, 2, 3}


def test_members_record_growths_again_after_a_loss_of_state(members: Group, kafka: Kafka) -> None:
    topic = topic_of_two(kafka)
    run(members, Topics((topic,)))
    kafka.add_partitions(topic, 4)
    service = members.started(Topics((topic,)), session_ms=300)
    at = StreamOffset(members.name)
    service.next_offset(at, SLOW)
    before = members.state.growths
    assert [g.new for g in before] == [4]
    members.lose_everything()
    service.next_offset(at, SLOW)
    assert members.state.growths == before


def test_the_mirror_shows_a_growth_that_no_member_remembers(members: Group, kafka: Kafka) -> None:
    topic = topic_of_two(kafka)
    run(members, Topics((topic,)))
    kafka.add_partitions(topic, 4)
    run(members, Topics((topic,)))
    before = members.state.growths
    assert [g.new for g in before] == [4]
    members.lose_everything()
    run(members, Topics((topic,)))
    assert members.state.growths == before


def test_the_mirror_shows_a_growth_that_came_while_redis_was_empty_and_no_member_ran(
    members: Group, kafka: Kafka
) -> None:
    topic = topic_of_two(kafka)
    run(members, Topics((topic,)))
    members.lose_everything()
    kafka.add_partitions(topic, 4)
    settings = GroupSettings(members.name, session_ms=300, on_state_loss="earliest")
    members.service(Topics((topic,)), settings=settings).first_positions()
    assert [(g.old, g.new, g.kept) for g in members.state.growths] == [(2, 4, False)], "nobody knows the steps"


def test_a_member_with_assign_hides_no_growth_from_the_others(members: Group, kafka: Kafka) -> None:
    """It is the first that sees the new partitions. Keys moved there, and have older records that nobody has read."""
    topic = topic_of_two(kafka)
    first = members.started(Topics((topic,)), session_ms=60_000)
    kafka.produce(topic, Producer("one", 2).records(16))
    kafka.add_partitions(topic, 4)
    kafka.produce(topic, Producer("one", 4).records(16))
    members.started(Assigned({TopicPartition(topic, p): (WHOLE,) for p in range(4)}), session_ms=60_000)
    assert [(g.old, g.new) for g in members.state.growths] == [(2, 4)]
    members.clock.skip(2_000)
    read = [{s.partition for s in end.slices} for end in batches(first, StreamOffset(members.name))]
    assert read == [{0, 1}, {2, 3}]


def test_a_member_that_does_not_read_the_new_partitions_records_them(members: Group, kafka: Kafka) -> None:
    topic = topic_of_two(kafka)
    member = members.started(Assigned({TopicPartition(topic, p): (WHOLE,) for p in range(2)}), session_ms=60_000)
    kafka.add_partitions(topic, 4)
    members.clock.skip(2_000)
    assert member.next_offset(StreamOffset(members.name), SLOW) is None
    assert [(g.old, g.new) for g in members.state.growths] == [(2, 4)]
    assert members.state.topics[topic].partitions == 2, "no member is assigned the others"
