"""The coordinator's view of Kafka against a real broker: topics, bounds, Kafka's own groups."""

import time
import uuid
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from coordinator.errors import InvalidOptionError, UnknownTopicError
from coordinator.kafka.log import KafkaLog
from coordinator.values.subscription import Assigned, Bounds, Pattern, Topic, TopicPartition, Topics
from kafka_logs import THREE_SECONDS, delete_records, kafka_log
from topics import Kafka, Record

SOON_S = 20.0


def existing_topics(kafka: Kafka) -> set[str]:
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        return set(admin.list_topics())


NEVER = Bounds(-1, -1, epoch=-1)


def bounds_within(log: KafkaLog, tp: TopicPartition, expected: Bounds) -> Bounds:
    """The bounds as soon as they are as expected, the last ones seen if that does not happen in time."""
    deadline = time.monotonic() + SOON_S
    while (seen := log.bounds([tp])[tp]) != expected and time.monotonic() < deadline:
        pass
    return seen


def test_topics_by_name_have_their_id_and_partitions(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic("orders", partitions=3)

    topics = log.topics(Topics((name,)))

    assert topics == {name: Topic(name, topics[name].id, (0, 1, 2))}
    assert str(uuid.UUID(topics[name].id)) == topics[name].id


def test_a_grown_topic_is_seen_at_once(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic(partitions=1)
    before = log.topics(Topics((name,)))

    kafka.add_partitions(name, 3)

    assert log.topics(Topics((name,))) == {name: Topic(name, before[name].id, (0, 1, 2))}


def test_a_recreated_topic_has_another_id_at_once_and_its_own_bounds(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic(partitions=1)
    kafka.produce(name, THREE_SECONDS)
    before = log.topics(Topics((name,)))[name]
    assert log.bounds([TopicPartition(name, 0)]) == {TopicPartition(name, 0): Bounds(0, 3, epoch=0)}

    kafka.recreate_topic(name, partitions=2)

    assert log.topics(Topics((name,)))[name].id not in ("", before.id)
    assert log.bounds([TopicPartition(name, 0)]) == {TopicPartition(name, 0): Bounds(0, 0, epoch=0)}


def test_an_unknown_topic_is_named_with_the_nearest_one_and_not_created(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic("payments")
    missing = name.replace("payments", "paymnts")

    with pytest.raises(UnknownTopicError) as error:
        log.topics(Topics((name, missing)))

    assert f"no topic '{missing}'" in error.value.what
    assert name in error.value.remedy
    assert missing not in existing_topics(kafka)


def test_a_name_that_no_topic_can_have_is_an_unknown_topic(log: KafkaLog) -> None:
    with pytest.raises(UnknownTopicError, match=r"'two words'"):
        log.topics(Topics(("two words",)))


def test_a_pattern_is_searched_in_names_and_never_means_internal_topics(kafka: Kafka, log: KafkaLog) -> None:
    word = f"w{uuid.uuid4().hex[:8]}"
    first, second = kafka.create_topic(f"{word}-a"), kafka.create_topic(f"b-{word}")
    log.commit_group_offsets("makes-the-internal-topic", {TopicPartition(first, 0): (0, "")})

    assert log.topics(Pattern(word)).keys() == {first, second}
    assert log.topics(Pattern(f"^{word}")).keys() == {first}
    assert log.topics(Pattern(f"{word}$")) == {}
    assert "__consumer_offsets" in existing_topics(kafka)
    assert "__consumer_offsets" not in log.topics(Pattern(".*"))


def test_a_pattern_that_is_no_regular_expression_is_refused(log: KafkaLog) -> None:
    with pytest.raises(InvalidOptionError, match=r"subscribePattern '\('"):
        log.topics(Pattern("("))


def test_assigned_topics_hold_only_the_assigned_partitions(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic(partitions=4)

    topics = log.topics(Assigned({TopicPartition(name, 3): (), TopicPartition(name, 1): ()}))

    assert topics[name].partitions == (1, 3)


def test_an_assigned_partition_that_the_topic_does_not_have_is_named(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic(partitions=2)

    with pytest.raises(UnknownTopicError, match=f"no partition {name}-7"):
        log.topics(Assigned({TopicPartition(name, 0): (), TopicPartition(name, 7): ()}))


def test_bounds_of_an_empty_partition_and_of_one_with_records_come_together(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic(partitions=2)
    kafka.produce(name, [Record(b"x", partition=1)] * 5)
    empty, full = TopicPartition(name, 0), TopicPartition(name, 1)

    assert log.bounds([full, empty]) == {full: Bounds(0, 5, epoch=0), empty: Bounds(0, 0, epoch=0)}
    assert log.bounds([]) == {}


def test_bounds_begin_after_deleted_records(kafka: Kafka, log: KafkaLog) -> None:
    tp = TopicPartition(kafka.create_topic(), 0)
    kafka.produce(tp.topic, THREE_SECONDS)

    delete_records(kafka, tp, before=2)

    assert log.bounds([tp]) == {tp: Bounds(2, 3, epoch=0)}


def test_under_read_committed_the_end_is_the_last_stable_offset(kafka: Kafka, log: KafkaLog) -> None:
    tp = TopicPartition(kafka.create_topic(), 0)
    kafka.produce(tp.topic, THREE_SECONDS)
    with closing(kafka_log(kafka.bootstrap, {"isolation_level": "read_committed"})) as committed:
        with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=tp.topic)) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(tp.topic, b"not yet")
            producer.flush()
            assert committed.bounds([tp]) == {tp: Bounds(0, 3, epoch=0)}
            assert log.bounds([tp]) == {tp: Bounds(0, 4, epoch=0)}
            producer.commit_transaction()

        assert bounds_within(committed, tp, Bounds(0, 5, epoch=0)) == Bounds(0, 5, epoch=0)


def test_bounds_of_a_deleted_topic_are_an_error_and_do_not_create_it(kafka: Kafka, log: KafkaLog) -> None:
    tp = TopicPartition(kafka.create_topic(), 0)
    assert log.bounds([tp]) == {tp: Bounds(0, 0, epoch=0)}

    kafka.delete_topic(tp.topic)

    with pytest.raises(UnknownTopicError, match=tp.topic):
        bounds_within(log, tp, NEVER)  # a broker lists a deleted topic no longer a moment before its log is gone
    assert tp.topic not in existing_topics(kafka)


def test_a_group_that_kafka_does_not_know_has_no_offsets(log: KafkaLog) -> None:
    assert log.group_offsets(f"nobody {uuid.uuid4()}") == {}


def test_committed_group_offsets_are_read_back_with_their_text(kafka: Kafka, log: KafkaLog) -> None:
    name, group = kafka.create_topic(partitions=2), f'a "group" {{1}}\n{uuid.uuid4()}'
    offsets = {TopicPartition(name, 0): (7, "reset=0"), TopicPartition(name, 1): (2**40, "")}

    assert log.commit_group_offsets(group, offsets)

    assert log.group_offsets(group) == offsets


def test_a_group_with_live_consumers_is_left_alone(kafka: Kafka, log: KafkaLog) -> None:
    tp, group = TopicPartition(kafka.create_topic(), 0), f"plain-{uuid.uuid4()}"
    assert log.commit_group_offsets(group, {tp: (1, "")})
    consumer = KafkaConsumer(tp.topic, bootstrap_servers=kafka.bootstrap, group_id=group, enable_auto_commit=False)
    with closing(consumer):
        deadline = time.monotonic() + SOON_S
        while not consumer.assignment() and time.monotonic() < deadline:
            consumer.poll(1_000)
        assert not log.commit_group_offsets(group, {tp: (9, "")})
    assert log.group_offsets(group) == {tp: (1, "")}


def test_offsets_of_an_unknown_topic_cannot_be_committed(log: KafkaLog) -> None:
    with pytest.raises(UnknownTopicError, match="no partition nowhere-0"):
        log.commit_group_offsets(f"g-{uuid.uuid4()}", {TopicPartition("nowhere", 0): (1, "")})
