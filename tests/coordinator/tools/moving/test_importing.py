"""`coop-kafka import`: a group begins where another consumer has stopped. On real servers."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPartition
from pyspark.sql import SparkSession

import kafka_groups
from command_runs import Run
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.events import last_events
from coordinator.values.subscription import Topics
from group_services import Group, batches, records
from share_groups import share
from streams import Stream, keyed, sent
from topics import Kafka
from verdict import judge, require_good

ACCEPT, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.REJECT
COMMITS = Path(__file__).with_name("parallel_consumer_commits.jsonl").read_text().splitlines()


@pytest.fixture
def place(kafka: Kafka, redis_url: str) -> tuple[str, ...]:
    return "--redis", redis_url, "--bootstrap-server", kafka.bootstrap


def stream(spark: SparkSession, kafka: Kafka, redis_url: str, topic: str, group: str, folder: Path) -> Stream:
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "redisUrl": redis_url, "group": group, "subscribe": topic}
    return Stream(spark, options, folder / "checkpoint")


def offsets_read(members: Group, topic: str) -> list[int]:
    """The offsets that a query of the group reads until it has nothing left."""
    service = members.aiming(Topics((topic,)))
    found = sorted(offset for _, offset in records(*batches(service, StreamOffset(members.name))))
    service.leave()
    return found


def test_a_plain_group_is_moved_over(
    run: Run, kafka: Kafka, redis_url: str, place: tuple[str, ...], members: Group, group: str
) -> None:
    topic = kafka.create_topic("plain", partitions=2)
    kafka.produce(topic, [replace(record, partition=0) for record in keyed(30)])
    kafka_groups.commit(kafka.bootstrap, f"{group}-old", topic, {0: 12})
    asked = ("import", group, "--from", f"kafka-group:{group}-old", *place)
    code, out, _ = run(*asked)
    assert (code, "1 partition without an offset" in out, "Nothing was changed" in out) == (0, True, True)
    code, out, _ = run(*asked, "--execute", "--json")
    assert json.loads(out) == {
        "executed": True,
        "partitions": [{"topic": topic, "partition": 0, "position": 12, "above": [], "clipped": False}],
        "without": [f"{topic}-1"],
    }
    assert offsets_read(members, topic) == [*range(12, 30)]
    with closing(RedisClient(redis_url)) as client:
        assert [e.why.partition(": ")[2] for e in last_events(client, group, 1_000) if e.kind == "found"] == [
            f"positions of kafka-group:{group}-old"
        ]
    code, _, err = run(*asked, "--execute")
    assert (code, f"Redis already has a group '{group}'" in err) == (1, True)


def test_the_gaps_of_a_parallel_consumer_are_read_and_nothing_else(
    run: Run, kafka: Kafka, place: tuple[str, ...], members: Group, group: str
) -> None:
    commit = next(c for c in map(json.loads, COMMITS) if c["encoding"] == "RunLengthV2")
    topic = kafka.create_topic("gaps")
    kafka.produce(topic, keyed(310))
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        entry = OffsetAndMetadata(commit["offset"], commit["metadata"], -1)
        admin.alter_group_offsets(f"{group}-old", {KafkaPartition(topic, 0): entry})
    code, out, _ = run("import", group, "--from", f"parallel-consumer:{group}-old", *place, "--execute")
    assert (code, [line.split() for line in out.splitlines()][1]) == (0, [topic, "0", str(commit["failing"][0]), "225"])
    assert offsets_read(members, topic) == [*commit["failing"], *range(300, 310)]


def test_a_query_with_format_kafka_is_moved_over(
    run: Run, kafka: Kafka, redis_url: str, place: tuple[str, ...], spark: SparkSession, group: str, tmp_path: Path
) -> None:
    """Its sink then has each record exactly once, in the order of the keys."""
    topic, written = kafka.create_topic("moved"), keyed(60)
    kafka.produce(topic, written[:40])
    reader = stream(spark, kafka, redis_url, topic, group, tmp_path)
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="15").load()
    old = tmp_path / "old"
    writer = rows.writeStream.foreachBatch(reader.sink).option("checkpointLocation", str(old))
    assert writer.trigger(availableNow=True).start().awaitTermination(180)
    kafka.produce(topic, written[40:])
    code, out, err = run("import", group, "--from", f"spark-checkpoint:{old}", *place, "--execute")
    assert (code, err) == (0, ""), out
    before, reader.sink.received = reader.sink.received, []
    reader.run()
    after = [replace(d, batch=d.batch + 1_000) for d in reader.sink.received]  # its batches count from 0 again
    require_good(judge(sent(written), before + after))


def test_a_share_group_is_moved_over(
    run: Run, kafka: Kafka, place: tuple[str, ...], members: Group, group: str
) -> None:
    """What it has acknowledged or rejected is not read again; what it has released is."""
    topic, old = kafka.create_topic("shared"), f"{group}-old"
    kafka.produce(topic, keyed(20))
    accepted, rejected = {0, 1, 2, 3, 4, 7, 9, 10, 11}, {13}
    share(kafka, old, topic, dict.fromkeys(accepted, ACCEPT) | dict.fromkeys(rejected, REJECT), 20)
    code, out, _ = run("import", group, "--from", f"share-group:{old}", *place, "--execute")
    assert (code, [line.split() for line in out.splitlines()][1]) == (0, [topic, "0", "5", "5"])
    assert offsets_read(members, topic) == sorted({*range(20)} - accepted - rejected)


@pytest.fixture
def consumer(kafka: Kafka, group: str) -> Iterator[KafkaConsumer]:
    """A live consumer of the other group."""
    with closing(KafkaConsumer(bootstrap_servers=kafka.bootstrap, group_id=f"{group}-old")) as live:
        yield live


def test_a_group_with_live_consumers_is_not_imported(
    run: Run, kafka: Kafka, place: tuple[str, ...], group: str, consumer: KafkaConsumer
) -> None:
    topic = kafka.create_topic("live")
    kafka.produce(topic, keyed(3))
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(1_000)
    consumer.commit({KafkaPartition(topic, 0): OffsetAndMetadata(2, "", -1)})
    asked = ("import", group, "--from", f"kafka-group:{group}-old", *place)
    assert run(*asked)[0] == 0, "it may be looked at"
    code, _, err = run(*asked, "--execute")
    assert (code, "GROUP_BUSY" in err, "has active consumers" in err) == (1, True, True)


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        ("kafka-group", 2, "not one of kafka-group:NAME"),
        ("elsewhere:x", 2, "not one of kafka-group:NAME"),
        ("kafka-group:nobody", 1, "Kafka has no offsets of a group 'nobody'"),
        ("spark-checkpoint:/nowhere", 2, "no checkpoint with a finished batch"),
    ],
)
def test_a_source_that_is_none(
    run: Run, place: tuple[str, ...], group: str, source: str, code: int, words: str
) -> None:
    ended, _, err = run("import", group, "--from", source, *place)
    assert (ended, words in err, err.count("\n")) == (code, True, 1)


def test_an_offset_that_the_log_lacks_is_the_nearest_one(
    run: Run, kafka: Kafka, place: tuple[str, ...], group: str
) -> None:
    topic = kafka.create_topic("short")
    kafka.produce(topic, keyed(5))
    kafka_groups.commit(kafka.bootstrap, f"{group}-old", topic, {0: 99})
    code, out, _ = run("import", group, "--from", f"kafka-group:{group}-old", *place)
    assert (code, "5 *" in out, "* the nearest offset that the log has" in out) == (0, True, True)


def test_a_topic_that_is_gone_is_left_out_by_name(run: Run, kafka: Kafka, place: tuple[str, ...], group: str) -> None:
    kept, gone = kafka.create_topic("kept"), kafka.create_topic("gone")
    for topic in (kept, gone):
        kafka.produce(topic, keyed(5))
    old = f"{group}-old"
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        admin.alter_group_offsets(old, {KafkaPartition(t, 0): OffsetAndMetadata(2, "", -1) for t in (kept, gone)})
    code, out, _ = run("import", group, "--from", f"kafka-group:{old}", *place, "--topic", kept)
    assert (code, kept in out, gone in out) == (0, True, False)
    code, _, err = run("import", group, "--from", f"kafka-group:{old}", *place, "--topic", "other")
    assert (code, "has no offset of other" in err) == (1, True)
