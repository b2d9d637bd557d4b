"""What the clock shows of the time that a batch takes, and the records that fit the budget of the next one. Pure.

    first batch      1,000 records a slot
    cheap records    what there is: a task ends by the clock, and what buffers hold is soon done
    dear records     as many as fit the budget: buffers behind the read hold more than that

A task sees only that it may hand records over. Sockets, the JVM and the batches of Arrow functions hold the rest.
"""

from dataclasses import dataclass, replace
from math import inf
from statistics import median

SPARK_MS, MOST = 200.0, 0.8
"""Time of a batch beside its records: Spark's, and a sink's that commits; at most this part of the shortest batch.

If records seemed free, batches would grow without an end.
"""

LOOK_BACK = 16
"""Batches that count."""

CLEAR = 1.25
"""A batch shows the cost of records if it took this many times as long as it takes without them."""

START_RECORDS = 1_000.0
"""Records of a slot in a batch of unknown cost: a second at a millisecond each."""

SAFE = 0.9
"""The part of the budget for work."""

GROWTH = 2.0
"""Growth of a batch of dear records: the next ones may be dearer."""

CHEAP_GROWTH = 10.0
"""Growth of a batch of cheap records whose tasks read to the planned end."""

BUFFERED = 20_000.0
"""Records that a task may hand over behind which nobody has worked on one yet (docs/benchmarks.md)."""

_LEAST_MS = 1e-6
"""The least cost of a record: a clock may show no time for a batch."""


Point = tuple[float, float]
"""Records of a batch's fullest task, and the milliseconds that the batch took."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The last batches of healthy lanes: records of the fullest task, and their time."""

    points: tuple[Point, ...] = ()
    rate_ms: float | None = None
    """The cost of a record; None where no batch has shown it."""
    thinned: float = 1.0  # records that count, for each one that tasks hand over; more than 1 with a filter
    waits: bool = False  # batches take as long as a trigger's interval, so the rate may be too high
    reached: float = START_RECORDS / GROWTH  # records of a slot that have fitted a batch

    @property
    def overhead_ms(self) -> float:
        """The part of a batch's time that is not for records."""
        return min([SPARK_MS, *(MOST * took for _, took in self.points)])

    @property
    def noise_ms(self) -> float:
        """The median difference between a batch and the time that its records explain."""
        if not self.points:
            return 0.0
        beside_ms = self.overhead_ms
        rate = median((took - beside_ms) / rows for rows, took in self.points)
        off = median(abs(took - beside_ms - rate * rows) for rows, took in self.points)
        return min(off, beside_ms / 3)

    def after(self, fullest: float, took_ms: float) -> "Pace":
        """The pace after one more batch. A healthy record costs as little as in the best batch."""
        if fullest < 1:
            return self
        then = replace(self, points=(*self.points, (fullest, took_ms))[-LOOK_BACK:], waits=False)
        beside_ms, noise_ms = then.overhead_ms, then.noise_ms
        costs = ((took - beside_ms + noise_ms) / rows for rows, took in then.points if took > CLEAR * beside_ms)
        unclear = min(self.rate_ms or inf, took_ms / fullest)
        return replace(then, rate_ms=max(_LEAST_MS, min(costs, default=unclear)))

    def cold(self, fullest: float, took_ms: float, budget_ms: float) -> "Pace":
        """The pace after a batch in which workers had to start: it may only show that records are cheap."""
        if self.rate_ms is not None or fullest < 1 or took_ms / fullest * self._buffered > SAFE * budget_ms:
            return self
        return self.after(fullest, took_ms)

    def unclear(self, fullest: float) -> "Pace":
        """The pace after a batch whose time includes waiting, for a trigger: its records have fitted."""
        return replace(self, points=(), waits=True, reached=max(self.reached, fullest))

    def fitting(self, fullest: float, took_ms: float, budget_ms: float) -> "Pace":
        """The pace after a batch of any lanes, which may have kept to the budget."""
        return replace(self, reached=max(self.reached, fullest)) if took_ms <= budget_ms else self

    def anew(self, fullest: float, took_ms: float) -> "Pace":
        """The pace if only this batch counts, because records have become dearer."""
        return self if fullest < 1 else replace(self, points=(), reached=fullest).after(fullest, took_ms)

    def quicker(self, fullest: float, took_ms: float) -> "Pace":
        """The pace after a batch of suspects that was quick: it may only show that records cost less."""
        if fullest < 1 or self.rate_ms is None:
            return self
        rate = max(_LEAST_MS, max(took_ms - self.overhead_ms, took_ms / 4) / fullest)
        return replace(self, points=(), rate_ms=rate) if rate < self.rate_ms else self

    def beside_ms(self, budget_ms: float) -> float:
        """The part of the budget that is not for records: at most half, for more may be a wait for a trigger."""
        return min(self.overhead_ms, budget_ms / 2)

    def dear(self, budget_ms: float) -> bool:
        """Whether the records that buffers hold take longer than the budget."""
        return (self.rate_ms or 0.0) * self._buffered > self._left_ms(budget_ms)

    @property
    def _buffered(self) -> float:
        """Records that count until buffers are full. Buffers hold none that the filter dropped."""
        return BUFFERED * self.thinned

    def _left_ms(self, budget_ms: float) -> float:
        return SAFE * (budget_ms - self.beside_ms(budget_ms))

    def rows(self, budget_ms: float, *, early: bool) -> float:
        """Records of a slot in the next batch; all there is if records are cheap and tasks end `early`."""
        if self.rate_ms is None or self.waits:
            return GROWTH * self.reached
        left_ms = self._left_ms(budget_ms)
        if self.dear(budget_ms):
            return min(left_ms / self.rate_ms, GROWTH * self.reached)
        return inf if early else min(left_ms / self.rate_ms, CHEAP_GROWTH * self.reached)
