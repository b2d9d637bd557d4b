"""Spark's own filters on a batch query, as bounds on its plan.

    partition   = < <= > >= IN    fewer partitions are read
    offset      = < <= > >=       less of each partition is read
    key         = IN              the record filter drops records with other keys
    timestamp   = > >=            reading starts at the first record of that time; Spark compares again, because later
                                  records may be older

Spark evaluates all other filters. Pure: knows Spark's filters and our values; nothing of Kafka.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from coordinator.values.ranges import OFFSET_MAX
from coordinator.values.record_filter import Key

_EPOCH, _MS = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Interval:
    """Whole numbers from `least` to `most`; none if `least` is above `most`."""

    least: int = 0
    most: int = OFFSET_MAX

    def __and__(self, other: "Interval") -> "Interval":
        return Interval(max(self.least, other.least), min(self.most, other.most))


_WITHIN: Mapping[type[Filter], Callable[[int], Interval]] = {
    EqualTo: lambda value: Interval(value, value),
    GreaterThan: lambda value: Interval(least=value + 1),
    GreaterThanOrEqual: lambda value: Interval(least=value),
    LessThan: lambda value: Interval(most=value - 1),
    LessThanOrEqual: lambda value: Interval(most=value),
}


@dataclass(frozen=True, slots=True)
class Pushed:
    """The filters that bound the plan; all of them hold for a record that is read."""

    partitions: Interval = Interval()
    among: frozenset[int] | None = None  # partitions; None: any
    offsets: Interval = Interval()
    keys: frozenset[Key] | None = None  # None: any
    since_ms: int | None = None  # a record's time, rounded down

    def reads(self, partition: int) -> bool:
        """Whether a partition may have records of these filters."""
        within = self.partitions.least <= partition <= self.partitions.most
        return within and (self.among is None or partition in self.among) and self.keys != frozenset()


NOTHING = Pushed()


def pushed(filters: Iterable[Filter]) -> tuple[Pushed, tuple[Filter, ...]]:
    """The bounds of filters that all hold, and the filters that Spark has to evaluate."""
    known, rest = NOTHING, list[Filter]()
    for each in filters:
        known, exactly = _with(known, each)
        if not exactly:
            rest.append(each)
    return known, tuple(rest)


def _with(known: Pushed, each: Filter) -> tuple[Pushed, bool]:
    """The bounds with one more filter, and whether they hold exactly its records."""
    column: object = getattr(each, "attribute", ())
    value: Any = getattr(each, "value", None)
    values: tuple[Any, ...] = value if isinstance(each, In) else (value,)
    within = _WITHIN.get(type(each))
    match column:
        case ("partition",) if within and _whole(value):
            return replace(known, partitions=known.partitions & within(value)), True
        case ("partition",) if isinstance(each, In) and all(map(_whole, values)):
            among = frozenset(values)
            return replace(known, among=among if known.among is None else known.among & among), True
        case ("offset",) if within and _whole(value):
            return replace(known, offsets=known.offsets & within(value)), True
        case ("key",) if isinstance(each, EqualTo | In) and all(isinstance(v, bytes | bytearray) for v in values):
            keys = frozenset(map(bytes, values))
            return replace(known, keys=keys if known.keys is None else known.keys & keys), True
        case ("timestamp",) if isinstance(each, EqualTo | GreaterThan | GreaterThanOrEqual) and _moment(value):
            return replace(known, since_ms=max((value - _EPOCH) // _MS, known.since_ms or 0)), False
    return known, False


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _moment(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None
