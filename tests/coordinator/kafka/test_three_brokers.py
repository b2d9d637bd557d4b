"""Brokers that die or freeze: what has a leader is answered, the rest waits. Real brokers, without Spark."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from functools import partial

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from coordinator.errors import CoopKafkaError, KafkaUnavailableError
from coordinator.kafka.connection import BRIEF_S
from coordinator.kafka.log import KafkaLog
from coordinator.values.log import Log
from coordinator.values.offset_spec import Latest
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import POLICIES, Pattern, TopicPartition, Topics
from log_fixtures import lane, task
from log_lines import own_lines
from spark_coop_source.fetch.patience import Patience
from spark_coop_source.task.readings import Readings
from streams import eventually
from three_brokers import ThreeBrokers
from topics import Record

RECORDS = 30
PATIENT_MS = 120_000


@pytest.fixture
def topic(three_brokers: ThreeBrokers) -> str:
    made = three_brokers.topic()
    for partition in range(3):
        three_brokers.kafka.produce(made, [Record(b"%d" % n, b"k%d" % n, partition) for n in range(RECORDS)])
    return made


@pytest.fixture
def log(three_brokers: ThreeBrokers) -> Iterator[KafkaLog]:
    arguments = {"bootstrap_servers": three_brokers.brokers.bootstrap}
    with closing(KafkaLog(arguments, retries=3, retry_interval_ms=200, patience_ms=PATIENT_MS)) as opened:
        yield opened


def ends(log: KafkaLog, topic: str) -> dict[int, int]:
    """The ends of the partitions whose leader answers, as a query looks at them."""
    log.topics(Topics((topic,)))
    return {tp.partition: b.end for tp, b in log.bounds_now([TopicPartition(topic, p) for p in range(3)]).items()}


def fetched(three: ThreeBrokers, tp: TopicPartition, max_outage_ms: int) -> int:
    """How many records a task reads. If another broker leads the partition by now, it goes on with a new consumer."""
    reading = task(three.kafka, [lane(tp.topic, WHOLE, 0, RECORDS, tp.partition)], poll_timeout_ms=PATIENT_MS)
    with Readings(reading, reading.columns, [tp], patience=Patience(max_outage_ms)) as readings:
        return sum(len(read.records) for read in readings.of(tp, reading.slices))


def test_a_killed_broker__its_partitions_wait_for_the_next_leader_and_no_other(
    three_brokers: ThreeBrokers, log: KafkaLog, topic: str
) -> None:
    first, everything = TopicPartition(topic, 0), dict.fromkeys(range(3), RECORDS)
    assert ends(log, topic) == everything
    with three_brokers.killed(1):
        others = {1: RECORDS, 2: RECORDS}
        eventually(lambda: ends(log, topic).items() >= others.items(), "the ends of the others, in a second's look")
        assert fetched(three_brokers, TopicPartition(topic, 1), 0) == RECORDS
        assert fetched(three_brokers, first, PATIENT_MS) == RECORDS
        eventually(lambda: ends(log, topic) == everything, "all ends")


def test_a_frozen_broker__one_look_waits_a_second_for_it_and_the_next_ones_do_not(
    three_brokers: ThreeBrokers, log: KafkaLog
) -> None:
    """It is frozen for less time than an election takes."""
    alone = three_brokers.topic_of(2)
    three_brokers.kafka.produce(alone, [Record(b"0", b"k")])
    tp = TopicPartition(alone, 0)
    assert log.bounds_now([tp])[tp].end == 1
    with three_brokers.frozen(2):
        looks = [log.bounds_now([tp]) for _ in range(20)]
        assert looks == [{}] * 20
        with pytest.raises(KafkaUnavailableError, match=rf"{alone}-0 \(127\.0\.0\.1:\d+: "):
            fetched(three_brokers, tp, 0)
    eventually(lambda: tp in log.bounds_now([tp]), "its late answer, or the next one")


def test_a_broker_thaws_that_the_cluster_had_taken_for_dead__its_partitions_are_there_once_it_leads_them(
    three_brokers: ThreeBrokers, log: KafkaLog
) -> None:
    """kafka-python reads which brokers there are after each lost connection, and then not for five minutes."""
    alone = three_brokers.topic_of(2)
    tp = TopicPartition(alone, 0)
    assert tp in log.bounds_now([tp])
    cluster = log._connection.ask("the brokers", lambda session: session.manager.cluster)
    with three_brokers.frozen(2):
        eventually(lambda: _leader(log, tp) == -1, "its death")
        cluster.request_update()
        eventually(lambda: cluster.broker_metadata(2) is None, "a look without it")
    eventually(lambda: _leader(log, tp) == 2, "its leadership")
    led = time.monotonic()
    eventually(lambda: tp in log.bounds_now([tp]), "an answer")
    assert time.monotonic() - led < 5


def test_an_outage_that_is_too_long_names_partitions_and_brokers(three_brokers: ThreeBrokers) -> None:
    alone = three_brokers.topic_of(2)
    arguments = {"bootstrap_servers": three_brokers.brokers.bootstrap}
    with closing(KafkaLog(arguments, retries=0, retry_interval_ms=50, patience_ms=1)) as log:
        log.topics(Topics((alone,)))
        address, tp = three_brokers.brokers.addresses[1], TopicPartition(alone, 0)
        with three_brokers.killed(2):
            with pytest.raises(KafkaUnavailableError) as raised:
                list(iter(lambda: log.bounds_now([tp]), None))
            assert f"{alone}-0 ({address}: " in raised.value.what, "the cluster does not know yet that it is dead"
            eventually(lambda: _leader(log, tp) == -1, "its death")
            log.close()
            with pytest.raises(KafkaUnavailableError) as raised:
                log.bounds_now([tp])
        assert f"{alone}-0 (no leader; copies on broker 2 ({address}))" in raised.value.what


@pytest.mark.parametrize("away", [ThreeBrokers.killed, ThreeBrokers.frozen])
def test_a_task_that_waits_for_a_leader_takes_hardly_any_processor_time(
    three_brokers: ThreeBrokers, away: Callable[..., AbstractContextManager[None]]
) -> None:
    """Of this process, kafka-python's threads included: its tries to connect take a tenth of a slow core."""
    alone, waits_ms = TopicPartition(three_brokers.topic_of(2), 0), 8_000
    three_brokers.kafka.produce(alone.topic, [Record(b"v", b"k")] * RECORDS)
    with away(three_brokers, 2):
        began, worked = time.monotonic(), time.process_time()
        with pytest.raises(CoopKafkaError):
            fetched(three_brokers, alone, waits_ms)
        lasted = time.monotonic() - began
        assert lasted > waits_ms / 1000 / 2, "it waits"
        assert time.process_time() - worked < lasted / 4, "it does not spin"


