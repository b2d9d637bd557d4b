"""Where a query begins and ends, by the rules of Spark's Kafka source, against a real broker."""

from collections.abc import Mapping
from contextlib import closing

import pytest

from coordinator.errors import StartingOffsetError
from coordinator.kafka.log import KafkaLog
from coordinator.values.offset_spec import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    NoMatch,
    OffsetSpec,
)
from coordinator.values.subscription import TopicPartition
from kafka_logs import T0, THREE_SECONDS, delete_records, kafka_log
from topics import Kafka, Record

RESOLVED: Mapping[str, tuple[OffsetSpec, list[int]]] = {
    "earliest is where the log begins now": (Earliest(), [1, 0]),
    "latest is the end": (Latest(), [3, 0]),
    "offsets are taken as they are": (AtOffsets({TopicPartition("t", 0): 2, TopicPartition("t", 1): 0}), [2, 0]),
    "-2 and -1 among offsets are words": (
        AtOffsets({TopicPartition("t", 0): EARLIEST, TopicPartition("t", 1): LATEST}),
        [1, 0],
    ),
    "an offset may be the end, where the next record will be": (
        AtOffsets({TopicPartition("t", 0): 3, TopicPartition("t", 1): 0}),
        [3, 0],
    ),
    "a time means the first record at or after it": (
        AtTimestamps({TopicPartition("t", 0): T0 + 2000, TopicPartition("t", 1): 0}, NoMatch.LATEST),
        [1, 0],
    ),
    "a time between two records means the later one": (AtTimestamp(T0 + 2500, NoMatch.LATEST), [2, 0]),
    "a time after all records means the end with latest": (AtTimestamp(T0 + 3001, NoMatch.LATEST), [3, 0]),
}


@pytest.fixture(scope="module")
def aged_topic(kafka: Kafka) -> str:
    """Partition 0 holds offsets 1 and 2 (0 was deleted), partition 1 nothing."""
    name = kafka.create_topic(partitions=2)
    kafka.produce(name, [Record(r.value, partition=0, timestamp_ms=r.timestamp_ms) for r in THREE_SECONDS])
    delete_records(kafka, TopicPartition(name, 0), before=1)
    return name


def of_topic(spec: OffsetSpec, name: str) -> OffsetSpec:
    """The same spec for a topic of this name in place of `t`."""
    match spec:
        case AtOffsets():
            return AtOffsets({tp._replace(topic=name): at for tp, at in spec.offsets.items()})
        case AtTimestamps():
            times = {tp._replace(topic=name): at for tp, at in spec.timestamps_ms.items()}
            return AtTimestamps(times, spec.no_match)
        case _:
            return spec


@pytest.mark.parametrize(("spec", "expected"), RESOLVED.values(), ids=RESOLVED)
def test_resolve(log: KafkaLog, aged_topic: str, spec: OffsetSpec, expected: list[int]) -> None:
    tps = [TopicPartition(aged_topic, 0), TopicPartition(aged_topic, 1)]

    assert log.resolve(of_topic(spec, aged_topic), tps) == dict(zip(tps, expected, strict=True))


def test_an_offset_in_an_open_transaction_is_in_the_log(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, THREE_SECONDS)
    committed = kafka_log(kafka.bootstrap, {"isolation_level": "read_committed"})
    with closing(committed) as log, kafka.open_transaction(topic, THREE_SECONDS):
        tp = TopicPartition(topic, 0)
        assert log.bounds([tp])[tp].end == 3
        assert log.resolve(AtOffsets({tp: 5}), [tp]) == {tp: 5}


UNRESOLVED: Mapping[str, tuple[OffsetSpec, str]] = {
    "a partition without an offset": (AtOffsets({TopicPartition("t", 0): 1}), "the query reads (missing: T-1)"),
    "an offset for a partition that is not read": (
        AtOffsets({TopicPartition("t", 0): 1, TopicPartition("t", 1): 0, TopicPartition("t", 2): 0}),
        "the query reads (not read: T-2)",
    ),
    "an offset beyond the end": (
        AtOffsets({TopicPartition("t", 0): 4, TopicPartition("t", 1): 0}),
        "T-0 at 4, where 1 to 3 are possible",
    ),
    "an offset below the beginning": (
        AtOffsets({TopicPartition("t", 0): 0, TopicPartition("t", 1): LATEST}),
        "T-0 at 0, where 1 to 3 are possible",
    ),
    "a partition without a time": (
        AtTimestamps({TopicPartition("t", 1): 0}, NoMatch.LATEST),
        "the query reads (missing: T-0)",
    ),
    "a time after all records, where the strategy is error": (
        AtTimestamps({TopicPartition("t", 0): T0 + 3000, TopicPartition("t", 1): 5}, NoMatch.ERROR),
        "no record has this timestamp or a later one: T-1 at 5",
    ),
}


@pytest.mark.parametrize(("spec", "message"), UNRESOLVED.values(), ids=UNRESOLVED)
def test_resolve_refuses(log: KafkaLog, aged_topic: str, spec: OffsetSpec, message: str) -> None:
    with pytest.raises(StartingOffsetError) as error:
        log.resolve(of_topic(spec, aged_topic), [TopicPartition(aged_topic, 0), TopicPartition(aged_topic, 1)])

    assert message.replace("T-", f"{aged_topic}-") in error.value.what


def test_without_fail_on_data_loss_an_offset_outside_the_log_is_left_to_the_reader(
    kafka: Kafka, aged_topic: str
) -> None:
    tp = TopicPartition(aged_topic, 0)
    with closing(kafka_log(kafka.bootstrap, fail_on_data_loss=False)) as log:
        assert log.resolve(AtOffsets({tp: 0}), [tp]) == {tp: 0}


def test_an_error_about_many_partitions_counts_them(kafka: Kafka, log: KafkaLog) -> None:
    name = kafka.create_topic(partitions=15)

    with pytest.raises(StartingOffsetError, match=f"missing: {name}-0, .*{name}-9 and 5 more"):
        log.resolve(AtOffsets({}), [TopicPartition(name, n) for n in range(15)])
