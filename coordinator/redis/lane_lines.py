"""A member's reports of its lanes and batches, as values and as text in Redis. Pure.

    orders 0 <lo>-<hi> position=5 lag=45 lag_s=12 rate=9.1 record_ms=100 cost=sure quota=90 why=budget

People and programs read them; they influence no decision.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Self

from coordinator.errors import StateFormatError
from coordinator.values.ranges import OFFSET_MAX, HashRange, is_number
from coordinator.values.subscription import TopicPartition

MOST_REPORTED = 256
"""Lanes that a member reports once a second: about 40 KB at most."""


class CostKind(StrEnum):
    """The quality of a lane's cost of a record."""

    SURE = "sure"  # measured, or proven by leaving lanes out
    GUESSED = "guessed"  # the cost of a record in lanes that are alike
    UNKNOWN = "unknown"


def behind_s(lag_s: int | None, at_least: bool) -> str:
    """An age as text: `12`, `>12` or `-`."""
    return "-" if lag_s is None else f"{'>' if at_least else ''}{lag_s}"


@dataclass(frozen=True, slots=True)
class LaneLine:
    """One lane as its member planned it last."""

    tp: TopicPartition
    hashes: HashRange
    position: int
    lag: int  # records up to the log end, estimated from the density of the lane's keys
    lag_s: int | None  # age of its oldest unread record in seconds; None if unknown
    lag_at_least: bool  # whether `lag_s` is a lower bound: the record is older than the member's first look
    rate: float  # records per second of the last batch, waiting for other lanes included
    record_ms: float  # slot time of a record; 0.0 if unknown
    cost: CostKind
    quota: int  # records that it may read in the batch that was planned last
    why: str  # its bound: "all there is" if it has none

    @property
    def name(self) -> str:
        """The name of the lane, as in strikes."""
        return f"{self.tp.topic} {self.tp.partition} {self.hashes}"

    @property
    def limited(self) -> bool:
        """Whether it has a bound."""
        return self.why != NOTHING

    @property
    def drain_s(self) -> int | None:
        """Seconds until its lag is read at the rate of its last batch, if no record comes; None without a rate."""
        if not self.lag:
            return 0
        return ceil(self.lag / self.rate) if self.rate else None

    def __str__(self) -> str:
        behind = f"position={self.position} lag={self.lag} lag_s={behind_s(self.lag_s, self.lag_at_least)}"
        measured = f"rate={self.rate:.1f} record_ms={self.record_ms:.3g} cost={self.cost}"
        return f"{self.name} {behind} {measured} quota={self.quota} why={self.why}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The lane of a text; raises `StateFormatError`."""
        try:
            head, _, why = text.partition(" why=")
            topic, partition, hashes, *values = head.split(" ")
            of = dict(value.split("=") for value in values)
            return cls(
                TopicPartition(topic, _whole(partition)),
                HashRange.parse(hashes),
                position=_whole(of["position"]),
                lag=_whole(of["lag"]),
                lag_s=None if of["lag_s"] == "-" else _whole(of["lag_s"].removeprefix(">")),
                lag_at_least=of["lag_s"].startswith(">"),
                rate=_measured(of["rate"]),
                record_ms=_measured(of["record_ms"]),
                cost=CostKind(of["cost"]),
                quota=_whole(of["quota"]),
                why=why,
            )
        except (ValueError, KeyError):
            raise StateFormatError(
                f"{text!r} does not describe a lane", "delete the key coop:v1:{group}:lanes"
            ) from None


def _whole(text: str) -> int:
    if not is_number(text.removeprefix("-")):  # below 0 after a clock was set back
        raise ValueError(text)
    return int(text)


def _measured(text: str) -> float:
    if not abs(value := float(text)) <= OFFSET_MAX:  # nor is it NaN
        raise ValueError(text)
    return value


BOUND_PERCENT, BOUND_S = 80, 5.0
"""From this part of a batch of this time on, reading is its bottleneck. A shorter batch keeps up with the log."""

NOTHING, PARKED, TRIED = "all there is", "parked", "on trial: a member was lost over it"
ROOM, OLDER, JOINED, LEAD = "individual commits", "older partitions", "joined topics", "maxLaneLead"
FAILING = "failing key"
_WAITING = {PARKED, TRIED, *(f"ceiling: {rule}" for rule in (FAILING, OLDER, JOINED))}


