"""What `lastProgress` shows beside the log ends: lag by Spark's own names, lanes, what holds them back. Pure.

Spark takes texts, whole numbers and booleans as leaves; no topic can be named `#`.
"""

from collections.abc import Mapping

from coordinator.progress.stream_offset import StreamOffset
from coordinator.reports.lane_lines import LanesTold
from coordinator.subscription import TopicPartition

MOST_NAMED = 20
"""Lanes that are named with what holds them back; the others are counted."""


def behind_latest(offset: StreamOffset, ends: Mapping[TopicPartition, int]) -> dict[str, str]:
    """How many offsets partitions are behind their log ends once the batch that ends at `offset` is done.

    As Spark's Kafka source says it, of the furthest lane back in each partition; nothing if no partition is read.
    """
    read = {tp: min(row.until for row in rows) for tp, rows in offset.rows.items() if rows and tp in ends}
    behind = [max(0, ends[tp] - position) for tp, position in read.items()]
    if not behind:
        return {}
    found = {"min": min(behind), "max": max(behind), "avg": sum(behind) / len(behind)}
    return {f"{name}OffsetsBehindLatest": str(value) for name, value in found.items()}


def lanes_report(told: LanesTold) -> dict[str, object]:
    """The lanes in few words, from the most interesting on; nothing where none was planned."""
    if not told.lanes:
        return {}
    limited = [line for line in told.lines if line.limited]
    return {
        "lanes": told.lanes,
        "limitedLanes": told.limited,
        "limited": {line.name: line.why for line in limited[:MOST_NAMED]},
        "parkedLanes": told.parked,
        "slowestLane": told.slowest,
    }
