"""The reader learns the cost of a task's slices, on a real broker: from `partitions` to `take`."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from coordinator.plan.cost.telemetry import SliceCost
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts, hash_record
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from log_fixtures import lane, task, whole
from spark_coop_source.driver.reader_process import GroupSession
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.driver.task_server import TaskServer
from spark_coop_source.function.rows import KeyRecords
from spark_coop_source.function.user_function import UserFunction, as_text
from spark_coop_source.options.options import validate
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.read import read_slices
from streams import eventually
from topics import Kafka, Record

OUTPUT = StructType([StructField("n", LongType())])
SLOW_MS = 500  # more than a busy machine adds to another slice


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    """Two partitions of 500 records with 50 keys; a record of the key `slow` in the middle of the first."""
    made = kafka.create_topic(partitions=2)
    records = [Record(b"v", b"%d" % (i % 50), partition=i % 2) for i in range(1_000)]
    kafka.produce(made, [*records[:500], Record(b"v", b"slow", partition=0), *records[500:]])
    return made


@pytest.fixture
def receiver(kafka: Kafka) -> Iterator[TaskServer]:
    with closing(TaskServer([kafka.bootstrap], 1)) as made:
        yield made


def finished(receiver: TaskServer, count: int) -> list[SliceCost]:
    """The costs of slices that are done; all news up to then are taken."""
    found: dict[object, SliceCost] = {}

    def all_done() -> bool:
        found.update((cost.slice, cost) for cost in receiver.take())
        return sum(cost.finished for cost in found.values()) == count

    eventually(all_done, f"{count} slices are finished", 20)
    return sorted(found.values(), key=lambda cost: cost.slice)


def of_key(key: bytes | None, records: KeyRecords) -> None:
    if key == b"slow":
        time.sleep(SLOW_MS / 1000)


def of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for records in batches:
        if b"slow" in records.column("key").to_pylist():
            time.sleep(SLOW_MS / 1000)
        yield pa.RecordBatch.from_pydict({"n": [len(records)]})


@pytest.mark.parametrize(
    ("function", "names_keys"),
    [
        pytest.param(UserFunction(as_text(of_batches), OUTPUT, "batches"), False, id="a function of batches"),
        pytest.param(UserFunction(as_text(of_key), OUTPUT, "keys"), True, id="a function of a key"),
        pytest.param(UserFunction(as_text(of_key), OUTPUT, "keys", 8), True, id="many keys at once"),
    ],
)
def test_the_cost_of_a_slow_key_is_that_of_its_slice(
    kafka: Kafka, topic: str, receiver: TaskServer, function: UserFunction, names_keys: bool
) -> None:
    slices = [*(lane(topic, hashes, 0, 501) for hashes in cuts(4)), whole(topic, 0, 500, partition=1)]
    list(read_slices(replace(task(kafka, slices), report=receiver.report_to(slices)), function))
    costs = finished(receiver, 5)
    assert sum(cost.rows for cost in costs) == 1_001
    (slow,) = (cost for cost in costs if cost.function_ms >= SLOW_MS)
    assert hash_record(b"slow", 0) in slow.hashes
    assert slow.tp == TopicPartition(topic, 0)
    if names_keys:
        assert slow.keys[0].key_hash == hash_record(b"slow", 0)
        assert slow.keys[0].ms >= SLOW_MS
    assert all(cost.read_ms > 0 and cost.bytes > 0 for cost in costs)


def test_slices_that_began_and_did_not_finish_are_known(kafka: Kafka, topic: str, receiver: TaskServer) -> None:
    def fails(key: bytes | None, records: KeyRecords) -> None:
        if key == b"slow":
            raise TimeoutError

    slices = [*(lane(topic, hashes, 0, 501) for hashes in cuts(4)), whole(topic, 0, 500, partition=1)]
    partition = replace(task(kafka, slices), report=receiver.report_to(slices))
    with pytest.raises(Exception, match="TimeoutError"):
        list(read_slices(partition, UserFunction(as_text(fails), OUTPUT, "keys")))
    begun: list[SliceCost] = []

    def four() -> bool:
        begun.extend(receiver.take())
        return len(begun) >= 4

    eventually(four, "four slices have begun", 20)
    assert {cost.slice for cost in begun} == set(slices[:4]), "the other partition's turn had not come"
    assert not any(cost.finished for cost in begun if hash_record(b"slow", 0) in cost.hashes)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_in_a_trial_the_record_that_does_not_end_is_known(
    kafka: Kafka, topic: str, receiver: TaskServer, concurrency: int
) -> None:
    def fails(key: bytes | None, records: KeyRecords) -> None:
        if key == b"slow":
            raise TimeoutError

    slices = [whole(topic, 240, 260, partition=0)]
    partition = replace(task(kafka, slices), report=receiver.report_to(slices), singly=True)
    with pytest.raises(Exception, match="TimeoutError"):
        list(read_slices(partition, UserFunction(as_text(fails), OUTPUT, "keys", concurrency)))
    at: list[Slice] = []

    def reported() -> bool:
        at.extend(s for cost in receiver.take() for s in cost.under_way)
        return bool(at) and at[-1].offsets == OffsetRange(250, 251)

    eventually(reported, "the record is known", 20)
    assert at[-1].hashes.lo == at[-1].hashes.hi == hash_record(b"slow", 0)


def test_a_streams_reader_receives_the_costs_of_its_tasks(kafka: Kafka, topic: str, redis_url: str, group: str) -> None:
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
        "slots": "2",
        "lanes": "4",
    }
    reader = CoopKafkaStreamReader(validate(options, streaming=True))
    costs: list[SliceCost] = []

    def one_batch() -> None:
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        tasks = reader.partitions(start, end)
        for each in tasks:
            assert isinstance(each, SlicePartition)
            list(reader.read(each))
        session = reader._session
        assert isinstance(session, GroupSession)
        costs.extend(finished(session._tasks, 8))
        reader.stop()

    process = threading.Thread(target=one_batch)  # not the main thread, whose signals are pytest's
    process.start()
    process.join(60)
    assert len(costs) == 8, "two partitions in four lanes"
    assert sum(cost.rows for cost in costs) == 1_001
