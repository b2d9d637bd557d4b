"""Our part of Spark's `lastProgress`, as a value. Pure.

    progress.json   {"id": ..., "batchId": 7, "sources": [{"latestOffset": {"orders": {"0": 50}, "#": {...}}, ...}]}
                                                                           log ends              the report

docs/reference.md explains each field. A source of another format has no value here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

HEADER = "#"
"""The name beside the topics: of the report in `latestOffset`, of our own header in `endOffset`."""


ATTRIBUTES = {
    "minOffsetsBehindLatest": "min_offsets_behind_latest",
    "maxOffsetsBehindLatest": "max_offsets_behind_latest",
    "avgOffsetsBehindLatest": "avg_offsets_behind_latest",
    "lanes": "lanes",
    "limitedLanes": "limited_lanes",
    "limited": "limited",
    "parkedLanes": "parked_lanes",
    "filteredRecords": "filtered_records",
    "deferredKeys": "deferred_keys",
    "parkedKeys": "parked_keys",
    "skippedRecords": "skipped_records",
    "deadLetteredRecords": "dead_lettered_records",
    "slowestLane": "slowest_lane",
}
"""The fields of the report, and their names in `QueryProgress`."""


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """The report of one read of a query after one trigger. A value that the query does not report is None."""

    query_id: str  # the same after a restart from the checkpoint
    run_id: str
    name: str | None  # of the query, by `queryName`
    source: int  # 0 for the first read of the query
    batch_id: int
    group: str | None  # None for a query without a group
    log_ends: Mapping[tuple[str, int], int] = field(default_factory=dict)  # (topic, partition) -> log end
    min_offsets_behind_latest: float | None = None
    max_offsets_behind_latest: float | None = None
    avg_offsets_behind_latest: float | None = None
    lanes: int | None = None
    limited_lanes: int | None = None
    limited: Mapping[str, str] = field(default_factory=dict)  # "topic partition lo-hi" -> its bound
    parked_lanes: int | None = None
    slowest_lane: str | None = None  # None if unknown
    filtered_records: int | None = None  # since the query started, as the next two
    skipped_records: int | None = None
    dead_lettered_records: int | None = None
    deferred_keys: int | None = None
    parked_keys: int | None = None


def of_progress(text: str) -> tuple[QueryProgress, ...]:
    """One value for each of our reads in a query's progress; `text` is the JSON of Spark's `StreamingQueryProgress`."""
    progress = json.loads(text)
    return tuple(_values(progress))


def _values(progress: Mapping[str, Any]) -> Iterator[QueryProgress]:
    for number, source in enumerate(progress["sources"]):
        latest, end = source.get("latestOffset"), source.get("endOffset")
        if not (_is_ours(end) and isinstance(latest, dict)):
            continue
        yield QueryProgress(
            query_id=progress["id"],
            run_id=progress["runId"],
            name=progress.get("name"),
            source=number,
            batch_id=progress["batchId"],
            group=end[HEADER].get("group"),
            log_ends={(t, int(p)): n for t, ends in latest.items() if t != HEADER for p, n in ends.items()},
            **_report(latest.get(HEADER, {})),
        )


def _is_ours(end: object) -> bool:
    return isinstance(end, dict) and isinstance(end.get(HEADER), dict) and "v" in end[HEADER]


def _report(report: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the report by their names here. Names that this version does not know are left out."""
    values = {attribute: report[name] for name, attribute in ATTRIBUTES.items() if name in report}
    lags = {name: float(values[name]) for name in values if name.endswith("_behind_latest")}  # texts, as Spark's are
    return values | lags | ({"slowest_lane": None} if values.get("slowest_lane") == "-" else {})
