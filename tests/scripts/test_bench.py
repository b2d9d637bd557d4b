"""The machinery of `scripts/bench`: its counts and its printed lines. No test checks its measurements."""

import json
from contextlib import closing

import pytest
from kafka import KafkaConsumer, TopicPartition

from bench.cases.hot_key import Course
from bench.cases.latency import Side, Sink, at_part
from bench.cases.outages import Sink as OutageSink
from bench.loader import Load, produce
from bench.record import Row
from bench.runner import Pair, Sample, alternate, timed
from bench.sources import named
from bench.table import Result, duration, result, rows
from bench.waiting_stream import Done, lanes_of
from coordinator.values.subscription import TopicPartition as OurTopicPartition
from topics import Kafka


def pair(ours: list[float], theirs: list[float], cpu: float = 0.0) -> Pair:
    return Pair(tuple(Sample(s, 2 * cpu) for s in ours), tuple(Sample(s, cpu) for s in theirs))


def test_two_ways_alternate_and_so_does_the_first_of_each_pair() -> None:
    calls: list[str] = []
    found = alternate(lambda: calls.append("o"), lambda: calls.append("t"), times=3, cpu=lambda: 0.0)
    assert "".join(calls) == "ot" + "ot" + "to" + "ot"  # the first two are warm-up
    assert (len(found.ours), len(found.theirs)) == (3, 3)


def test_a_sample_is_the_time_and_the_cpu_of_the_work_alone() -> None:
    clock = iter([5.0, 7.5])
    sample = timed(lambda: None, lambda: next(clock))
    assert sample.cpu == 2.5
    assert 0 <= sample.seconds < 60


def test_the_ratio_is_that_of_medians_and_the_spread_that_of_neighbours() -> None:
    found = pair([1.0, 2.0, 9.0], [4.0, 1.0, 9.0], cpu=3.0)
    assert (found.ratio, found.spread, found.cpu_ratio) == (0.5, (0.25, 2.0), 2.0)


def test_without_cpu_figures_there_is_no_ratio_of_them() -> None:
    assert pair([1.0], [2.0]).cpu_ratio is None


@pytest.mark.parametrize(
    ("ratio", "aim", "met"),
    [
        pytest.param(1.0, 1.0, "met", id="an aim is met when it is reached exactly"),
        pytest.param(1.01, 1.0, "not met", id="an aim is not met a little above it"),
        pytest.param(1.0, None, "", id="without an aim there is no verdict"),
        pytest.param(None, 1.0, "", id="without a counterpart there is no verdict"),
    ],
)
def test_an_aim_is_met_or_not(ratio: float | None, aim: float | None, met: str) -> None:
    assert Result("P1", "work", "tuned", "1 s", "1 s", ratio, aim).met == met


def test_a_case_ends_as_one_line_and_one_row_of_the_table() -> None:
    found = result("P1", "1 partition", "tuned", pair([1.0, 1.2, 1.1], [2.0, 2.4, 2.2], 1.0), 1.0)
    printed = (
        "P1 ours 1.1 s theirs 2.2 s ratio 0.50 aim <= 1.00 met (1 partition; against tuned) runs 0.50-0.50, CPU 2.00"
    )
    assert " ".join(found.line.split()) == printed
    measured = "1.1 s against 2.2 s: 0.50 (runs 0.50-0.50, CPU 2.00)"
    (row,) = rows([found], "2 cores", "1252e3d", "2026-11-23")
    assert row == Row(
        "P1", "1 partition; against tuned", measured, "<= 1.00", "met", "2 cores", "1252e3d", "2026-11-23"
    )