def lines_text(lanes: Iterable[LaneLine]) -> str:
    """A member's lanes as text: a line for each."""
    return "\n".join(map(str, lanes))


def lines_of(text: str) -> tuple[LaneLine, ...]:
    """The lanes of a text; raises `StateFormatError`."""
    return tuple(LaneLine.parse(line) for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class LaneReport:
    """A member's report of its lanes: counts, and the most interesting lanes."""

    lines: tuple[LaneLine, ...] = ()  # the most interesting first
    lanes: int = 0
    limited: int = 0  # those with a bound
    parked: int = 0
    slowest: str = "-"
    backlog_ms: int = 0  # slot time of all unread records, as far as their cost is known
    load_percent: int = 0  # slot time of the records that arrive, in percent of one slot


def interesting(lanes: Iterable[LaneLine]) -> list[LaneLine]:
    """The lanes in the order of an operator's interest: parked, on trial, limited, then by lag."""
    order = {PARKED: 0, TRIED: 1}
    return sorted(
        lanes,
        key=lambda lane: (
            order.get(lane.why, 2),
            not lane.limited,
            -(lane.lag_s or 0),
            -lane.lag,
            lane.tp,
            lane.hashes,
        ),
    )


def apart_s(lanes: Iterable[LaneLine]) -> dict[TopicPartition, int]:
    """How much older the oldest unread record of a lane is than that of another one of its partition, in seconds.

    Lanes that nobody may read now hold up no lead (rule: lane-lead).
    """
    ages: dict[TopicPartition, list[int]] = {}
    for lane in lanes:
        if lane.lag_s is not None and lane.why not in _WAITING:
            ages.setdefault(lane.tp, []).append(lane.lag_s)
    return {tp: max(of) - min(of) for tp, of in ages.items()}


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A member's report of a micro-batch that the sink completed."""

    member: str
    rows: int
    bytes: int | None  # of keys and values; None if a task sent no report
    seconds: float  # from the authorisation of the batch to the next call
    lanes: int  # with records to read
    slowest: str  # the lane that took longest, if known: "orders 0 lo-hi"
    reading: int | None = None  # percent of its time that one task read from Kafka; None if a task sent no report

    @property
    def reading_bound(self) -> bool:
        """Whether reading limits the member: a long batch of which a task read most of the time."""
        return self.reading is not None and self.reading >= BOUND_PERCENT and self.seconds >= BOUND_S

    @property
    def limit_text(self) -> str:
        """The limit of a member whose reading takes most of the time, with its figures."""
        return (
            f"a task read from Kafka for {self.reading} % of the last batch ({self.seconds:.1f} s, {self.rows} records)"
            ". So reading is the bottleneck, not processing: more lanes or members do not help, more partitions or a "
            "faster way to Kafka do"
        )

    def text(self, group: str) -> str:
        """The batch in one line of a log; `group` and member are empty without a group."""
        whose = f"group {group}, member {self.member}: " if group else ""
        size = "" if self.bytes is None else f" ({self.bytes} bytes)"
        read = "" if self.reading is None else f", {self.reading} % of it reading"
        took = f"{self.seconds:.3f} s{read}"
        return f"{whose}batch of {self.rows} records{size} in {took}; {self.lanes} lanes, slowest {self.slowest}"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of its entry in the stream."""
        counted = {"rows": str(self.rows), "bytes": "-" if self.bytes is None else str(self.bytes)}
        took = {"seconds": f"{self.seconds:.3f}", "lanes": str(self.lanes), "slowest": self.slowest}
        took["reading"] = "-" if self.reading is None else str(self.reading)
        return {"member": self.member, **counted, **took}

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The batch of an entry's fields; raises `StateFormatError`."""
        try:
            size = None if fields["bytes"] == "-" else _whole(fields["bytes"])
            rows, seconds, lanes = _whole(fields["rows"]), _measured(fields["seconds"]), _whole(fields["lanes"])
            reading = None if fields["reading"] == "-" else _whole(fields["reading"])
            return cls(fields["member"], rows, size, seconds, lanes, fields["slowest"], reading)
        except (KeyError, ValueError):
            raise StateFormatError(
                f"{dict(fields)!r} does not describe a batch", "delete the key coop:v1:{group}:history"
            ) from None
