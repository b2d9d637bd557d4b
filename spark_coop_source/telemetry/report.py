"""The report of a task about one slice, as the text of a frame.

JSON: the plan, the attempt of a task, a number that grows within it, the slice and its cost.
Knows the form; nothing of sockets. Used by executors (`link`) and the reader process (`driver.task_server`).
"""

import json
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from coordinator.errors import CoopKafkaError
from coordinator.plan.cost.telemetry import MOST_AT, MOST_KEYS, KeyAt, KeyCost, SliceCost
from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

MOST_BYTES = 4_096
"""Most bytes of a report; a longer one is dropped."""

HELLO = b"[]"
"""The first message of a task, which reports nothing: the task is connected."""

_MOST_LISTS = 5 + MOST_KEYS + MOST_AT  # the report, its place, its cost, its keys, its calls, and each of these


@dataclass(frozen=True, slots=True)
class ReportTo:
    """The address of the receiver, and the number of the plan. Travels with the input partition."""

    host: str  # an address
    port: int
    plan: int
    key: bytes = field(repr=False)  # random, of one reader process


@dataclass(frozen=True, slots=True)
class Report:
    """A cost, and the order of reports of one slice: plan, attempt (Spark's id, which grows), number within it."""

    plan: int
    attempt: int
    number: int
    cost: SliceCost


def encoded(report: Report) -> bytes:
    """The text of a report."""
    c = report.cost
    place = [*c.tp, c.hashes.lo, c.hashes.hi, c.offsets.start, c.offsets.until]
    cost = [c.rows, c.bytes, round(c.read_ms, 3), round(c.function_ms, 3), c.finished, c.at, c.handed_ms, c.filtered]
    keys = [[key_hash, round(ms, 3), rows] for key_hash, ms, rows in c.keys]
    return json.dumps([report.plan, report.attempt, report.number, place, cost, keys], separators=(",", ":")).encode()


def decoded(text: bytes) -> Report | None:
    """The report of a text; None if it is no report."""
    if len(text) > MOST_BYTES:
        return None
    if text.count(b"[") > _MOST_LISTS or b"{" in text:  # Python's parser recurses as deep as its input is nested
        return None
    try:
        return _parsed(json.loads(text))
    except (ValueError, TypeError, OverflowError, CoopKafkaError):  # at worst, another version of ours
        return None


def _parsed(fields: list[Any]) -> Report:
    plan, attempt, number, (topic, partition, lo, hi, start, until), cost, keys = fields
    rows, size, read_ms, function_ms, finished, at, handed_ms, filtered = cost
    return Report(
        _whole(plan),
        _whole(attempt),
        _whole(number),
        SliceCost(
            TopicPartition(str(topic), _whole(partition)),
            HashRange(_whole(lo), _whole(hi)),
            OffsetRange(_whole(start), _whole(until)),
            _whole(rows),
            _whole(size),
            _finite(read_ms),
            _finite(function_ms),
            tuple(KeyCost(_whole(key_hash), _finite(ms), _whole(rows)) for key_hash, ms, rows in keys),
            bool(finished),
            tuple(KeyAt(*map(_whole, call)) for call in at),
            None if handed_ms is None else _finite(handed_ms),
            _whole(filtered),
        ),
    )


def _whole(number: object) -> int:
    """A number in the range of an offset, a hash or a count; JSON allows longer ones."""
    if not isinstance(number, int) or not 0 <= number <= HASH_MAX:
        raise ValueError("not a number of ours")
    return number


def _finite(ms: float | str) -> float:
    """A finite number of milliseconds; JSON allows others."""
    if not isfinite(value := float(ms)):
        raise ValueError(f"{ms} ms")
    return value
