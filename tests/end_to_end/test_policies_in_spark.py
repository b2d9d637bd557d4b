"""Policies of the cluster, of topics and of groups as an administrator and a user of Spark meet them."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from command_runs import Run
from coordinator.commits.commit_api import CommitApi
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from streams import Stream, keyed
from topics import Kafka

ICS, FETCH = "accept.individual.commit", "accept.range.fetch"


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
