"""Members with joined topics, on a real Redis and Kafka: one owner and one task for each key of all of the topics."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import pytest

from coordinator.assignment.assignors.joined import Joined
from coordinator.assignment.rebalance import owned_ranges, union
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import GroupBusyError, NotCopartitionedError
from coordinator.member.service import Service
from coordinator.plan.packing import Task
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition, Topics
from group_services import UNLIMITED, Group
from kafka_logs import Silent
from streams import eventually, keyed
from topics import Kafka

PARTITIONS, MOST_PARTITIONS, LOOK_MS = 2, 4, 1_000
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
Pair = tuple[str, str]
Reads = tuple[tuple[str, ...], ...]


@pytest.fixture
def topics(kafka: Kafka) -> Pair:
    orders, payments = (kafka.create_topic(name, PARTITIONS) for name in ("orders", "payments"))
    return orders, payments


def joining(members: Group, topics: Pair) -> GroupSettings:
    return GroupSettings(members.name, session_ms=2_000, assignors=(Joined(topics),), demanding=True)


class Query:
    """A Spark query: the offset of its last batch, and a service for each of its reads."""

    def __init__(self, members: Group, topics: Pair, name: str, *reads: tuple[str, ...]) -> None:
        self._members, self._topics, self.name, self._reads = members, topics, name, reads or (topics,)
        self._ends = [StreamOffset(members.name)] * len(self._reads)
        self._lives = 0
        self.services = self._started()

    def _started(self) -> list[Service]:
        settings = joining(self._members, self._topics)
        self._lives += 1
        fields = {"host": self.name, "query": f"{self.name}, life {self._lives}"}
        made = [self._members.service(Topics(read), settings=settings, fields=fields) for read in self._reads]
        for service in made:
            service.first_positions()
        return made

    def turn(self) -> Iterator[tuple[Service, tuple[Task, ...]]]:
        """The next batch of each read, which the sink completes."""
        for number, service in enumerate(self.services):
            end = service.next_offset(self._ends[number], UNLIMITED)
            if end is not None:
                yield service, service.tasks(end)
                self._ends[number] = end

    def restart(self) -> None:
        """A kill, and a new life on the same checkpoint."""
        self.services = self._started()

    def leave(self) -> None:
        for service in self.services:
            service.leave()


def in_one_task(tasks: tuple[Task, ...]) -> None:
    """No hash of joined topics is in two tasks."""
    for one, other in combinations(tasks, 2):
        assert not [
            (s, x) for s in one for x in other if s.partition == x.partition and s.hashes.intersection(x.hashes)
        ]


def owns_both(service: Service, tasks: tuple[Task, ...], topics: Pair) -> None:
    """The member owns each hash that it reads in both topics."""
    owned = owned_ranges(service.state.owning.acquired.ownership)
    for s in (s for task in tasks for s in task):
        for topic in topics:
            mine = owned.get(TopicPartition(topic, s.partition), ())
            assert sum(p.size for h in mine if (p := h.intersection(s.hashes))) == s.hashes.size


def owners(members: Group, topic: str) -> Mapping[tuple[int, str], tuple[HashRange, ...]]:
    """The hashes of each partition number that each host owns in a topic."""
    state = members.state
    host = {name: fields.get("host", name) for name, fields in state.members.items()}
    of = [
        (tp.partition, host.get(m, m), h)
        for tp, found in state.owners.items()
        if tp.topic == topic
        for h, _, m in found
    ]
    return {(p, m): union(h for q, n, h in of if (q, n) == (p, m)) for p, m, _ in of}


class Walk:
    """Queries start, are killed and stopped at random; topics get records."""

    def __init__(self, members: Group, kafka: Kafka, topics: Pair, seed: int, reads: Reads) -> None:
        self._members, self._kafka, self._topics, self._reads = members, kafka, topics, reads
        self._random = random.Random(seed)
        self._sent = {TopicPartition(topic, p): 0 for topic in topics for p in range(PARTITIONS)}
        self._queries = [Query(members, topics, "q0", *reads)]

    def run(self) -> None:
        """Some steps. Then the topics are equal, each query owns the same of both, and everything is read."""
        for step in range(40):
            self._random.choice((self._turn, self._turn, self._turn, self._change))(step)
        for topic in self._topics:
            self._grow(topic, max(map(self._count, self._topics)))
        eventually(self._settled, "every query owns the same of both topics, and everything is read")

    def _change(self, step: int) -> None:
        match self._random.choice(("send", "start", "kill", "stop", "lose", "grow")):
            case "send":
                for tp in self._sent:
                    self._sent[tp] += 40
                    self._kafka.produce(tp.topic, [replace(r, partition=tp.partition) for r in keyed(40)])
            case "grow" if self._count(topic := self._random.choice(self._topics)) < MOST_PARTITIONS:
                self._grow(topic, self._count(topic) + 1)
            case "start" if len(self._queries) < 3:
                self._queries.append(Query(self._members, self._topics, f"q{step + 1}", *self._reads))
            case "kill":
                self._random.choice(self._queries).restart()
            case "lose":
                self._members.lose_everything()
            case "stop" if len(self._queries) > 1:
                self._queries.pop(self._random.randrange(len(self._queries))).leave()

    def _grow(self, topic: str, count: int) -> None:
        if count > (before := self._count(topic)):
            self._kafka.add_partitions(topic, count)
            self._sent |= {TopicPartition(topic, p): 0 for p in range(before, count)}

    def _count(self, topic: str) -> int:
        return sum(tp.topic == topic for tp in self._sent)

    def _turn(self, step: int) -> None:
        self._read(self._random.choice(self._queries))

    def _read(self, query: Query) -> None:
        for service, tasks in query.turn():
            if not self._reads:
                in_one_task(tasks)
                owns_both(service, tasks, self._topics)

    def _settled(self) -> bool:
        for query in self._queries:
            self._read(query)
        one, other = (owners(self._members, topic) for topic in self._topics)
        self._members.clock.skip(LOOK_MS)
        done = self._members.state.stable == self._sent
        return one == other and {host for _, host in one} == {q.name for q in self._queries} and done


@pytest.mark.parametrize("seed", SEEDS)
def test_both_sides_of_a_key_have_one_owner_and_one_task_while_queries_come_and_go(
    members: Group, kafka: Kafka, topics: Pair, seed: int
) -> None:
    Walk(members, kafka, topics, seed, ()).run()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reads_of_a_query_own_the_same_keys_of_both_topics_after_queries_have_come_and_gone(
    members: Group, kafka: Kafka, topics: Pair, seed: int
) -> None:
    Walk(members, kafka, topics, seed, ((topics[0],), (topics[1],))).run()


def test_two_reads_of_one_topic_in_a_query_are_refused(members: Group, topics: Pair) -> None:
    query = Query(members, topics, "q", topics, (topics[1],))
    with pytest.raises(GroupBusyError, match="two reads of one query"):
        list(query.turn())


def test_a_new_group_refuses_topics_with_different_numbers_of_partitions(members: Group, kafka: Kafka) -> None:
    orders, payments = kafka.create_topic("orders", PARTITIONS), kafka.create_topic("payments", PARTITIONS + 1)
    with pytest.raises(NotCopartitionedError, match=f"{orders} has 2, {payments} has 3") as refused:
        Query(members, (orders, payments), "q")
    assert "Remedy: give the topics equal numbers of partitions" in str(refused.value)


@pytest.mark.parametrize("apart", [False, True], ids=["one read", "a read for each topic"])
def test_a_topic_that_grows_first_waits_for_the_others(
    members: Group, kafka: Kafka, topics: Pair, caplog: pytest.LogCaptureFixture, *, apart: bool
) -> None:
    """Its older partitions are read on, also after a restart. Its new ones are read once all topics have as many."""
    orders, payments = topics
    query = Query(members, topics, "q", *([(orders,), (payments,)] if apart else []))
    list(query.turn())
    kafka.add_partitions(payments, PARTITIONS + 1)
    for topic, count in ((orders, PARTITIONS), (payments, PARTITIONS + 1)):
        kafka.produce(topic, [replace(r, partition=p) for p in range(count) for r in keyed(10)])
    waits = f"{payments}: 1 of 3 partitions wait, from 2 on: the other topics of copartition have fewer"

    def read(partitions: int) -> bool:
        members.clock.skip(LOOK_MS)
        list(query.turn())
        found = members.state.stable
        return all(
            found.get(TopicPartition(t, p)) == 10 for t in topics for p in range(partitions) if p < 2 or t == payments
        )

    eventually(lambda: read(PARTITIONS) and waits in caplog.text, "the older partitions are read, with a warning")
    query.restart()
    assert TopicPartition(payments, PARTITIONS) not in members.state.stable
    assert "growth" in members.events
    kafka.add_partitions(orders, PARTITIONS + 1)
    eventually(lambda: read(PARTITIONS + 1), "the new partitions are read as well")


def test_a_restart_after_a_loss_of_redis_knows_from_the_mirror_what_the_group_reads(
    members: Group, kafka: Kafka, topics: Pair
) -> None:
    query = Query(members, topics, "q")
    list(query.turn())
    for topic in topics:
        kafka.produce(topic, [replace(r, partition=p) for p in range(PARTITIONS) for r in keyed(10)])

    def read() -> bool:
        members.clock.skip(LOOK_MS)
        list(query.turn())
        return set(members.state.stable.values()) == {10}

    eventually(read, "all is read")
    query.leave()  # writes the mirror
    kafka.add_partitions(topics[1], PARTITIONS + 1)
    members.lose_everything()
    query.restart()
    eventually(read, "the older partitions are read on")


def test_a_member_that_was_away_while_the_topics_were_equal_reads_what_the_group_reads(
    members: Group, kafka: Kafka, topics: Pair
) -> None:
    """Both grew to 3, and one to 4 before the second query looks again."""
    first, other = Query(members, topics, "first"), Query(members, topics, "other")
    list(other.turn())
    for topic in topics:
        kafka.add_partitions(topic, 3)

    def placed() -> bool:
        members.clock.skip(LOOK_MS)
        list(first.turn())
        return all(TopicPartition(topic, 2) in members.state.stable for topic in topics)

    eventually(placed, "the first one has seen that both have grown")
    kafka.add_partitions(topics[1], 4)
    for topic in topics:
        kafka.produce(topic, [replace(r, partition=p) for p in range(3) for r in keyed(10)])

    def read() -> bool:
        members.clock.skip(LOOK_MS)
        for query in (first, other):
            list(query.turn())
        return set(members.state.stable.values()) == {10}

    eventually(read, "all partitions that both topics have are read")


def test_a_query_joins_after_a_growth_of_a_topic_whose_leaders_have_not_answered_yet(
    members: Group, kafka: Kafka, topics: Pair
) -> None:
    """The group knows since its founding that the topics were equal."""
    silent = {TopicPartition(topics[1], p) for p in range(PARTITIONS)}
    founder = members.service(Topics(topics), settings=joining(members, topics), log=Silent(members.log(), silent))
    founder.first_positions()
    kafka.add_partitions(topics[1], PARTITIONS + 1)
    Query(members, topics, "late")
    assert {tp.partition for tp in members.state.stable} == set(range(PARTITIONS))


def test_a_group_that_reads_more_partitions_of_one_topic_refuses_to_join_them(members: Group, kafka: Kafka) -> None:
    orders, payments = kafka.create_topic("orders", 4), kafka.create_topic("payments", 2)
    plain = members.started(Topics((orders, payments)))
    plain.leave()
    with pytest.raises(NotCopartitionedError, match=f"{orders} has 4, {payments} has 2"):
        list(Query(members, (orders, payments), "q").turn())