def test_all_brokers_away__the_request_waits_and_says_so_once(
    three_brokers: ThreeBrokers, log: KafkaLog, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = {"bootstrap_servers": three_brokers.brokers.bootstrap}
    with closing(KafkaLog(arguments, retries=0, retry_interval_ms=50, patience_ms=12_000)) as brief:
        assert ends(brief, topic)
        with three_brokers.killed(1, 2, 3), pytest.raises(KafkaUnavailableError) as raised:
            ends(brief, topic)
        assert all(address in raised.value.what for address in three_brokers.brokers.addresses)
        asked = [r.getMessage() for r in caplog.records if r.name == "coordinator.kafka.connection"]
        assert (len(asked), "asked again for up to 12 s" in asked[0]) == (1, True)
    eventually(lambda: ends(log, topic) == dict.fromkeys(range(3), RECORDS), "all ends")


def test_all_brokers_are_away_and_come_back__two_lines_say_so(
    three_brokers: ThreeBrokers, log: KafkaLog, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    log.topics(Topics((topic,)))
    with ThreadPoolExecutor(1) as threads, three_brokers.killed(1, 2, 3):
        answer = threads.submit(log.topics, Topics((topic,)))
        eventually(lambda: own_lines(caplog) != [], "the first line")
    assert answer.result().keys() == {topic}
    begins, ends = own_lines(caplog)
    assert begins.endswith("; asked again for up to 120 s")
    assert re.fullmatch(r"Kafka answers again, after \d+ s", ends)


def test_fewer_copies_than_a_write_needs__readers_go_on__producers_and_no_others_wait(
    three_brokers: ThreeBrokers, log: KafkaLog
) -> None:
    """`min.insync.replicas` is 3. The topic of Kafka's own groups needs fewer, so the mirror is written."""
    tp = TopicPartition(three_brokers.topic(1, insync=3), 0)
    three_brokers.kafka.produce(tp.topic, [Record(b"v", b"k")] * RECORDS)
    log.topics(Topics((tp.topic,)))
    with three_brokers.killed(3):
        eventually(lambda: _in_sync(three_brokers, tp) == {1, 2}, "a copy less")
        with three_brokers.producer(retries=0) as producer, pytest.raises(KafkaError, match="NotEnoughReplicas"):
            producer.send(tp.topic, b"refused").get(30)
        assert log.bounds_now([tp])[tp].end == RECORDS
        assert fetched(three_brokers, tp, 0) == RECORDS
        eventually(partial(_committed, log, "mirror", tp, 3), "the mirror is written")
        with three_brokers.producer(acks=1, enable_idempotence=False) as producer:
            assert producer.send(tp.topic, b"not safe").get(30).offset == RECORDS
        assert log.bounds_now([tp])[tp].end == RECORDS, "nobody reads what may be lost"
    eventually(lambda: log.bounds_now([tp])[tp].end == RECORDS + 1, "the last record is readable")


@pytest.mark.parametrize("away", [ThreeBrokers.killed, ThreeBrokers.frozen])
def test_the_coordinator_of_a_group_is_away__its_mirror_costs_a_look_little(
    three_brokers: ThreeBrokers, log: KafkaLog, topic: str, away: Callable[..., AbstractContextManager[None]]
) -> None:
    tp, group = TopicPartition(topic, 0), "mirrored"
    assert log.commit_group_offsets(group, {tp: (1, "")})
    with away(three_brokers, three_brokers.leader(TopicPartition("__consumer_offsets", 0))):
        began, tries = time.monotonic(), 0
        while time.monotonic() - began < 3 * BRIEF_S:
            tries += 1
            with suppress(KafkaUnavailableError):
                log.commit_group_offsets(group, {tp: (2, "")}, patient=False)
        assert tries > 1
        eventually(partial(_committed, log, group, tp, 3), "the mirror works with another coordinator")


@pytest.mark.parametrize("away", [ThreeBrokers.killed, ThreeBrokers.frozen])
def test_a_broker_that_does_not_coordinate_a_group_holds_up_no_question_about_it(
    three_brokers: ThreeBrokers, log: KafkaLog, away: Callable[..., AbstractContextManager[None]]
) -> None:
    group = "beside"
    log.must_hold_offsets(group)
    coordinator = three_brokers.leader(TopicPartition("__consumer_offsets", 0))
    with away(three_brokers, coordinator % 3 + 1):
        began = time.monotonic()
        log.must_hold_offsets(group)
        assert log.group_offsets(group) == {}
        assert time.monotonic() - began < 5


def test_the_broker_of_the_policies_is_frozen__a_read_keeps_the_last_ones_and_costs_little(
    three_brokers: ThreeBrokers, log: KafkaLog
) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=three_brokers.brokers.bootstrap)) as admin:
        admin.create_topics(
            [NewTopic(POLICIES, replica_assignments={0: [2]}, topic_configs={"cleanup.policy": "compact"})]
        )
        admin.wait_for_topics([POLICIES])
    log.set_cluster_policies({"accept.range.fetch:orders": "false"})
    known = log.cluster_policies()
    with three_brokers.frozen(2):
        began = time.monotonic()
        assert log.cluster_policies() == known
        assert time.monotonic() - began < 3 * BRIEF_S
    with closing(KafkaAdminClient(bootstrap_servers=three_brokers.brokers.bootstrap)) as admin:
        admin.delete_topics([POLICIES])


