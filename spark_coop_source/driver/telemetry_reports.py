"""Which reports count: of a slice of one of the last plans, the newest of the newest attempt, within reason.

Pure: no socket, no clock. Not to be used from two threads at once.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from coordinator.progress.slices import Slice
from coordinator.telemetry import SliceCost
from spark_coop_source.telemetry.report import Report

PLANS = 8
"""Plans whose tasks are still heard; Spark may ask for the partitions of one batch more than once."""


@dataclass(slots=True)
class _Plan:
    """One plan's slices, and what was heard of them last."""

    slices: frozenset[Slice]
    began_ms: float
    heard: dict[Slice, Report] = field(default_factory=dict)
    handed_ms: dict[Slice, float] = field(default_factory=dict)  # when the first word came that records are handed on


class LatestReports:
    """The plans of one reader, and the news of their slices. Times are milliseconds of any clock that only grows."""

    def __init__(self, concurrency: int) -> None:
        """`concurrency`: threads of the user's function in each task."""
        self._concurrency = concurrency
        self._plans: OrderedDict[int, _Plan] = OrderedDict()
        self._news: dict[Slice, SliceCost] = {}
        self._last_plan = 0

    def open(self, slices: Iterable[Slice], now_ms: float) -> int:
        """A new plan over some slices; its number."""
        self._last_plan += 1
        self._plans[self._last_plan] = _Plan(frozenset(slices), now_ms)
        if len(self._plans) > PLANS:
            self._plans.popitem(last=False)
        return self._last_plan

    def note(self, report: Report, now_ms: float) -> None:
        """Believe a report, unless it is of nothing planned here, or says no more than one before it."""
        plan = self._plans.get(report.plan)
        of = report.cost.slice
        if plan is not None and of in plan.slices and _is_news(report, plan.heard.get(of)):
            plan.heard[of] = report
            after_ms = now_ms - plan.began_ms
            if report.cost.handed_ms is not None:  # by the task's clock, which began later
                plan.handed_ms.setdefault(of, after_ms)
            cost = report.cost.clamped(after_ms, self._concurrency)
            self._news[of] = replace(cost, handed_ms=plan.handed_ms.get(of))

    def take(self) -> list[SliceCost]:
        """What is new since the last call: of each slice the latest."""
        news, self._news = self._news, {}
        return [news[of] for of in sorted(news)]


def _is_news(report: Report, before: Report | None) -> bool:
    """Whether a report counts: a later one of the newest attempt, or the first by which any attempt has finished.

    Two attempts may run at once: Spark speculates, or the executor of an abandoned attempt is still alive.
    """
    if before is None:
        return True
    if report.attempt == before.attempt:
        return report.number > before.number
    if before.cost.finished:
        return False
    return report.cost.finished or report.attempt > before.attempt
