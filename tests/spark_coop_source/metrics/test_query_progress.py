"""Our part of a query's progress as a value; docs/reference.md has the same fields."""

import json
from dataclasses import fields
from typing import Any

from broker_jars import ROOT
from pages.metrics import PROGRESS
from pages.progress_page import markdown
from spark_coop_source.metrics.query_progress import ATTRIBUTES, QueryProgress, of_progress

REPORT = {
    "minOffsetsBehindLatest": "5",
    "maxOffsetsBehindLatest": "45",
    "avgOffsetsBehindLatest": "25.5",
    "lanes": 8,
    "limitedLanes": 1,
    "limited": {"orders 0 lo-hi": "budget"},
    "parkedLanes": 0,
    "filteredRecords": 7,
    "deferredKeys": 1,
    "parkedKeys": 2,
    "skippedRecords": 3,
    "deadLetteredRecords": 4,
    "slowestLane": "orders 0 lo-hi: 5 ms a record",
}
END = {"#": {"v": 1, "group": "g"}, "orders": {"0": {}}}
OTHERS = {"endOffset": {"orders": {"0": 50}}, "latestOffset": {"orders": {"0": 60}}}


def progress_of(*sources: dict[str, Any]) -> str:
    return json.dumps({"id": "q", "runId": "r", "name": None, "batchId": 7, "sources": sources})


def test_a_report_is_a_value_with_all_its_fields() -> None:
    latest = {"orders": {"0": 50, "1": 60}, "#": REPORT}
    (found,) = of_progress(progress_of(OTHERS, {"endOffset": END, "latestOffset": latest}))
    assert found == QueryProgress(
        query_id="q",
        run_id="r",
        name=None,
        source=1,
        batch_id=7,
        group="g",
        log_ends={("orders", 0): 50, ("orders", 1): 60},
        min_offsets_behind_latest=5.0,
        max_offsets_behind_latest=45.0,
        avg_offsets_behind_latest=25.5,
        lanes=8,
        limited_lanes=1,
        limited={"orders 0 lo-hi": "budget"},
        parked_lanes=0,
        slowest_lane="orders 0 lo-hi: 5 ms a record",
        filtered_records=7,
        skipped_records=3,
        dead_lettered_records=4,
        deferred_keys=1,
        parked_keys=2,
    )


def test_what_is_not_reported_has_no_value() -> None:
    (found,) = of_progress(progress_of({"endOffset": END, "latestOffset": {"orders": {"0": 50}}}))
    assert found == QueryProgress("q", "r", None, 0, 7, "g", {("orders", 0): 50})
    (found,) = of_progress(progress_of({"endOffset": END, "latestOffset": {"#": {"slowestLane": "-", "later": 1}}}))
    assert found == QueryProgress("q", "r", None, 0, 7, "g")


def test_other_sources_and_reads_without_a_look_are_left_out() -> None:
    assert of_progress(progress_of(OTHERS, {"endOffset": END, "latestOffset": None}, {"endOffset": None})) == ()


def test_the_page_of_the_progress_is_fresh() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert markdown() in page, "docs/reference.md is stale: run scripts/reference-pages"


def test_the_page_has_exactly_the_fields_that_are_read() -> None:
    assert [m.name for m in PROGRESS] == [*ATTRIBUTES]
    assert {*ATTRIBUTES.values()} <= {field.name for field in fields(QueryProgress)}
