"""The codes 88 to 92 as a user of Spark meets them: with name and number, where Spark reports errors."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from command_runs import Run
from coordinator.commits.commit_api import CommitApi
from coordinator.errors import CodedError
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from driver_output import beside_the_driver, driver_output
from spark_coop_source.errors_in_spark import error_of
from streams import Stream, eventually, keyed, stable
from topics import Kafka

RECORDS = 10

ASSIGNOR = """
from coordinator.values.ranges import HASH_MAX, HashRange
from coordinator.values.subscription import TopicPartition


class Halves:
    '''Cuts each partition in two.'''

    name, version = "halves", 1

    def assign(self, members, partitions, previous):
        halves = HashRange(0, HASH_MAX // 2), HashRange(HASH_MAX // 2 + 1, HASH_MAX)
        every = [TopicPartition(topic, p) for topic, count in partitions.items() for p in range(count)]
        owners = [members[0].member, members[-1].member]
        made = {m.member: {} for m in members}
        for tp in every:
            for owner, half in zip(owners, halves):
                made[owner][tp] = (*made[owner].get(tp, ()), half)
        return made
"""


@pytest.fixture
def records(kafka: Kafka, stream: Stream) -> Stream:
    """A stream whose topic holds a few records."""
    kafka.produce(stream.options["subscribe"], keyed(RECORDS))
    return stream


def refused(stream: Stream, **options: str) -> str:
    """The message with which Spark ends the query; a program finds its name and its code there."""
    with pytest.raises(StreamingQueryException) as error:
        stream.run(**options)
    found = error_of(error.value)
    assert isinstance(found, CodedError)
    assert f"{found.name}: code {found.code}: " in str(error.value)
    assert f"Remedy: {found.remedy}." in str(error.value)
    return str(error.value)


def policy(run: Run, stream: Stream, setting: str) -> None:
    words = ("--set", setting, "--execute", "--redis", stream.options["redisUrl"])
    code, _, err = run("policy", stream.options["group"], *words)
    assert code == 0, err


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        pytest.param("accept.individual.commit=false", "INDIVIDUAL_COMMIT_NOT_ALLOWED: code 88: ", id="88"),
        pytest.param("accept.range.fetch:{}=false", "TOPIC_RANGE_FETCH_NOT_ALLOWED: code 89: ", id="89"),
    ],
)
def test_a_query_that_asks_for_parts_where_a_policy_forbids_them_ends_with_the_code(
    records: Stream, run: Run, setting: str, words: str
) -> None:
    policy(run, records, setting.format(records.options["subscribe"]))
    message = refused(records, sharing="required")
    assert words in message
    assert "Remedy: remove the option sharing" in message
    assert records.sink.received == []


def test_a_part_for_a_member_that_takes_none_is_code_90_in_the_output_and_ends_no_query(
    records: Stream, run: Run, tmp_path: Path
) -> None:
    beside_the_driver(records.spark, "halves_assignor", ASSIGNOR)
    words = "CONSUMER_RANGE_FETCH_NOT_ACCEPTED: code 90: "
    with driver_output(records.spark, tmp_path / "stderr") as output:
        records.run(assignor="halves_assignor:Halves", sharing="partitions")
        eventually(lambda: words in output.read_text(), "Spark's thread has copied the reader's line")
    assert records.sink.offsets == list(range(RECORDS))
    (line,) = (line for line in output.read_text().splitlines() if words in line)
    assert "the assignor halves 1 failed here, grouped assigns whole partitions" in line
    code, events, _ = run("events", records.options["group"], "--redis", records.options["redisUrl"])
    assert (code, words in events) == (0, True)


def acknowledging(stream: Stream, *commits: tuple[int, int]) -> Any:
    """A sink that commits these offset ranges of its batch, one call after the other."""

    def sink(rows: DataFrame, batch_id: int) -> None:
        rows.collect()
        end = (stream.checkpoint / "offsets" / str(batch_id)).read_text().splitlines()[-1]
        with CommitApi.of_offset(stream.options["redisUrl"], end) as api:
            for first, last in commits:
                api.commit(TopicPartition(stream.options["subscribe"], 0), [OffsetRange(first, last + 1)])

    return sink


def test_a_commit_too_many_or_too_late_ends_the_query_with_its_code(
    records: Stream,
) -> None:
    records.sink = acknowledging(records, (3, 3), (5, 5), (7, 7))
    message = refused(records, maxIndividualCommits="2")
    assert "MAX_INDIVIDUAL_COMMIT_REACHED: code 92: " in message
    assert "[7-7] exceeds the limit of 2 individual commits: the partition holds 2" in message

    records.sink = acknowledging(records, (0, RECORDS - 1), (4, 4))
    message = refused(records)
    assert "INDIVIDUAL_COMMIT_TOO_OLD: code 91: " in message
    assert f"[4-4] lies wholly below the stable offset {RECORDS}" in message
    assert stable(records) == {RECORDS}
