"""Decides which reports count: for each slice of the last plans, the newest report of the newest attempt.

Clamps the values of a report to the possible range. Pure: no socket, no clock. Not for two threads at once.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from coordinator.plan.cost.telemetry import SliceCost
from coordinator.progress.slices import Slice
from spark_coop_source.telemetry.report import Report

PLANS = 8
"""Plans whose reports count; Spark may ask for the partitions of one batch more than once."""


@dataclass(slots=True)
class _Plan:
    """The slices of one plan, and the last report of each."""

    slices: frozenset[Slice]
    began_ms: float
    newest: dict[Slice, Report] = field(default_factory=dict)
    handed_ms: dict[Slice, float] = field(default_factory=dict)  # when the first report came that records go to Spark


class LatestReports:
    """The last plans of one reader, and the new costs of their slices.

    Times are milliseconds of any clock that only grows.
    """

    def __init__(self, concurrency: int) -> None:
        """`concurrency`: threads of the user's function in each task."""
        self._concurrency = concurrency
        self._plans: OrderedDict[int, _Plan] = OrderedDict()
        self._costs: dict[Slice, SliceCost] = {}
        self._last_plan = 0

    def open(self, slices: Iterable[Slice], now_ms: float) -> int:
        """Add a plan over some slices, and return its number."""
        self._last_plan += 1
        self._plans[self._last_plan] = _Plan(frozenset(slices), now_ms)
        if len(self._plans) > PLANS:
            self._plans.popitem(last=False)
        return self._last_plan

    def note(self, report: Report, now_ms: float) -> None:
        """Count a report if its slice is planned here and it is newer than the one before."""
        plan = self._plans.get(report.plan)
        of = report.cost.slice
        if plan is not None and of in plan.slices and _counts(report, plan.newest.get(of)):
            plan.newest[of] = report
            after_ms = now_ms - plan.began_ms
            if report.cost.handed_ms is not None:  # by the task's clock, which started later
                plan.handed_ms.setdefault(of, after_ms)
            cost = report.cost.clamped(after_ms, self._concurrency)
            self._costs[of] = replace(cost, handed_ms=plan.handed_ms.get(of))

    def take(self) -> list[SliceCost]:
        """The latest cost of each slice that was reported since the last call."""
        costs, self._costs = self._costs, {}
        return [costs[of] for of in sorted(costs)]


def _counts(report: Report, before: Report | None) -> bool:
    """Whether a report counts: a later one of the newest attempt, or the first that any attempt has finished.

    Two attempts may run at once: Spark speculates, or the executor of an abandoned attempt is still alive.
    """
    if before is None:
        return True
    if report.attempt == before.attempt:
        return report.number > before.number
    if before.cost.finished:
        return False
    return report.cost.finished or report.attempt > before.attempt
