"""Partitions whose leader does not answer: the line about them, and the end of patience."""

import logging

import pytest

from coordinator.errors import KafkaUnavailableError
from coordinator.kafka import silence
from coordinator.kafka.silence import Silence
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)


def test_without_patience_the_first_silence_is_an_error_that_names_partitions_and_why() -> None:
    missing = {TopicPartition("orders", n): "b:9092: frozen" for n in range(7)} | {TopicPartition("a", 1): "no leader"}
    with pytest.raises(KafkaUnavailableError) as raised:
        Silence(0).noticed(missing, missing)
    assert raised.value.what == (
        "no leader answers for a-1 (no leader); orders-0, orders-1, orders-2, orders-3, orders-4 and 2 more "
        "(b:9092: frozen)"
    )


def test_one_line_says_what_waits_and_one_that_it_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(silence, "SHORTLY_S", 0.0)
    caplog.set_level(logging.WARNING)
    looks = Silence(60_000)
    for missing in ({TP: "no leader"}, {TP: "no leader"}, {}, {}):
        looks.noticed([TP], missing)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(",")[0] for line in lines] == [
        "no leader answers for orders-0 (no leader); their records wait",
        "all partitions have a leader that answers again",
    ]


def test_a_short_silence_is_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    looks = Silence(60_000)
    looks.noticed([TP], {TP: "no leader"})
    looks.noticed([TP], {})
    assert caplog.records == []


def test_a_look_at_some_partitions_ends_no_silence_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = iter([0.0, 0.0, 30.0, 60.0])
    monkeypatch.setattr(silence, "monotonic", lambda: next(times_s))
    looks, other = Silence(60_000), TopicPartition("orders", 1)
    looks.noticed([TP, other], {TP: "no leader", other: "no leader"})
    looks.noticed([TP], {TP: "no leader"})
    looks.noticed([TP], {})
    with pytest.raises(KafkaUnavailableError, match="orders-1"):
        looks.noticed([TP, other], {other: "no leader"})
