"""A task reads exactly the points in its slices, as Spark's Kafka source would show them."""

import gc
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import KafkaConsumer
from kafka.consumer.fetcher import ConsumerRecord
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator.errors import KafkaAccessError, TaskNotEndedError
from coordinator.progress.slices import Slice, merged
from coordinator.values.key_hash import cuts, hash_record
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from log_fixtures import end, everything, inside, lane, odd_log, offsets, rows, task, whole
from secure_listener import SecureListener
from spark_coop_source.arrow_output.schema import EVERY, PLAIN, schema
from spark_coop_source.driver.task_server import TaskServer
from spark_coop_source.fetch import consumers
from spark_coop_source.function.user_function import UserFunction, as_text
from spark_coop_source.task.partition import SlicePartition, TaskEnding
from spark_coop_source.task.read import read_slices
from spark_coop_source.telemetry.report import ReportTo
from told_ends import told_by
from topics import Kafka, Record

ISOLATION = ("read_committed", "read_uncommitted")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def odd(kafka: Kafka) -> Iterator[str]:
    yield odd_log(kafka)
    consumers.close_idle()


@pytest.fixture(scope="module")
def odd_end(kafka: Kafka, odd: str) -> int:
    return end(kafka, odd)


@pytest.fixture(scope="module")
def odd_records(kafka: Kafka, odd: str) -> dict[str, list[ConsumerRecord]]:
    """The records that a plain consumer reads, under each isolation level."""
    return {level: everything(kafka, odd, level) for level in ISOLATION}


def as_row(record: ConsumerRecord) -> dict[str, object]:
    return {
        "key": record.key,
        "value": record.value,
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": EPOCH + timedelta(milliseconds=record.timestamp),
        "timestampType": record.timestamp_type,
        "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
    }


@pytest.mark.parametrize("level", ISOLATION)
def test_an_odd_log_is_read_whole(
    kafka: Kafka, odd: str, odd_end: int, odd_records: dict[str, list[ConsumerRecord]], level: str
) -> None:
    read = rows(task(kafka, [whole(odd, 0, odd_end)], include_headers=True, isolation_level=level))
    assert read == [as_row(record) for record in odd_records[level]]


def test_the_odd_log_is_odd(odd_end: int, odd_records: dict[str, list[ConsumerRecord]]) -> None:
    committed, all_of_it = (odd_records[level] for level in ISOLATION)
    assert len(committed) < len(all_of_it) < odd_end, "aborted records, and markers"
    assert {None, b""} <= {record.key for record in committed}
    assert {None, b""} <= {record.value for record in committed}
    assert any(len(record.headers) > 1 for record in committed)
    assert max(record.serialized_value_size for record in committed) > 1024 * 1024
    assert odd_end - 1 > committed[-1].offset + 1, "it ends with an aborted transaction"


@pytest.mark.parametrize("include_headers", [False, True])
def test_batches_have_the_schema_of_the_source(kafka: Kafka, odd: str, include_headers: bool) -> None:
    batches = list(read_slices(task(kafka, [whole(odd, 0, 30)], include_headers=include_headers)))
    assert [batch.schema for batch in batches] == [
        to_arrow_schema(schema(EVERY if include_headers else PLAIN), timezone="UTC")
    ]


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("level", ISOLATION)
def test_lanes_of_a_partition_are_disjoint_and_complete(
    kafka: Kafka, odd: str, odd_end: int, odd_records: dict[str, list[ConsumerRecord]], n: int, level: str
) -> None:
    read = [rows(task(kafka, [lane(odd, h, 0, odd_end)], include_headers=True, isolation_level=level)) for h in cuts(n)]
    assert sorted((row for part in read for row in part), key=lambda row: int(str(row["offset"]))) == [
        as_row(record) for record in odd_records[level]
    ]
    for hashes, part in zip(cuts(n), read, strict=True):
        assert all(row["offset"] < later["offset"] for row, later in pairwise(part))  # type: ignore[operator]
        assert all(hash_record(row["key"], row["offset"]) in hashes for row in part)  # type: ignore[arg-type]


