"""Streaming queries on real Kafka, Redis and Spark: lanes, triggers, resume, and who may read a checkpoint."""

import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.listener import StreamingQueryProgress

from streams import Stream, eventually, keyed, sent, stable, state
from topics import Kafka, Record
from verdict import judge, require_good

IDLE_S = 4.0  # a twentieth of it are twenty ticks of the kernel's clock


def produce(kafka: Kafka, stream: Stream, records: list[Record]) -> list[Record]:
    kafka.produce(stream.options["subscribe"], records)
    return records


def wal(stream: Stream, batch: int) -> dict[str, Any]:
    """The offset of the only source in a batch's WAL entry."""
    entry = (stream.checkpoint / "offsets" / str(batch)).read_text()
    offset: dict[str, Any] = json.loads(entry.splitlines()[2])
    return offset


def test_one_partition_is_read_by_four_tasks_at_once_each_key_in_order(kafka: Kafka, stream: Stream) -> None:
    records = produce(kafka, stream, keyed(2000))
    stream.run()
    require_good(judge(sent(records), stream.sink.received))
    assert stream.sink.tasks == {0: 4}
    assert stable(stream) == {2000}
    eventually(lambda: state(stream).leases_ms == {}, "a query that ended has left", deadline_s=20)


def test_a_limit_cuts_the_topic_in_batches_and_keeps_the_order(kafka: Kafka, stream: Stream) -> None:
    records = produce(kafka, stream, keyed(1000))
    stream.run(maxOffsetsPerTrigger="300")
    require_good(judge(sent(records), stream.sink.received))
    assert stream.sink.batches == [0, 1, 2, 3]


def test_lanes_are_a_fixed_number_for_each_partition(kafka: Kafka, stream: Stream) -> None:
    produce(kafka, stream, keyed(100))
    stream.run(lanes="16")
    topic = stream.options["subscribe"]
    assert len(wal(stream, 0)[topic]["0"]) == 16
    assert stream.sink.tasks == {0: 4}


@pytest.mark.parametrize(
    ("option", "value", "tasks"),
    [
        pytest.param("minPartitions", "6", 6, id="minPartitions cuts by hash"),
        pytest.param("maxRecordsPerPartition", "50", 8, id="maxRecordsPerPartition cuts by hash"),
    ],
)
def test_more_tasks_than_slots_on_request(kafka: Kafka, stream: Stream, option: str, value: str, tasks: int) -> None:
    records = produce(kafka, stream, keyed(400))
    stream.run(**{option: value})
    require_good(judge(sent(records), stream.sink.received))
    assert stream.sink.tasks[0] >= tasks


def test_a_second_run_goes_on_where_the_first_stopped(kafka: Kafka, stream: Stream) -> None:
    first = produce(kafka, stream, keyed(100))
    stream.run()
    second = produce(kafka, stream, keyed(50, first=100))
    stream.run()
    require_good(judge(sent(first + second), stream.sink.received))
    assert wal(stream, 0)["#"]["member"] == wal(stream, 1)["#"]["member"], "same checkpoint, same member"


def test_a_running_query_sees_new_records_and_reports_the_log_end_in_sparks_form(kafka: Kafka, stream: Stream) -> None:
    topic = stream.options["subscribe"]
    produce(kafka, stream, keyed(30))
    with stream.running(lambda: len(stream.sink.received) == 40, "new records arrive") as query:
        eventually(lambda: len(stream.sink.received) == 30, "the first records arrive")
        produce(kafka, stream, keyed(10, first=30))
        reports: list[dict[str, Any]] = []

        def reported() -> bool:
            ends = [end for end in map(_log_ends, query.recentProgress) if end and end.get(topic) == {"0": 40}]
            reports.extend(end["#"] for end in ends if end["#"]["maxOffsetsBehindLatest"] == "0")
            return bool(reports)

        eventually(reported, "the log end is reported, and that nothing is left to read")
        assert (reports[-1]["minOffsetsBehindLatest"], reports[-1]["avgOffsetsBehindLatest"]) == ("0", "0.0")
        assert reports[-1]["limitedLanes"] == len(reports[-1]["limited"]) <= reports[-1]["lanes"] > 0
        assert reports[-1]["parkedLanes"] == 0


def _log_ends(progress: StreamingQueryProgress) -> Any:
    return json.loads(progress.json)["sources"][0]["latestOffset"]


def test_a_failed_batch_is_not_committed_and_is_replayed_exactly(kafka: Kafka, stream: Stream) -> None:
    records = produce(kafka, stream, keyed(200))

    def fail(batch_id: int) -> None:
        if batch_id == 1:
            raise RuntimeError("the sink fails in batch 1")

    stream.sink.before = fail
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        stream.run(maxOffsetsPerTrigger="100")
    assert stable(stream) == {100}
    planned = wal(stream, 1)
    stream.sink.before = lambda batch_id: None
    produce(kafka, stream, keyed(100, first=200))
    stream.run(maxOffsetsPerTrigger="1000")
    assert wal(stream, 1) == planned
    assert [d.offset for d in stream.sink.received if d.batch == 1 and d.offset >= 200] == []
    require_good(judge(sent(records + keyed(100, first=200)), stream.sink.received))


