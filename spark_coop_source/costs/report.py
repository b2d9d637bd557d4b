"""What a task says about the cost of a slice, as one small datagram: signed, so that only our tasks are heard.

    16 bytes  HMAC-SHA256 of the rest, cut, with the key that the input partition carried
    the rest  JSON: which plan, which attempt of a task, the how manieth report of it, the slice and its cost

Knows the form; nothing of sockets. Used by executors (`sender`) and the reader process (`driver.cost_receiver`).
"""

import hmac
import json
from dataclasses import dataclass, field
from math import isfinite

from coordinator.cost.costs import KeyCost, RecordAt, SliceCost
from coordinator.errors import CoopKafkaError
from coordinator.ranges import HashRange, OffsetRange
from coordinator.subscription import TopicPartition

MOST_BYTES = 4_096
"""Of a datagram: what is longer is junk."""

_SIGNED = 16


@dataclass(frozen=True, slots=True)
class ReportTo:
    """Where a task reports to, and as part of which plan. Travels with the input partition."""

    host: str  # an address
    port: int
    plan: int
    key: bytes = field(repr=False)  # random, of one reader process
    trial: bool = False  # a struck lane is tried: before each call of the user's function its record is told


@dataclass(frozen=True, slots=True)
class Report:
    """A cost, and what tells it from an older one: plan, attempt (random), and its number within the attempt."""

    plan: int
    attempt: str
    number: int
    cost: SliceCost


def encoded(report: Report, key: bytes) -> bytes:
    """The datagram of a report."""
    c = report.cost
    place = [*c.tp, c.hashes.lo, c.hashes.hi, c.offsets.start, c.offsets.until]
    cost = [c.rows, c.bytes, round(c.read_ms, 3), round(c.function_ms, 3), c.finished, c.at, c.handed_ms]
    keys = [[key_hash, round(ms, 3), rows] for key_hash, ms, rows in c.keys]
    text = json.dumps([report.plan, report.attempt, report.number, place, cost, keys], separators=(",", ":")).encode()
    return _signature(text, key) + text


def decoded(datagram: bytes, key: bytes) -> Report | None:
    """The report of a datagram; None for anything that this key did not sign, or that is none."""
    signature, text = datagram[:_SIGNED], datagram[_SIGNED:]
    if not hmac.compare_digest(signature, _signature(text, key)):
        return None
    try:
        plan, attempt, number, (topic, partition, lo, hi, start, until), cost, keys = json.loads(text)
        rows, size, read_ms, function_ms, finished, at, handed_ms = cost
        return Report(
            int(plan),
            str(attempt),
            int(number),
            SliceCost(
                TopicPartition(str(topic), int(partition)),
                HashRange(int(lo), int(hi)),
                OffsetRange(int(start), int(until)),
                int(rows),
                int(size),
                _finite(read_ms),
                _finite(function_ms),
                tuple(KeyCost(int(key_hash), _finite(ms), int(rows)) for key_hash, ms, rows in keys),
                bool(finished),
                None if at is None else RecordAt(*map(int, at)),
                None if handed_ms is None else _finite(handed_ms),
            ),
        )
    except (ValueError, TypeError, OverflowError, CoopKafkaError):  # another version of ours, at worst
        return None


def _finite(ms: float | str) -> float:
    """Milliseconds that one can count with; JSON knows others."""
    if not isfinite(value := float(ms)):
        raise ValueError(f"{ms} ms")
    return value


def _signature(text: bytes, key: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")[:_SIGNED]