SIXTEENTH = (HASH_MAX + 1) // 16
some_hashes = st.tuples(st.integers(0, 15), st.integers(1, 16)).map(
    lambda at: HashRange(at[0] * SIXTEENTH, min(HASH_MAX, (at[0] + at[1]) * SIXTEENTH - 1))
)
a_single_hash = (
    st.sampled_from([b"a", b"b", b"", b"3"])
    .map(lambda key: hash_record(key, 0))
    .map(lambda key_hash: HashRange(key_hash, key_hash))
)


@given(data=st.data(), level=st.sampled_from(ISOLATION), max_poll_records=st.sampled_from([1, 7, 10_000]))
@settings(max_examples=60)
def test_any_slices_return_the_records_whose_points_lie_in_them(
    kafka: Kafka,
    odd: str,
    odd_end: int,
    odd_records: dict[str, list[ConsumerRecord]],
    data: st.DataObject,
    level: str,
    max_poll_records: int,
) -> None:
    some_offsets = st.tuples(st.integers(0, odd_end - 1), st.integers(1, odd_end)).map(
        lambda at: OffsetRange(at[0], min(odd_end, at[0] + at[1]))
    )
    hashes = st.just(WHOLE) | some_hashes | a_single_hash
    rectangles = data.draw(st.lists(st.tuples(hashes, some_offsets), max_size=5), "slices")
    slices = [Slice(TopicPartition(odd, 0), hashes, offsets) for hashes, offsets in rectangles]
    partition = task(kafka, slices, isolation_level=level, max_poll_records=max_poll_records)
    assert offsets(partition) == [record.offset for record in odd_records[level] if inside(record, slices)]


@given(
    st.lists(
        st.builds(
            Slice,
            st.just(TopicPartition("t", 0)),
            st.just(WHOLE) | some_hashes,
            st.tuples(st.integers(0, 5), st.integers(1, 5)).map(lambda at: OffsetRange(at[0], at[0] + at[1])),
        ),
        max_size=8,
    )
)
def test_merged_slices_are_the_same_points(slices: list[Slice]) -> None:
    def points(of: list[Slice]) -> set[tuple[int, int]]:
        return {(o, h) for o in range(10) for h in range(16) for s in of if o in span(s) and h * SIXTEENTH in s.hashes}

    def span(s: Slice) -> range:
        return range(s.offsets.start, s.offsets.until)

    together = list(merged(slices))
    assert points(together) == points(slices)
    assert len(together) <= len(slices)


def test_lanes_that_are_the_whole_space_together_become_one_slice() -> None:
    lanes = [lane("orders", hashes, 5, 9) for hashes in cuts(7)]
    assert merged(reversed(lanes)) == (whole("orders", 5, 9),)


def test_slices_of_many_partitions_and_topics_are_read_in_one_task(kafka: Kafka) -> None:
    topics = sorted(kafka.create_topic(partitions=3) for _ in range(2))
    for topic in topics:
        kafka.produce(topic, [Record(b"v", b"%d" % i, partition=i % 3) for i in range(60)])
    slices = [whole(topic, 5, 15, partition) for topic in topics for partition in (2, 0, 1)]
    read = [(row["topic"], row["partition"], row["offset"]) for row in rows(task(kafka, slices))]
    assert read == [(topic, partition, offset) for topic in topics for partition in range(3) for offset in range(5, 15)]


def test_offsets_between_the_slices_are_not_delivered(kafka: Kafka, odd: str) -> None:
    assert offsets(task(kafka, [whole(odd, 2, 5), whole(odd, 20, 22), whole(odd, 8, 9)])) == [2, 3, 4, 8, 20, 21]


def test_a_task_without_slices_reads_nothing_and_calls_no_broker() -> None:
    assert rows(task(Kafka("127.0.0.1:9"), [])) == []


