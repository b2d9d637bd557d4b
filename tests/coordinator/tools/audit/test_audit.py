"""An audit of a group on real Kafka and Redis, with a Parquet sink that the test writes: what Kafka and Redis know."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from coordinator.errors import DataLossError, UnknownTopicError
from coordinator.kafka.log import KafkaLog
from coordinator.progress.failing import FailingRecord
from coordinator.redis.keys import GroupKeys
from coordinator.tools.audit.audit import BEGAN_LATER, DEAD_UNKNOWN, FILTERED, AuditRequest, Kafka, audit
from coordinator.tools.audit.parquet_sink import ParquetSink
from coordinator.tools.audit.report import Audit
from coordinator.tools.operations.group_look import look_at
from coordinator.values.dead_letter import DeadLetter, SourceRecord
from coordinator.values.key_hash import hash_key
from coordinator.values.subscription import TopicPartition
from group_services import Group, run, subscribed
from spark_coop_source.key_columns import key_columns
from streams import eventually, keyed
from topics import Record
from written_records import consumed


def sink(folder: Path, rows: Mapping[int, Sequence[int]], partition: int = 0) -> ParquetSink:
    """Batch -> offsets."""
    for batch, offsets in rows.items():
        path = folder / f"batch={batch}" / f"part-00000-{partition}.parquet"
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table({"partition": [partition] * len(offsets), "offset": offsets}), path)
    return ParquetSink(f"parquet:{folder}", {})


def audited(
    members: Group, read: ParquetSink, *topics: str, isolation: str = "read_committed", **wanted: object
) -> Audit:
    arguments: dict[str, object] = {"bootstrap_servers": members.kafka.bootstrap, "isolation_level": isolation}
    with closing(KafkaLog(arguments, retries=3, retry_interval_ms=200)) as log:
        kafka = Kafka(arguments, log, key_columns)
        chosen = AuditRequest(dict.fromkeys(topics), **wanted)  # type: ignore[arg-type]
        return audit(look_at(members.client, members.name, batches=0), "the sink", read, kafka, chosen)


def found(result: Audit) -> list[tuple[str, str]]:
    return [(f.kind, str(f.offsets)) for p in result.partitions for f in p.faults]


def test_records_of_the_log_are_compared_with_the_sink(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    run(members, subscribed(tp))
    good = audited(members, sink(tmp_path, {0: [0, 1, 2], 1: [3, 4]}), tp.topic)
    assert (good.good, good.total("records"), good.notes) == (True, 5, ())
    assert found(audited(members, sink(tmp_path, {1: [4, 1]}), tp.topic)) == [("lost", "3"), ("repeated", "1")]


def test_aborted_records_and_markers_are_not_lost(members: Group, tmp_path: Path) -> None:
    topic = members.kafka.create_topic("audited")
    members.kafka.produce_committed(topic, keyed(3))  # 0 to 2, and a marker
    members.kafka.produce_aborted(topic, keyed(2))  # 4 and 5, and a marker
    members.kafka.produce_committed(topic, keyed(2))  # 7 and 8
    run(members, subscribed(TopicPartition(topic, 0)))
    read = sink(tmp_path, {0: [0, 1, 2, 7, 8]})
    good = audited(members, read, topic)
    assert (good.good, good.total("records"), good.partitions[0].until) == (True, 5, 10)
    assert found(audited(members, read, topic, isolation="read_uncommitted")) == [("lost", "4-5")]
    assert audited(members, sink(tmp_path, {1: [4]}), topic).total("gone") == 1


def test_records_of_open_transactions_are_not_looked_at(members: Group, tmp_path: Path) -> None:
    topic = members.kafka.create_topic("audited")
    members.kafka.produce(topic, keyed(3))
    with members.kafka.open_transaction(topic, keyed(2)):
        run(members, subscribed(TopicPartition(topic, 0)))
        result = audited(members, sink(tmp_path, {0: [0, 1, 2, 3]}), topic)
    (partition,) = result.partitions
    assert (result.good, partition.stable, partition.until, partition.ahead) == (True, 5, 3, 1)


def test_compacted_records_are_not_lost(members: Group, tmp_path: Path) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    topic = members.kafka.create_topic("audited", config=config)
    members.kafka.produce(topic, [Record(b"v", b"key-%d" % (n % 4)) for n in range(20)])
    run(members, subscribed(TopicPartition(topic, 0)))

    def left() -> list[int]:
        members.kafka.produce(topic, [Record(b"v", b"key-0")])  # it lets Kafka close the segment
        return [r.offset for r in consumed(members.kafka.bootstrap, topic) if r.offset < 20]

    eventually(lambda: len(left()) < 20, "Kafka compacts the log")
    whole = audited(members, sink(tmp_path, {0: range(20)}), topic)
    assert (whole.good, whole.total("gone")) == (True, 20 - whole.total("records"))
    assert whole.total("gone") > 0
    few = left()
    result = audited(members, sink(tmp_path, {0: few[:-1]}), topic)
    assert found(result) == [("lost", str(few[-1]))]


def test_offsets_before_the_log_are_not_lost(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    run(members, subscribed(tp))
    result = audited(members, sink(tmp_path, {0: [3, 4]}), tp.topic, start=3)
    assert (result.good, result.total("records")) == (True, 2)


def test_dead_letters_are_told_apart(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    run(members, subscribed(tp))
    dead = members.kafka.create_topic("dead")
    groups = {1: members.name, 2: "another"}
    letters = [DeadLetter(SourceRecord(tp, at, -1, b"k", b"v"), group, "E", "", 1) for at, group in groups.items()]
    members.kafka.produce(dead, [Record(b"v", b"k", 0, x.headers) for x in letters])  # type: ignore[arg-type]
    read = sink(tmp_path, {0: [0, 3, 4]})
    unknown, known = audited(members, read, tp.topic), audited(members, read, tp.topic, dead=dead)
    assert (found(unknown), unknown.notes) == ([("lost", "1-2")], (DEAD_UNKNOWN,))
    assert (found(known), known.total("dead_lettered"), known.notes) == ([("lost", "2")], 1, ())


def test_parked_keys_wait_above_the_stable_offset(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    run(members, subscribed(tp))
    key = hash_key(b"key-2")
    rest = ((0, key - 1), (key + 1, 2**63 - 1))
    ranges = {(key, key): 2, **dict.fromkeys(rest, 5)}
    positions = {f"{lo:016x}-{hi:016x}": position for (lo, hi), position in ranges.items()}
    keys = GroupKeys(members.name)
    members.redis.delete(keys.segments(tp))
    for hashes, position in positions.items():
        members.redis.hset(keys.segments(tp), hashes, str(position))
    failing = FailingRecord(tp, key, 2, 3, 0, parked=True)
    members.redis.hset(keys.failing, failing.field, failing.text)
    result = audited(members, sink(tmp_path, {0: [0, 1, 3, 4]}), tp.topic)
    (partition,) = result.partitions
    assert (result.good, partition.stable, partition.records, partition.waiting, partition.parked) == (True, 2, 4, 1, 1)


def test_a_group_with_a_filter_says_that_it_does_not_know_it(
    members: Group, tp: TopicPartition, tmp_path: Path
) -> None:
    run(members, subscribed(tp))
    members.redis.hset(GroupKeys(members.name).meta, "filter", "allow=1 digest=0")
    assert audited(members, sink(tmp_path, {0: range(5)}), tp.topic).notes == (FILTERED,)


def test_each_topic_has_rows_of_its_own(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    other = members.kafka.create_topic("audited", partitions=2)
    members.kafka.produce(other, [Record(b"v", b"k", 1)])
    run(members, replace(subscribed(tp), names=(tp.topic, other)))
    for topic, partition, offsets in ((tp.topic, 0, range(5)), (other, 1, [0])):
        (tmp_path / f"topic={topic}").mkdir(parents=True)
        sink(tmp_path / f"topic={topic}", {0: offsets}, partition)
    result = audited(members, ParquetSink(f"parquet:{tmp_path}", {}), tp.topic, other)
    assert (result.good, [p.records for p in result.partitions]) == (True, [5, 0, 1])


def test_a_topic_without_positions_is_refused(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    run(members, subscribed(tp))
    other = members.kafka.create_topic("audited")
    with pytest.raises(UnknownTopicError, match="no position"):
        audited(members, sink(tmp_path, {}), other)


def test_a_topic_that_was_created_again_is_refused(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    run(members, subscribed(tp))
    members.kafka.recreate_topic(tp.topic)
    with pytest.raises(DataLossError, match="created again"):
        audited(members, sink(tmp_path, {}), tp.topic)


def test_a_sink_without_the_first_records_names_the_offset_to_begin_at(
    members: Group, tp: TopicPartition, tmp_path: Path
) -> None:
    run(members, subscribed(tp))
    read = sink(tmp_path, {0: [2, 3, 4]})
    (note,) = audited(members, read, tp.topic).notes
    assert note == BEGAN_LATER.format(partition=f"{tp.topic}-0", offset=2)
    assert audited(members, read, tp.topic, start=2).good
    (tmp_path / "later").mkdir()
    lost_later = audited(members, sink(tmp_path / "later", {0: [3, 4]}), tp.topic, start=2)
    assert lost_later.notes == (DEAD_UNKNOWN,), "the first records after that offset are lost"
