"""Records of a slot in the next batch, by the time of batches before it."""

from itertools import pairwise
from math import inf

import pytest

from coordinator.plan.cost.pace import BUFFERED, SAFE, SPARK_MS, START_RECORDS, Pace

BUDGET_MS = 10_000.0
DEAR_MS, CHEAP_MS = 5.0, 0.01


def test_the_first_batch_is_small() -> None:
    assert Pace().rows(BUDGET_MS, early=True) == START_RECORDS


def test_after_cheap_records_a_batch_reads_all_there_is_if_its_tasks_end_by_the_clock() -> None:
    cheap = Pace().fitting(1_000, 300, BUDGET_MS).after(1_000, 300)
    assert cheap.rows(BUDGET_MS, early=True) == inf
    assert cheap.rows(BUDGET_MS, early=False) == 10 * START_RECORDS


@pytest.mark.parametrize("record_ms", [CHEAP_MS, DEAR_MS])
def test_what_buffers_hold_never_takes_longer_than_the_budget(record_ms: float) -> None:
    rows = Pace().after(1_000, 200 + 1_000 * record_ms).rows(BUDGET_MS, early=True)
    assert rows * record_ms <= BUDGET_MS or BUFFERED * record_ms <= BUDGET_MS


def test_batches_for_which_the_clock_shows_no_time_leave_a_cost() -> None:
    for instant in (Pace().after(1_000, 0), Pace().after(1_000, 300).quicker(1_000, 0)):
        assert instant.rows(BUDGET_MS, early=False) <= 10 * START_RECORDS


def test_dear_records_fill_the_budget_after_a_few_batches_that_grow_twofold() -> None:
    pace, rows = Pace(), [START_RECORDS]
    for _ in range(8):
        took_ms = 200 + rows[-1] * 2.0
        pace = pace.fitting(rows[-1], took_ms, BUDGET_MS).after(rows[-1], took_ms)
        rows.append(pace.rows(BUDGET_MS, early=True))
    assert all(after <= 2 * before for before, after in pairwise(rows))
    assert rows[-1] * 2.0 == pytest.approx(SAFE * (BUDGET_MS - 200), rel=0.05)


def test_a_first_batch_in_which_workers_start_shows_only_that_records_are_cheap() -> None:
    assert Pace().cold(1_000, 5_000, BUDGET_MS).rate_ms is None
    assert Pace().cold(1_000, 100, BUDGET_MS).rate_ms is not None


def test_batches_that_wait_for_a_trigger_double_whatever_the_clock_says() -> None:
    pace = Pace().after(100, 60_000).unclear(1_500)
    assert pace.rows(BUDGET_MS, early=True) == 3_000


def test_the_time_of_a_batch_that_does_not_grow_with_its_records_is_not_their_cost() -> None:
    assert Pace().after(1_000, 2_200).after(500, 1_200).rate_ms == pytest.approx(2.0)


def test_records_that_become_dearer_count_from_then_on() -> None:
    pace = Pace().after(1_000, 2_000).after(1_000, 2_000).anew(1_000, 20_000)
    assert pace.rows(BUDGET_MS, early=True) * 19.8 <= BUDGET_MS


def test_a_trial_without_records_says_nothing_of_their_cost() -> None:
    pace = Pace().after(1_000, 2_000)
    assert (pace.anew(0, 3_000), pace.quicker(0, 1)) == (pace, pace)


def test_at_most_half_of_the_budget_is_left_for_the_rest_of_a_batch() -> None:
    assert Pace().beside_ms(BUDGET_MS) == SPARK_MS
    assert Pace().beside_ms(100.0) == 50.0


@pytest.mark.parametrize(
    ("batches", "record_ms"),
    [
        pytest.param([*3 * [(1_000, 1_200)], (1_000, 9_000)], 1.0, id="of the batch in which they took least"),
        pytest.param(
            [*3 * [(1_000, 1_200)], (1_000, 210)], 1.0, id="a batch of almost only Spark's own time proves nothing"
        ),
        pytest.param([(10, 300)], 10.0, id="a short batch has some of it, too"),
    ],
)
def test_the_cost_of_a_record(batches: list[tuple[float, float]], record_ms: float) -> None:
    pace = Pace()
    for rows, took_ms in batches:
        pace = pace.after(rows, took_ms)
    assert pace.rate_ms == pytest.approx(record_ms, rel=0.05)


@pytest.mark.parametrize(
    ("took_ms", "noise_ms"),
    [
        pytest.param([1_200, 1_200, 1_200, 9_000], 0.0, id="one batch that was held up is no noise"),
        pytest.param([1_140, 1_180, 1_200, 1_220, 1_260], 20.0, id="half are so far off"),
        pytest.param([1_200, 4_200, 7_200, 10_200], SPARK_MS / 3, id="never most of the time"),
    ],
)
def test_noise(took_ms: list[float], noise_ms: float) -> None:
    pace = Pace()
    for took in took_ms:
        pace = pace.after(1_000, took)
    assert pace.noise_ms == pytest.approx(noise_ms)