def test_the_time_of_append_has_its_own_timestamp_type(kafka: Kafka) -> None:
    topic = kafka.create_topic(config={"message.timestamp.type": "LogAppendTime"})
    kafka.produce(topic, [Record(b"v", timestamp_ms=1_000), Record(b"v", timestamp_ms=2_000)])
    read = rows(task(kafka, [whole(topic, 0, 2)]))
    assert [row["timestampType"] for row in read] == [1, 1]
    assert all(abs(datetime.now(UTC) - row["timestamp"]) < timedelta(minutes=1) for row in read)  # type: ignore[operator]


def test_large_values_come_in_bounded_batches(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(bytes(900_000))] * 60, compression="zstd")
    batches = list(read_slices(task(kafka, [whole(topic, 0, 60)])))
    assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == list(range(60))
    assert max(batch.nbytes for batch in batches) <= 16 * 1024 * 1024


def test_many_small_records_come_in_few_batches(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v", b"%d" % i) for i in range(25_000)])
    lengths = [len(batch) for batch in read_slices(task(kafka, [whole(topic, 0, 25_000)]))]
    assert sum(lengths) == 25_000
    assert max(lengths) <= 20_000
    assert len(lengths) <= 4


def test_a_task_that_is_ended_early_leaves_a_sound_consumer(kafka: Kafka, odd: str, odd_end: int) -> None:
    started = read_slices(task(kafka, [whole(odd, 0, odd_end)], max_poll_records=1))
    assert isinstance(started, Iterator)
    assert len(next(started))
    started.close()  # type: ignore[attr-defined]
    assert offsets(task(kafka, [whole(odd, 3, 6)], max_poll_records=1)) == [3, 4, 5]


def secure_task(listener: SecureListener, slices: list[Slice], password: str) -> SlicePartition:
    return task(
        Kafka(listener.bootstrap),
        slices,
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username=listener.user,
        sasl_plain_password=password,
        ssl_cafile=str(listener.authority),
    )


def test_records_come_over_tls_with_a_password(odd: str, secure_listener: SecureListener) -> None:
    assert offsets(secure_task(secure_listener, [whole(odd, 0, 5)], secure_listener.password)) == [0, 1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore:unclosed <(socket|ssl):ResourceWarning")
def test_a_wrong_password_fails_at_once_and_is_not_shown(odd: str, secure_listener: SecureListener) -> None:
    with pytest.raises(KafkaAccessError, match="refused the credentials") as refused:
        offsets(secure_task(secure_listener, [whole(odd, 0, 5)], "pa55word"))
    assert "pa55word" not in str(refused.value)
    gc.collect()  # kafka-python leaves refused connections to the collector, whose warning belongs here


def test_an_input_partition_travels_and_shows_no_credentials(kafka: Kafka) -> None:
    partition = task(kafka, [whole("orders", 0, 1)], sasl_plain_password="hidden")
    assert pickle.loads(pickle.dumps(partition)) == partition
    assert "hidden" not in repr(partition)


@pytest.mark.parametrize("missing", ["kafka", "pyarrow", "mmh3", "numpy"])
def test_a_worker_without_a_package_names_it(missing: str) -> None:
    program = f"""
import sys
sys.modules[{missing!r}] = None  # importing it fails as if it were not installed
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.read import read_slices
from coordinator.errors import EnvironmentMismatchError
try:
    list(read_slices(SlicePartition((), {{}}, (), True)))
except EnvironmentMismatchError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert f"import of {missing} halted" in done.stdout or f"No module named '{missing}." in done.stdout, done.stderr
    assert sys.executable in done.stdout
    assert "Remedy: install coop-kafka with its dependencies where driver and executors run" in done.stdout


def test_a_worker_without_memory_for_a_thread_names_the_option(kafka: Kafka) -> None:
    """As under spark.executor.pyspark.memory: the address space is limited, and a thread's stack no longer fits."""
    topic = kafka.create_topic("memory")
    program = f"""
import resource
from coordinator.errors import EnvironmentMismatchError
from coordinator.progress.slices import Slice
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.task import slice_reader
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.read import read_slices
part = Slice(TopicPartition({topic!r}, 0), WHOLE, OffsetRange(0, 1))
task = SlicePartition((part,), {{"bootstrap_servers": {kafka.bootstrap!r}}}, ("value",), True)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**21, resource.RLIM_INFINITY))
try:
    list(read_slices(task))
except EnvironmentMismatchError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ENVIRONMENT_MISMATCH: a Python worker got no more memory or threads" in done.stdout, done.stderr
    assert "its limit is" in done.stdout
    assert "Remedy: raise spark.executor.pyspark.memory" in done.stdout


def test_a_workers_collector_skips_imported_objects() -> None:
    program = """
import gc
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.read import read_slices
before = gc.get_freeze_count()
list(read_slices(SlicePartition((), {}, (), True)))
print(gc.get_freeze_count() - before > 10_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def test_imports_of_a_workers_reader_load_neither_redis_nor_kafka() -> None:
    program = """
import sys
from spark_coop_source.driver import stream_reader
print(sorted({name.split(".")[0] for name in sys.modules} & {"kafka", "redis"}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


def test_a_task_that_cannot_report_its_ends_reads_all_unless_the_driver_waits_for_them() -> None:
    """Rule: seal-before-sink. No server listens at this address."""
    deaf = ReportTo("127.0.0.1", 1, 1, b"k" * 32)
    empty = SlicePartition((), {}, columns=(), poll_timeout_ms=1_000, fail_on_data_loss=True, report=deaf)
    assert list(read_slices(replace(empty, ending=TaskEnding("digest", required=False)))) == []
    with pytest.raises(TaskNotEndedError, match=r"does not answer at 127\.0\.0\.1, port 1\b"):
        list(read_slices(replace(empty, ending=TaskEnding("digest"))))


def _of_key(key: object, records: object) -> None:
    raise AssertionError("it gets a key")


def _of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (pytest.fail("it gets a batch") for _ in batches)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(None, id="no function"),
        pytest.param(UserFunction(as_text(_of_key), schema(PLAIN), "keys"), id="keys"),
        pytest.param(UserFunction(as_text(_of_batches), schema(PLAIN), "batches"), id="batches"),
    ],
)
def test_a_task_hands_over_nothing_more_once_its_driver_has_left(
    kafka: Kafka, odd: str, monkeypatch: pytest.MonkeyPatch, function: UserFunction | None
) -> None:
    """Rule: leave-keeps-unconfirmed. The driver leaves while the task fetches its first records."""
    server, got = TaskServer([kafka.bootstrap], 1), list[pa.RecordBatch]()
    of_odd = task(kafka, [whole(odd, 0, 30)])
    poll = KafkaConsumer.poll

    def left(*arguments: object, **named: object) -> object:
        server.close()
        return poll(*arguments, **named)

    monkeypatch.setattr(KafkaConsumer, "poll", left)
    with pytest.raises(TaskNotEndedError, match="has left its group"):
        got.extend(read_slices(replace(of_odd, report=server.report_to(of_odd.slices)), function))
    assert got == []


def test_a_task_whose_driver_takes_no_ends_reads_nothing_where_its_batch_requires_them() -> None:
    """Rule: seal-before-sink. The driver could not open a server."""
    empty = SlicePartition((), {}, columns=(), poll_timeout_ms=1_000, fail_on_data_loss=True)
    assert list(read_slices(replace(empty, ending=TaskEnding("digest", required=False)))) == []
    with pytest.raises(TaskNotEndedError, match="its driver takes no ends"):
        list(read_slices(replace(empty, ending=TaskEnding("digest"))))


def test_a_task_that_may_not_end_early_only_reports_that_it_has_ended() -> None:
    """Rule: batch-clock."""
    ending = TaskEnding("digest", task=3, by_time=False, required=False, early=False)
    task = SlicePartition((), {}, (), poll_timeout_ms=1_000, fail_on_data_loss=True)
    with told_by(task, ending) as (heard, told):
        assert list(read_slices(heard)) == []
    assert (told.asked, told.ended) == ([], [("digest", 3, {})])