def test_processing_time_and_once_triggers(kafka: Kafka, stream: Stream) -> None:
    records = produce(kafka, stream, keyed(60))
    query = stream.start({"once": True})
    assert query.awaitTermination(60)
    produced = produce(kafka, stream, keyed(10, first=60))
    query = stream.start({"processingTime": "200 milliseconds"})
    eventually(lambda: len(stream.sink.received) == 70, "the trigger fires")
    query.stop()
    require_good(judge(sent(records + produced), stream.sink.received))


def test_latest_is_resolved_once_before_the_first_batch(kafka: Kafka, stream: Stream) -> None:
    produce(kafka, stream, keyed(20))
    with stream.running(lambda: bool(stream.sink.received), "records after the start", startingOffsets="latest"):
        eventually(lambda: bool(stable(stream)), "first positions are set")
        produce(kafka, stream, keyed(5, first=20))
    assert stream.sink.offsets == [20, 21, 22, 23, 24]


def test_a_pattern_finds_topics_that_appear_later(kafka: Kafka, stream: Stream) -> None:
    prefix = stream.options.pop("subscribe")
    stream.options["subscribePattern"] = f"{prefix}.*"
    kafka.produce(prefix, keyed(5))
    with stream.running(lambda: len(stream.sink.received) == 8, "the later topic is read"):
        eventually(lambda: len(stream.sink.received) == 5, "the first topic is read")
        kafka.produce(kafka.create_topic(prefix), keyed(3))


def test_standalone_mode_reads_key_ranges_without_group_and_redis(kafka: Kafka, stream: Stream) -> None:
    records = produce(kafka, stream, keyed(300))
    topic, middle = stream.options.pop("subscribe"), 2**62
    for option in ("group", "redisUrl"):
        stream.options.pop(option)
    parts = {"lower": [[0, middle - 1]], "upper": [[middle, 2**63 - 1]]}
    found = []
    for name, ranges in parts.items():
        part = Stream(stream.spark, stream.options, stream.checkpoint / name)
        for limit in ("100", "1000"):
            part.run(assign=json.dumps({topic: {"0": ranges}}), maxOffsetsPerTrigger=limit)
        assert len(part.sink.batches) > 1
        found += part.sink.received
    assert {d.key for d in found if d.key} == {f"key-{i}" for i in range(20)}
    assert sorted(d.offset for d in found) == list(range(len(records)))


def test_stopping_an_idle_query_leaves_the_group_at_once(kafka: Kafka, stream: Stream) -> None:
    produce(kafka, stream, keyed(10))
    with stream.running(lambda: stable(stream) == {10}, "confirmed"):
        pass
    eventually(lambda: state(stream).leases_ms == {}, "Spark does not wait for the reader's stop", deadline_s=20)
    assert all(owners == () for owners in state(stream).owners.values())


@pytest.mark.long
def test_an_idle_query_costs_the_reader_under_a_twentieth_of_a_core(kafka: Kafka, stream: Stream) -> None:
    produce(kafka, stream, keyed(10))
    with stream.running(lambda: True, "idle") as query:
        eventually(lambda: stable(stream) == {10}, "idle")
        (member,) = state(stream).members.values()
        reader, looks = psutil.Process(int(member["pid"])), len(query.recentProgress)
        assert psutil.Process(int(member["driver_pid"])).name() == "java", "what an operator stops is the driver"
        before = reader.cpu_times()
        started = time.monotonic()
        eventually(lambda: time.monotonic() - started > IDLE_S, "idle seconds")
        after = reader.cpu_times()
        used = after.user + after.system - before.user - before.system
        assert used / (time.monotonic() - started) < 0.05, f"after {looks} triggers"


# -- who may read a checkpoint, and who may enter a group --------------------------------------


def test_a_checkpoint_of_another_group_is_refused_by_name(kafka: Kafka, stream: Stream) -> None:
    produce(kafka, stream, keyed(10))
    stream.run()
    with pytest.raises(StreamingQueryException, match=r"CHECKPOINT_MISMATCH.*belongs to group"):
        stream.run(group="somebody-else")


def test_starting_offsets_by_partition_do_not_forbid_a_topic_to_grow_or_another_to_be_added(
    kafka: Kafka, stream: Stream, tmp_path: Path
) -> None:
    old, added = stream.options["subscribe"], kafka.create_topic("added")
    kafka.produce(old, keyed(10))
    kafka.produce(added, keyed(10))
    stream.run(startingOffsets=json.dumps({old: {"0": 8}}))
    assert stream.sink.offsets == [8, 9]
    kafka.add_partitions(old, 2)
    kafka.produce(old, [Record(b"v", b"k", partition=1)])
    both = Stream(stream.spark, stream.options, tmp_path / "both")
    both.run(subscribe=f"{old},{added}", startingOffsets=json.dumps({old: {"0": 8}, added: {"0": 7}}))
    assert both.sink.offsets == [0, 7, 8, 9]
