"""Policies of the cluster, of topics and of groups as an administrator and a user of Spark meet them."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from command_runs import Run
from coordinator.commits.commit_api import CommitApi
from coordinator.errors import UnknownGroupError
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from streams import Sink, Stream, eventually, keyed, stable, state
from topics import Kafka

ICS, FETCH = "accept.individual.commit", "accept.range.fetch"
LEASES = {"sessionTimeout": "3000", "heartbeatInterval": "500"}


@pytest.fixture
def policy(run: Run, kafka: Kafka, redis_url: str) -> Iterator[Callable[..., None]]:
    """Sets a policy from the command line; policies of the cluster end with the test."""
    undo: list[tuple[str, ...]] = []

    def command(*where: str, setting: str) -> None:
        at = ("--redis", redis_url) if not where[0].startswith("--") else ("--bootstrap-server", kafka.bootstrap)
        code, _, err = run("policy", *where, *at, "--set", setting, "--execute")
        assert code == 0, err
        if where[0].startswith("--"):
            undo.append((*where, *at, "--set", setting.partition("=")[0] + "=", "--execute"))

    yield command
    for arguments in undo:
        assert run("policy", *arguments)[0] == 0


@pytest.fixture
def wide(stream: Stream) -> Stream:
    """A query with four tasks."""
    stream.options |= {"slots": "4", "minPartitions": "4"}
    return stream


def in_order(stream: Stream, records: int) -> bool:
    """Whether each record arrived once, in the order of the log."""
    return [d.offset for d in stream.sink.received] == list(range(records))


def test_a_topic_in_partition_order_is_one_task_and_arrives_in_the_order_of_its_log(
    wide: Stream, kafka: Kafka, policy: Callable[..., None]
) -> None:
    topic = wide.options["subscribe"]
    kafka.produce(topic, keyed(300))
    policy("--topic", topic, setting=f"{FETCH}=false")
    wide.run()
    assert in_order(wide, 300)
    assert set(wide.sink.tasks.values()) == {1}
    policy("--topic", topic, setting=f"{FETCH}=true")
    kafka.produce(topic, keyed(300, first=300))
    wide.run()
    assert wide.sink.offsets == list(range(600))
    assert max(wide.sink.tasks.values()) > 1, "lanes again"


@pytest.mark.parametrize(
    ("level", "setting", "words"),
    [
        pytest.param("--cluster", f"{ICS}=false", "INDIVIDUAL_COMMIT_NOT_ALLOWED: code 88: ", id="88 of the cluster"),
        pytest.param("--topic", f"{FETCH}=false", "TOPIC_RANGE_FETCH_NOT_ALLOWED: code 89: ", id="89 of the topic"),
    ],
)
def test_a_query_that_demands_parts_is_refused_in_every_group(
    wide: Stream, kafka: Kafka, policy: Callable[..., None], level: str, setting: str, words: str
) -> None:
    topic = wide.options["subscribe"]
    kafka.produce(topic, keyed(10))
    policy(level, *([topic] if level == "--topic" else []), setting=setting)
    with pytest.raises(StreamingQueryException) as refused:
        wide.run(sharing="required")
    assert words in str(refused.value)
    assert f"coop-kafka policy {level}" in str(refused.value)
    assert wide.sink.received == []


def test_the_commit_api_obeys_the_policy_of_a_topic(wide: Stream, kafka: Kafka, policy: Callable[..., None]) -> None:
    topic = wide.options["subscribe"]
    kafka.produce(topic, keyed(10))
    policy("--topic", topic, setting=f"{FETCH}=false")

    def acknowledging(rows: DataFrame, batch_id: int) -> None:
        rows.collect()
        end = (wide.checkpoint / "offsets" / str(batch_id)).read_text().splitlines()[-1]
        with CommitApi.of_offset(wide.options["redisUrl"], end) as api:
            api.commit(TopicPartition(topic, 0), [OffsetRange(3, 4)])

    wide.sink = acknowledging  # type: ignore[assignment]
    with pytest.raises(StreamingQueryException) as refused:
        wide.run()
    assert "TOPIC_RANGE_FETCH_NOT_ALLOWED: code 89: " in str(refused.value)


@pytest.fixture
def pair(spark: SparkSession, kafka: Kafka, redis_url: str, group: str, tmp_path: Path) -> Iterator["Pair"]:
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": kafka.create_topic("policed"),
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
        "slots": "2",
        "allowSeveralQueries": "true",
        **LEASES,
    }
    made = Pair(kafka, *(Stream(spark, dict(options), tmp_path / name) for name in ("one", "two")))
    yield made
    made.stop()


class Pair:
    """Two queries of one group on one partition; the records of both in the order in which they arrived."""

    def __init__(self, kafka: Kafka, one: Stream, two: Stream) -> None:
        self.kafka, self.streams, self.sent = kafka, (one, two), 0
        self.arrived: list[int] = []
        self.queries: dict[int, Any] = {}
        self.topic, self.group = one.options["subscribe"], one.options["group"]

    def start(self, number: int, **options: str) -> None:
        if number in self.queries:
            self.queries.pop(number).stop()
        stream = self.streams[number]
        collect = Sink()

        def sink(rows: DataFrame, batch_id: int) -> None:
            before = len(collect.received)
            collect(rows, batch_id)
            self.arrived += [d.offset for d in collect.received[before:]]

        stream.sink = sink  # type: ignore[assignment]
        self.queries[number] = stream.start(None, **options)

    def work(self) -> None:
        """Records are produced, and read."""
        self.kafka.produce(self.topic, keyed(60, first=self.sent))
        self.sent += 60
        self.until(lambda: set(self.arrived) == set(range(self.sent)), "all is read")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        eventually(lambda: any(q.exception() for q in self.queries.values()) or condition(), what)
        for query in self.queries.values():
            assert query.exception() is None, query.exception()

    def owners(self) -> int:
        try:
            return len({m for owned in state(self.streams[0]).owners.values() for _, _, m in owned})
        except UnknownGroupError:
            return 0

    def stop(self) -> None:
        for query in self.queries.values():
            query.stop()


@pytest.mark.long
def test_the_upgrade_in_four_steps_keeps_partition_order_until_sharing_begins(
    pair: Pair, policy: Callable[..., None]
) -> None:
    policy(pair.group, setting=f"{ICS}=false")
    policy("--topic", pair.topic, setting=f"{FETCH}=false")
    plain = {"sharing": "partitions", "lanes": "1"}
    for number in (0, 1):
        pair.start(number, **plain)
    pair.work()  # step 0
    policy(pair.group, setting=f"{ICS}=true")  # step 1
    pair.work()
    policy("--topic", pair.topic, setting=f"{FETCH}=true")  # step 2
    pair.work()
    pair.work()
    assert pair.arrived == list(range(pair.sent)), "the order of the log, and each record once"
    for number in (0, 1):  # steps 3 and 4
        pair.start(number)
    pair.until(lambda: pair.owners() == 2, "both share the partition")
    pair.work()


@pytest.mark.long
def test_redis_is_emptied_while_sharing_is_forbidden_and_nothing_is_shared(
    pair: Pair, policy: Callable[..., None], redis_url: str
) -> None:
    policy(pair.group, setting=f"{ICS}=false")
    for number in (0, 1):
        pair.start(number)
    pair.work()
    pair.until(lambda: stable(pair.streams[0]) == {pair.sent}, "all is committed, and mirrored")
    with closing(redis.Redis.from_url(redis_url)) as server:
        server.delete(*server.scan_iter(f"coop:v1:{{{pair.group}}}:*"))  # all at once, before a member recovers
    most = 0

    def read() -> bool:
        nonlocal most
        most = max(most, pair.owners())
        return stable(pair.streams[0]) == {pair.sent}

    for _ in range(2):
        pair.kafka.produce(pair.topic, keyed(60, first=pair.sent))
        pair.sent += 60
        pair.until(read, "the queries go on")
    assert most == 1
    assert set(pair.arrived) == set(range(pair.sent))
