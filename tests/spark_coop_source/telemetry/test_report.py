"""A cost report: it comes back as it was, and a text of another form is dropped."""

from dataclasses import replace

import pytest

from coordinator.plan.cost.telemetry import KeyAt, KeyCost, SliceCost
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HASH_MAX, WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from slice_costs import BEGUN, COST
from spark_coop_source.telemetry.report import MOST_BYTES, Report, decoded, encoded


@pytest.mark.parametrize(
    "cost",
    [
        pytest.param(BEGUN, id="nothing yet"),
        pytest.param(COST, id="a finished slice"),
        pytest.param(replace(BEGUN, at=(KeyAt(12, 150, 152), KeyAt(13, 151, 152))), id="the keys that are worked on"),
        pytest.param(
            SliceCost.nothing(Slice(TopicPartition("t" * 249, 2**31 - 1), WHOLE, OffsetRange(2**63 - 2, 2**63 - 1))),
            id="the longest names and numbers",
        ),
    ],
)
def test_a_report_comes_back_as_it_was(cost: SliceCost) -> None:
    report = Report(7, 2**63 - 1, 2**63 - 1, replace(cost, keys=(KeyCost(HASH_MAX, 1e9, 10**9),) * 8))
    text = encoded(report)
    assert decoded(text) == report
    assert len(text) < 1_000 < MOST_BYTES


REPORT = '[7,4,1,["t",0,0,9,0,5],[1,1,1.0,2.0,true,[[3,4,5]],null,2],[[5,6.0,1]]]'


NO_REPORTS = [
    pytest.param("", id="nothing"),
    pytest.param("[]", id="an empty list"),
    pytest.param("{", id="no JSON"),
    pytest.param("[1,2,3,4,5,6]", id="numbers only"),
    pytest.param("[" * 4_000, id="nested 4,000 deep"),
    pytest.param("[" * 2_000 + "]" * 2_000, id="nested 2,000 deep and closed"),
    pytest.param("{1:" * 800, id="objects nested 800 deep"),
    pytest.param(REPORT.replace('"t"', "[" * 1_000 + "]" * 1_000), id="a topic nested 1,000 deep"),
    pytest.param(REPORT + " " * MOST_BYTES, id="longer than a report may be"),
    pytest.param(REPORT.replace("4,1,[", "4," + "9" * 4_000 + ",["), id="a number of 4,000 digits"),
    pytest.param(REPORT.replace("[7,4,", '[7,"4",'), id="an attempt that is text"),
    pytest.param(REPORT.replace("0,9,0,5", "9,0,0,5"), id="hashes upside down"),
    pytest.param(REPORT.replace("[1,1,1.0", "[1,-1,1.0"), id="fewer bytes than none"),
    pytest.param(REPORT.replace("[3,4,5]", "[3,4]"), id="a call of two numbers"),
    pytest.param(REPORT.replace("2.0,true,[[3,4,5]],null,2", "2.0,true"), id="of another version"),
    pytest.param(REPORT.replace("null,2]", "null,-2]"), id="fewer dropped records than none"),
]


@pytest.mark.parametrize("text", NO_REPORTS)
def test_a_text_of_another_form_is_no_report(text: str) -> None:
    assert decoded(REPORT.encode()) is not None
    assert decoded(text.encode()) is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("place", range(3))
def test_a_number_that_is_none_is_dropped(place: int, number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read_ms, function_ms, key_ms = ("1" if i != place else number for i in range(3))
    text = f'[7,4,1,["t",0,1,9,0,5],[1,1,{read_ms},{function_ms},true,[],null,0],[[5,{key_ms},1]]]'
    monkeypatch.setattr("json.dumps", lambda *_, **__: text)
    assert decoded(encoded(Report(7, 4, 1, COST))) is None
    monkeypatch.setattr("json.dumps", lambda *_, **__: text.replace(number, "1"))
    assert decoded(encoded(Report(7, 4, 1, COST))) is not None
