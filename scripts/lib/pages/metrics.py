"""Every number that a query or a group reports of itself, for docs/reference.md.

A test compares each table with the keys of the report that it describes.
"""

from dataclasses import dataclass

from coordinator.redis.lane_lines import FAILING, JOINED, LEAD, NOTHING, OLDER, PARKED, ROOM, TRIED


@dataclass(frozen=True, slots=True)
class Metric:
    """One number or text of a report."""

    name: str
    unit: str
    meaning: str


PROGRESS = (
    Metric(
        "minOffsetsBehindLatest",
        "offsets",
        "Smallest lag of a partition, from the lane that the last planned batch leaves furthest behind.",
    ),
    Metric(
        "maxOffsetsBehindLatest",
        "offsets",
        "Largest lag of a partition, from the lane that the last planned batch leaves furthest behind.",
    ),
    Metric(
        "avgOffsetsBehindLatest",
        "offsets",
        "Mean lag of the partitions, each from the lane that the last planned batch leaves furthest behind.",
    ),
    Metric("lanes", "lanes", "Lanes of the last plan."),
    Metric("limitedLanes", "lanes", "Lanes that a [bound](reference.md#bounds-of-a-lane) stops before the end offset."),
    Metric(
        "limited",
        "lane: why",
        "At most 20 of the limited lanes, each with its bound. Quarantined lanes come first, then the oldest records.",
    ),
    Metric("parkedLanes", "lanes", "Quarantined lanes: no member reads them until `coop-kafka release`."),
    Metric(
        "filteredRecords",
        "count",
        "Approximate number of records that a filter dropped since the query started. Only with a filter. The query "
        "adds a batch when it plans the next one. It counts refetched records again, and ignores late task reports.",
    ),
    Metric("deferredKeys", "count", "Keys of the group that wait for another attempt. Only with `on_error`."),
    Metric(
        "parkedKeys",
        "count",
        "Quarantined keys of the group: they wait for `coop-kafka release`. Only with `on_error`.",
    ),
    Metric("skippedRecords", "count", "Records that `then=skip` left out since the query started."),
    Metric("deadLetteredRecords", "count", "Records that the query wrote to the dead-letter topic since it started."),
    Metric("slowestLane", "text", "The lane with the highest cost of a record, and that cost; `-` if unknown."),
)

LANE = (
    Metric("position", "offset", "The next offset to read. All records of the lane below it are in the sink."),
    Metric("lag", "records", "Records of the lane up to the end offset, estimated from the density of its keys."),
    Metric(
        "lag_s",
        "s",
        "Age of the oldest unread record. `-` means unknown. `>` marks a lower bound: the record was there at the "
        "member's first look.",
    ),
    Metric("rate", "records/s", "Records of the lane in the last batch, divided by the duration of the batch."),
    Metric("record_ms", "ms", "Time that a record of the lane occupies a slot. 0 means unknown."),
    Metric("cost", "text", "`sure` (measured), `guessed` (derived from the durations of batches) or `unknown`."),
    Metric("quota", "records", "Records that the lane may read in the batch that was planned last."),
    Metric("why", "text", "The [bound](#bounds-of-a-lane) on the lane."),
)

BATCH = (
    Metric("member", "id", "The member that planned the batch."),
    Metric("rows", "records", "Records that the batch read."),
    Metric("bytes", "bytes", "Bytes of their keys and values. `-` if a task sent no report."),
    Metric("seconds", "s", "Time from the authorisation of the batch to Spark's next call."),
    Metric("lanes", "lanes", "Lanes with records to read."),
    Metric("slowest", "lane", "The lane that took longest. `-` if unknown."),
    Metric("reading", "%", "Part of `seconds` in which the task that read longest read. `-` if a task sent no report."),
)

COUNTERS = (
    Metric(
        "duplicate_commits",
        "ranges",
        "Committed ranges that were already committed, counted in the group's `meta`.",
    ),
    Metric(
        "slow_percent",
        "% of slots",
        "Share of a member's slots that slow lanes take, in `member:<id>`. Assignors reduce its capacity by it.",
    ),
)

REASONS = {
    NOTHING: "No bound: the lane reads up to the end offset.",
    "budget": "The lane reads only the records that should fit `batchTimeBudget`.",
    "slow start": "The cost of the lane is unknown: it starts small, and reads twice as much in each batch.",
    "suspect, on trial": "A slow lane is searched for, and this lane reads as part of the test.",
    "suspect, waits": "A slow lane is searched for, and this lane waits for its turn in the test.",
    "older lanes first": "The batch cannot hold all slow lanes, and those with older records come first.",
    "maxOffsetsPerTrigger": "Spark's limit on a batch bounds the lane.",
    "ceiling": "Another rule of the planner bounds the lane.",
    f"ceiling: {OLDER}": "A new partition waits for the records of the older partitions.",
    f"ceiling: {JOINED}": "The member does not own these hashes in all topics of `copartition` yet.",
    f"ceiling: {FAILING}": "The function failed on a record of the lane's key, which is tried again alone.",
    f"ceiling: {ROOM}": "The partition holds `maxIndividualCommits`, and the lane is ahead of the others.",
    f"ceiling: {LEAD}": "The lane is `maxLaneLead` ahead of the lane furthest behind.",
    TRIED: "A member died or hung while it read this lane, so the lane is tested alone, in a task of its own.",
    PARKED: "The lane is quarantined, because members died or hung over one of its records; `release` resumes it.",
}
"""The bounds on what a lane may read in one batch, as `why` names them."""