def test_a_figure_without_a_counterpart_is_a_row_with_its_note() -> None:
    (row,) = rows([Result("trigger", "requests to Kafka, `lanes=1`", "", "5.7/s", "", note="7% of a core")], "", "", "")
    assert row == Row("trigger", "requests to Kafka, lanes=1", "5.7/s (7% of a core)")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.01234, "12.3 ms"), (1.234, "1.23 s"), (131.2, "131 s"), (1234.5, "1234 s")]
)
def test_a_duration_has_three_digits_in_a_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("progress", "lanes"),
    [
        pytest.param({"orders": {"0": 9}, "#": {"lanes": 7}}, 7, id="our source"),
        pytest.param({"orders": {"0": 9}}, 0, id="Spark's own"),
        pytest.param(None, 0, id="no progress yet"),
    ],
)
def test_the_lanes_of_a_batch_come_from_its_progress(progress: object, lanes: int) -> None:
    assert lanes_of(json.dumps({"sources": [{"latestOffset": progress}]})) == lanes


def test_lanes_are_counted_before_with_and_after_the_slow_key() -> None:
    before, slow, after = ([Done(0.0, 1.0, 9, 1, lanes) for lanes in of] for of in ((8, 9), (9, 14, 11), (11, 8)))
    course = Course(5.0, 0.7, 100.0, before, slow, after)
    assert course.lanes == "lanes: 9 before, 11 with the slow key (at most 14), 8 after"


@pytest.mark.parametrize(("part", "age"), [(0.0, 1), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_so_large_a_part_of_the_ages_is_no_larger(part: float, age: int) -> None:
    assert at_part([float(101 - i) for i in range(1, 101)], part) == age


@pytest.mark.parametrize(
    ("options", "text"), [({}, "no option set"), ({"lanes": "1", "slots": "8"}, "`lanes=1`, `slots=8`")]
)
def test_a_row_names_the_options_of_ours(options: dict[str, str], text: str) -> None:
    assert named(options) == text


def test_only_records_of_the_measured_time_count() -> None:
    sink = Sink([(999, 0.1), (1_000, 0.2), (1_999, 0.3), (2_000, 0.4)])
    assert sink.between(1.0, 2.0) == [0.2, 0.3]


def test_a_trigger_is_shown_with_the_medians_of_its_phases() -> None:
    phases = [{"triggerExecution": 100 + i, "addBatch": 60 + i, "walCommit": 9} for i in (0, 1, 7)]
    shown = Side("kafka", {}, phases=[*phases]).trigger
    assert shown == "101 ms: latestOffset 0, queryPlanning 0, walCommit 9, addBatch 61, commitOffsets 0"


def test_a_load_is_the_same_every_time_and_spread_over_the_partitions(kafka: Kafka) -> None:
    load = Load(1_000, size=50, partitions=4, keys=10, codec="zstd")
    topics = [kafka.create_topic("load", load.partitions) for _ in range(2)]
    for topic in topics:
        produce(kafka.bootstrap, topic, load)
    with closing(KafkaConsumer(bootstrap_servers=kafka.bootstrap, consumer_timeout_ms=500)) as consumer:
        logs = [[_read(consumer, topic, partition) for partition in range(4)] for topic in topics]
    assert logs[0] == logs[1]
    assert [len(log) for log in logs[0]] == [250] * 4
    assert {len(value) for log in logs[0] for _, value in log} == {50}
    assert len({key for log in logs[0] for key, _ in log}) == 10


def test_records_that_the_broker_refuses_are_an_error(kafka: Kafka) -> None:
    topic = kafka.create_topic(config={"max.message.bytes": "1000"})
    with pytest.raises(RuntimeError, match=r"did not take 3 of 3 records: .*MSG_SIZE_TOO_LARGE"):
        produce(kafka.bootstrap, topic, Load(3, size=5_000, codec="none"))


def _read(consumer: KafkaConsumer, topic: str, partition: int) -> list[tuple[bytes, bytes]]:
    at = TopicPartition(topic, partition)
    consumer.assign([at])
    consumer.seek(at, 0)
    return [(record.key, record.value) for record in consumer]


def test_records_of_an_outage_that_are_missing_or_came_twice_or_behind_a_later_one_of_their_key_are_counted() -> None:
    tp = OurTopicPartition("orders", 0)
    came = [(0, b"a"), (2, b"b"), (1, b"a"), (4, b"a"), (2, b"b"), (3, b"a"), (6, b"b")]
    assert OutageSink([(tp, offset, 0.1, key) for offset, key in came]).wrong == "1 lost, 1 twice, 1 out of order"