TP = TopicPartition("of-every-question", 0)
QUESTIONS: Mapping[str, Callable[[KafkaLog], object]] = {
    "topics": lambda log: log.topics(Topics((TP.topic,))),
    "bounds": lambda log: log.bounds([TP]),
    "bounds_now": lambda log: log.bounds_now([TP]),
    "ends_of_epochs": lambda log: log.ends_of_epochs({TP: 0}),
    "high_watermarks_now": lambda log: log.high_watermarks_now([TP]),
    "resolve": lambda log: log.resolve(Latest(), [TP]),
    "first_times": lambda log: log.first_times({TP: OffsetRange(0, 1)}),
    "leader_racks": lambda log: log.leader_racks([TP.topic]),
    "must_hold_offsets": lambda log: log.must_hold_offsets("any"),
    "group_offsets": lambda log: log.group_offsets("any"),
    "commit_group_offsets": lambda log: log.commit_group_offsets("any", {TP: (0, "")}),
    "delete_group_offsets": lambda log: log.delete_group_offsets("any", [TP]),
    "cluster_policies": lambda log: log.cluster_policies(),
}
"""Every call of Kafka that a member may make."""


def test_every_call_of_kafka_is_in_this_list() -> None:
    """But of `watch`: a member does not wait for its answer."""
    assert QUESTIONS.keys() == {name for name in vars(Log) if not name.startswith("_")} - {"close", "watch"}


