"""A sink drops a batch id that it has already, unread. Its records are not lost (rule: unread-batch)."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import SinkSkippedBatchError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, records, subscribed
from streams import DEADLINE_S, Stream, keyed, stable
from topics import Kafka

# -- a member, without Spark ---------------------------------------------------------------------


def planned(service: Service, start: StreamOffset) -> StreamOffset:
    end = service.next_offset(start, UNLIMITED)
    assert end is not None
    return end


def started(members: Group, tp: TopicPartition, *, unread_batches: bool = False) -> Service:
    settings = GroupSettings(members.name, session_ms=500, unread_batches=unread_batches)
    return members.started(subscribed(tp), settings=settings)


def test_skipped_to_restarted_on_the_same_checkpoint_it_is_refused_again(members: Group, tp: TopicPartition) -> None:
    skipped = planned(started(members, tp), StreamOffset(members.name))
    for _ in range(2):
        with pytest.raises(SinkSkippedBatchError):
            started(members, tp).next_offset(skipped, UNLIMITED)
    assert members.state.stable == {tp: 0}


def test_skipped_to_left_another_checkpoint_reads_the_same_records_at_once(members: Group, tp: TopicPartition) -> None:
    first = started(members, tp)
    skipped = planned(first, StreamOffset(members.name))
    with pytest.raises(SinkSkippedBatchError):
        first.next_offset(skipped, UNLIMITED)
    first.leave()
    assert members.state.leases_ms == {}
    assert records(batch(started(members, tp), StreamOffset(members.name))) == records(skipped)


def test_read_to_replayed_a_batch_that_the_sink_has_from_the_life_before_is_committed(
    members: Group, tp: TopicPartition
) -> None:
    end = batch(started(members, tp), StreamOffset(members.name))
    reborn = started(members, tp)  # Spark found the batch in the sink's log, and asks for no partitions
    assert reborn.next_offset(replace(end), UNLIMITED) is None
    assert members.state.stable == {tp: 5}


def test_committed_to_committed_again_a_repeated_commit_is_no_skipped_batch(members: Group, tp: TopicPartition) -> None:
    service = started(members, tp)
    end = batch(service, StreamOffset(members.name))
    assert service.next_offset(end, UNLIMITED) is None
    members.kafka.produce(tp.topic, keyed(3))
    planned(service, end)  # never reaches the write-ahead log
    assert planned(started(members, tp), end).slices
    assert members.state.stable == {tp: 5}


@pytest.mark.parametrize("lost", ["the field", "the entry"])
def test_unknown_to_committed_a_batch_counts_as_read_where_the_members_entry_was_lost(
    members: Group, tp: TopicPartition, lost: str
) -> None:
    end = batch(started(members, tp), StreamOffset(members.name))
    entry = GroupKeys(members.name).member(str(end.member))
    assert members.redis.hdel(entry, "authorized") if lost == "the field" else members.redis.delete(entry)
    assert started(members, tp).next_offset(end, UNLIMITED) is None
    assert members.state.stable == {tp: 5}


def test_a_later_batch_is_skipped_though_the_first_one_was_read(members: Group, tp: TopicPartition) -> None:
    service = started(members, tp)
    end = batch(service, StreamOffset(members.name))
    members.kafka.produce(tp.topic, keyed(3))
    skipped = planned(service, end)
    with pytest.raises(SinkSkippedBatchError):
        service.next_offset(skipped, UNLIMITED)
    assert members.state.stable == {tp: 5}


def test_a_query_that_allows_unread_batches_continues_after_a_skipped_batch(members: Group, tp: TopicPartition) -> None:
    service = started(members, tp, unread_batches=True)
    assert service.next_offset(planned(service, StreamOffset(members.name)), UNLIMITED) is None
    assert members.state.stable == {tp: 5}


# -- Spark ---------------------------------------------------------------------------------------


def to_parquet(stream: Stream, checkpoint: Path, output: Path) -> None:
    rows = stream.spark.readStream.format("coop-kafka").options(**stream.options).load()
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(output))
    try:
        assert query.awaitTermination(DEADLINE_S)
    finally:
        query.stop()


def offsets_in(stream: Stream, *outputs: Path) -> list[int]:
    return sorted(row.offset for each in outputs for row in stream.spark.read.parquet(str(each)).collect())


def test_the_file_sink_with_a_new_checkpoint_and_an_old_output_loses_nothing(
    kafka: Kafka, stream: Stream, tmp_path: Path
) -> None:
    kafka.produce(stream.options["subscribe"], keyed(50))
    to_parquet(stream, tmp_path / "c1", tmp_path / "out")
    kafka.produce(stream.options["subscribe"], keyed(10, first=50))
    with pytest.raises(StreamingQueryException, match=r"SINK_SKIPPED_BATCH.*Remedy: .* output of its own"):
        to_parquet(stream, tmp_path / "c2", tmp_path / "out")
    assert stable(stream) == {50}
    to_parquet(stream, tmp_path / "c3", tmp_path / "another")
    assert offsets_in(stream, tmp_path / "out", tmp_path / "another") == list(range(60))


def nothing_of(rows: DataFrame, checkpoint: Path) -> None:
    query = rows.limit(0).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    running = query.trigger(availableNow=True).start()
    try:
        assert running.awaitTermination(DEADLINE_S)
    finally:
        running.stop()


def test_a_query_that_leaves_out_its_records_on_purpose_needs_the_option(kafka: Kafka, stream: Stream) -> None:
    kafka.produce(stream.options["subscribe"], keyed(5))
    reader = stream.spark.readStream.format("coop-kafka").options(**stream.options)
    with pytest.raises(StreamingQueryException, match=r"SINK_SKIPPED_BATCH.*allowUnreadBatches"):
        nothing_of(reader.load(), stream.checkpoint)
    nothing_of(reader.option("allowUnreadBatches", "true").load(), stream.checkpoint)
    assert stable(stream) == {5}


def test_a_foreach_batch_that_ignores_its_rows_needs_no_option(kafka: Kafka, stream: Stream) -> None:
    kafka.produce(stream.options["subscribe"], keyed(5))
    stream.sink = lambda _rows, _batch_id: None  # type: ignore[assignment]
    stream.run()
    assert stable(stream) == {5}
