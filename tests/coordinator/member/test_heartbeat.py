"""Decisions of the heartbeat thread: slices to report, and warnings."""

from dataclasses import replace

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import RedisUnavailableError
from coordinator.member.batch import Batch
from coordinator.member.evidence import Evidence
from coordinator.member.heartbeat import Pulse, long_batch, outage_line, unreported_work
from coordinator.member.requests import LogLine
from coordinator.member.state import State
from coordinator.progress.slices import Slice
from coordinator.values.ranges import WHOLE, OffsetRange
from states import LIFE, NONCE, NOW, TP, end_of, joined, owned

SLICE = Slice(TP, WHOLE, OffsetRange(10, 20))
TEXT = f"orders 0 {WHOLE} 10-20;"
SETTINGS = GroupSettings("g", longest_ms=300_000, max_outage_ms=60_000)
BATCH = Batch(end_of(10, 20), granted=owned(), readable=owned(), began_ms=NOW)


def under_way(batch: Batch = BATCH) -> State:
    return joined(batch=batch, evidence=Evidence(batch.end, None, (batch.end,)))


def test_slices_under_way__report_them() -> None:
    assert unreported_work(Pulse(), under_way(), [SLICE]) == (TEXT, NONCE)


def test_one_record_on_trial__report_it_as_one() -> None:
    trial = replace(BATCH, trials={(TP, WHOLE): len(SLICE.offsets)})
    assert unreported_work(Pulse(), under_way(trial), [SLICE]) == (f"{TEXT[:-1]} one;", NONCE)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(replace(BATCH, trials={(TP, WHOLE): len(SLICE.offsets)}, began_ms=None), id="has not begun"),
        pytest.param(replace(BATCH, trials={(TP, WHOLE): len(SLICE.offsets)}, ended=True), id="has ended"),
    ],
)
def test_a_trial_that_is_not_under_way__report_slices_as_of_an_ordinary_batch(batch: Batch) -> None:
    assert unreported_work(Pulse(), under_way(batch), [SLICE]) == (TEXT, NONCE)


def test_the_same_slices__are_not_reported_again() -> None:
    assert unreported_work(Pulse((TEXT, NONCE)), under_way(), [SLICE]) is None


def test_no_slice_any_more__report_that() -> None:
    assert unreported_work(Pulse((TEXT, NONCE)), under_way(), []) == ("", NONCE)


def test_after_a_loss_of_state__all_is_new() -> None:
    assert unreported_work(Pulse((TEXT, "n-0")), under_way(), [SLICE]) == (TEXT, NONCE)


def test_it_has_not_joined__report_nothing() -> None:
    assert unreported_work(Pulse(), joined(life=LIFE.rejoining()), [SLICE]) is None


SILENT = RedisUnavailableError("redis:6379 does not answer", "start it")
LINE = (
    "heartbeat of m-1: REDIS_UNAVAILABLE: redis:6379 does not answer. Remedy: start it. For {} s now; the query fails "
    "once it has needed Redis for redisMaxOutage (60000 ms)"
)


@pytest.mark.parametrize(
    ("away", "then", "seconds"),
    [
        pytest.param(None, (NOW, NOW), 0, id="at once"),
        pytest.param((NOW - 25_000, NOW - 20_000), (NOW - 25_000, NOW), 25, id="again after 20 seconds"),
    ],
)
def test_redis_is_away__one_line(away: tuple[int, int] | None, then: tuple[int, int], seconds: int) -> None:
    pulse, line = outage_line(Pulse(away=away), SILENT, "heartbeat of m-1", NOW, SETTINGS)
    assert (pulse, line) == (Pulse(away=then), LogLine(LINE.format(seconds)))


def test_redis_is_still_away__no_line() -> None:
    pulse = Pulse(away=(NOW - 25_000, NOW - 19_999))
    assert outage_line(pulse, SILENT, "heartbeat of m-1", NOW, SETTINGS) == (pulse, None)


LATE = NOW + 300_001


def test_a_batch_takes_too_long__warn_once() -> None:
    pulse, line = long_batch(Pulse(), under_way(), LATE, SETTINGS)
    assert pulse == Pulse(warned_of_ms=NOW)
    assert line is not None
    assert line.arguments["text"].startswith("group g: a batch takes longer than longestBatch (300000 ms)")
    assert long_batch(pulse, under_way(), LATE, SETTINGS) == (pulse, None)


def test_the_next_batch_takes_too_long__warn_of_it_too() -> None:
    pulse, line = long_batch(Pulse(warned_of_ms=NOW - 1), under_way(), LATE, SETTINGS)
    assert (pulse.warned_of_ms, line is not None) == (NOW, True)


@pytest.mark.parametrize(
    ("state", "now_ms"),
    [
        pytest.param(under_way(), LATE - 1, id="just within"),
        pytest.param(under_way(replace(BATCH, began_ms=None)), LATE, id="has not begun"),
        pytest.param(under_way(replace(BATCH, ended=True)), LATE, id="has ended"),
        pytest.param(joined(), LATE, id="no batch"),
    ],
)
def test_no_batch_takes_too_long__no_line(state: State, now_ms: int) -> None:
    for pulse in (Pulse(), Pulse(warned_of_ms=NOW - 1)):
        assert long_batch(pulse, state, now_ms, SETTINGS) == (pulse, None)