@pytest.mark.parametrize("away", [ThreeBrokers.killed, ThreeBrokers.frozen])
def test_no_call_waits_for_10_s_without_a_line__and_none_without_an_end(
    three_brokers: ThreeBrokers, away: Callable[..., AbstractContextManager[None]], caplog: pytest.LogCaptureFixture
) -> None:
    """Each asks on a connection that was open before, and in a thread of its own, whose name its lines have."""
    arguments, ended = {"bootstrap_servers": three_brokers.brokers.bootstrap}, dict[str, tuple[BaseException, float]]()
    with ExitStack() as opened:
        logs = {
            name: opened.enter_context(
                closing(KafkaLog(arguments, retries=0, retry_interval_ms=200, patience_ms=12_000))
            )
            for name in QUESTIONS
        }
        for log in logs.values():
            log.topics(Pattern("^none$"))

        def ask(name: str) -> None:
            with pytest.raises(KafkaUnavailableError) as raised:
                list(iter(lambda: QUESTIONS[name](logs[name]), None))
            ended[name] = raised.value, time.time()

        opened.enter_context(away(three_brokers, 1, 2, 3))
        began = time.time()
        with ThreadPoolExecutor(len(QUESTIONS)) as threads:
            list(threads.map(lambda name: _named(name, ask), QUESTIONS))
    lines = [(r.threadName, r.created - began) for r in caplog.records if r.name.startswith("coordinator.")]
    assert {name for name, at in lines if at < 10} >= QUESTIONS.keys(), "a line in time"
    assert {name: end - began for name, (_, end) in ended.items() if end - began > 30} == {}
    assert ended.keys() == QUESTIONS.keys(), "each ended by name"


def _named(name: str, ask: Callable[[str], None]) -> None:
    threading.current_thread().name = name
    ask(name)


def _in_sync(three: ThreeBrokers, tp: TopicPartition) -> set[int]:
    """The copies in sync; nothing if the dead broker was asked."""
    with closing(KafkaAdminClient(bootstrap_servers=three.brokers.bootstrap)) as admin, suppress(KafkaError):
        (found,) = admin.describe_topics([tp.topic])[0]["partitions"]
        return set(found["isr_nodes"])
    return set()


def _leader(log: KafkaLog, tp: TopicPartition) -> int:
    log.topics(Topics((tp.topic,)))
    return log.leader(tp)


def _committed(log: KafkaLog, group: str, tp: TopicPartition, offset: int) -> bool:
    try:
        log.commit_group_offsets(group, {tp: (offset, "")}, patient=False)
        return log.group_offsets(group, patient=False)[tp][0] == offset
    except KafkaUnavailableError:
        return False
