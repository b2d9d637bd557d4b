"""The cost book believes reports of planned slices only, the newest of each attempt."""

from dataclasses import replace

import pytest

from coordinator.plan.cost.telemetry import SliceCost
from coordinator.values.ranges import WHOLE
from slice_costs import BEGUN, COST, SLICE
from spark_coop_source.driver.telemetry_reports import PLANS, LatestReports
from spark_coop_source.telemetry.report import Report


class Receiver:
    """Receives reports of plan 1, and returns the accepted ones."""

    def __init__(self) -> None:
        self.book = LatestReports(concurrency=1)
        self.plan = self.book.open([SLICE], now_ms=1_000)

    def rows(self, *reports: tuple[int, int, SliceCost]) -> list[int]:
        for attempt, number, cost in reports:
            self.book.note(Report(self.plan, attempt, number, cost), now_ms=2_000)
        return [cost.rows for cost in self.book.take()]


def cost(rows: int, *, finished: bool = False) -> SliceCost:
    return replace(BEGUN, rows=rows, finished=finished)


@pytest.mark.parametrize(
    ("reports", "rows"),
    [
        pytest.param([(1, 1, cost(1))], [1], id="a sign of life"),
        pytest.param([(1, 1, cost(1)), (1, 2, cost(2, finished=True))], [2], id="the later one of an attempt"),
        pytest.param([(1, 2, cost(2, finished=True)), (1, 1, cost(1))], [2], id="one that was overtaken"),
        pytest.param([(1, 1, cost(1)), (1, 1, cost(5))], [1], id="one that came twice"),
        pytest.param([(1, 2, cost(2)), (2, 1, cost(1))], [1], id="an attempt that began later goes on"),
        pytest.param([(2, 1, cost(1)), (1, 9, cost(9))], [1], id="an older attempt goes on while a newer one runs"),
        pytest.param([(1, 9, cost(9)), (2, 1, cost(1)), (1, 10, cost(10))], [1], id="two attempts by turns"),
        pytest.param([(2, 1, cost(1)), (1, 9, cost(9, finished=True))], [9], id="an older attempt is done first"),
        pytest.param([(1, 2, cost(2, finished=True)), (2, 1, cost(1))], [2], id="a finished report stays"),
        pytest.param([(1, 1, replace(cost(1), hashes=WHOLE))], [], id="a slice that was not planned"),
        pytest.param([(1, 1, cost(10_000))], [100], id="more rows than offsets"),
    ],
)
def test_accepted_reports(reports: list[tuple[int, int, SliceCost]], rows: list[int]) -> None:
    assert Receiver().rows(*reports) == rows


def test_a_report_is_taken_once_and_an_overtaken_one_never() -> None:
    receiver = Receiver()
    assert receiver.rows((1, 2, cost(2))) == [2]
    assert receiver.rows() == []
    assert receiver.rows((1, 1, cost(1))) == []
    assert receiver.rows((1, 3, cost(3))) == [3]


def test_only_reports_of_the_last_plans_are_accepted() -> None:
    book = LatestReports(concurrency=1)
    numbers = [book.open([SLICE], now_ms=0) for _ in range(PLANS + 1)]
    book.note(Report(numbers[0], 1, 1, COST), now_ms=0)
    book.note(Report(numbers[-1] + 1, 1, 1, COST), now_ms=0)
    assert book.take() == []
    book.note(Report(numbers[1], 1, 1, COST), now_ms=100)
    assert book.take() == [COST]


def test_records_are_handed_on_when_the_first_word_of_it_comes() -> None:
    book = LatestReports(1)
    plan = book.open([SLICE], now_ms=5_000)
    seen = []
    for number, each in enumerate([BEGUN, replace(BEGUN, rows=1, handed_ms=3.0), replace(COST, handed_ms=3.0)]):
        book.note(Report(plan, 1, number, each), now_ms=5_000 + 1_000 * number)
        seen += [cost.handed_ms for cost in book.take()]
    assert seen == [None, 1_000, 1_000], "by the clock that plans, not by the task's"
