"""The report in `lastProgress` beside the log ends: lag by Spark's names, lanes and their bounds. Pure."""

from collections.abc import Collection, Mapping

from coordinator.progress.failing import FailingRecord, deferred_and_parked
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.lane_lines import LaneReport
from coordinator.values.subscription import TopicPartition

MOST_NAMED = 20
"""Lanes that the report names, with their bounds; it counts the others."""


def behind_latest(offset: StreamOffset, ends: Mapping[TopicPartition, int]) -> dict[str, str]:
    """Offsets from the end of a batch to the log ends, by the names of Spark's Kafka source.

    The lane furthest behind counts for its partition. Empty if no partition is read.
    """
    return behind({tp: min(row.until for row in rows) for tp, rows in offset.rows.items() if rows}, ends)


def behind(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> dict[str, str]:
    """Offsets from positions to the log ends, by the names of Spark's Kafka source."""
    lags = [max(0, ends[tp] - position) for tp, position in positions.items() if tp in ends]
    if not lags:
        return {}
    found = {"min": min(lags), "max": max(lags), "avg": sum(lags) / len(lags)}
    return {f"{name}OffsetsBehindLatest": str(value) for name, value in found.items()}


def failing_progress(records: Collection[FailingRecord], skipped: int, dead_lettered: int) -> dict[str, int]:
    """Counts of failing keys and of failed records. Empty if all are 0."""
    deferred, parked = deferred_and_parked(records)
    counts = {"deferredKeys": deferred, "parkedKeys": parked}
    counts |= {"skippedRecords": skipped, "deadLetteredRecords": dead_lettered}
    return counts if any(counts.values()) else {}


def lane_progress(report: LaneReport) -> dict[str, object]:
    """Counts of lanes, and the most interesting limited lanes. Empty if no lane was planned."""
    if not report.lanes:
        return {}
    limited = [line for line in report.lines if line.limited]
    return {
        "lanes": report.lanes,
        "limitedLanes": report.limited,
        "limited": {line.name: line.why for line in limited[:MOST_NAMED]},
        "parkedLanes": report.parked,
        "slowestLane": report.slowest,
    }
