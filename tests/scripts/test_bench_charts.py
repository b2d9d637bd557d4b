"""The charts of docs/benchmarks.md are drawn from its record, and the record can be read and written."""

import re
from pathlib import Path

import pytest

import benchmark
from bench.charts import CHARTS
from bench.drawing import LEFT, RIGHT, logarithmic
from bench.record import RECORD, Row, load, one, read, written
from broker_jars import ROOT

PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_what_the_record_gives(name: str) -> None:
    """If not: scripts/bench --charts."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == CHARTS[name](load())


@pytest.mark.parametrize("name", CHARTS)
def test_the_page_says_in_words_what_a_chart_shows(name: str) -> None:
    shown = re.search(rf"!\[([^\]]*)\]\({name}\)", PAGE)
    described = re.search(r'<desc id="desc">(.*)</desc>', CHARTS[name](load()))
    assert shown is not None
    assert described is not None
    assert " ".join(shown[1].split()) == described[1]


def test_every_chart_in_the_folder_is_drawn_here() -> None:
    assert {path.name for path in (ROOT / "docs").glob("bench-*.svg")} == {*CHARTS}


def test_the_charts_of_a_folder_are_drawn_again(tmp_path: Path) -> None:
    benchmark.draw(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*CHARTS}


def test_the_record_is_as_it_would_be_written() -> None:
    assert written(load()) == RECORD.read_text(encoding="utf-8")


def test_every_row_says_what_was_measured() -> None:
    assert [row for row in load() if not (row.id and row.what and row.measured)] == []


def test_a_verdict_needs_a_target_except_in_the_model() -> None:
    assert [row for row in load() if row.verdict and not row.target and row.id != "model"] == []


@pytest.mark.parametrize(
    ("measured", "shown", "value"),
    [
        ("304 ms", "304 ms", 0.304),
        ("1.51 s (none of 35 over 6 s)", "1.51 s", 1.51),
        ("6,470 records/s (105 % of 0.9 x slots x one)", "6,470 records/s", 6470.0),
        ("101 % of what arrives", "101 %", 101.0),
        ("0.002", "0.002", 0.002),
    ],
)
def test_the_first_figure_of_a_row_has_a_unit(measured: str, shown: str, value: float) -> None:
    row = Row("P1", "reads", measured)
    assert (row.shown, row.value) == (shown, value)


def test_a_figure_can_follow_a_word() -> None:
    row = Row("P1", "reads", "1.99 s against 2.4 s: 0.83 (runs 0.79-0.93, CPU 1.07)")
    assert (row.after(": "), row.after("CPU ")) == (0.83, 1.07)


def test_a_row_without_a_figure_has_no_value() -> None:
    with pytest.raises(ValueError, match="has no figure"):
        _ = Row("P7", "batches", "none").value


def test_a_row_is_found_only_if_no_other_row_is_meant() -> None:
    rows = read("id,what,measured,target,verdict,machine,commit,date\nP6,1 slot,855,,,,,\nP6,2 slots,1743,,,,,\n")
    assert one(rows, "P6", "2 slots").value == 1743
    with pytest.raises(ValueError, match="2 rows of P6"):
        one(rows, "P6", "slot")


def test_ten_times_as_much_is_as_far_everywhere_on_a_logarithmic_axis() -> None:
    at = logarithmic(0.1, 1000)
    steps = [at(10 * value) - at(value) for value in (0.1, 1.0, 10.0, 100.0)]
    assert steps == pytest.approx([(RIGHT - LEFT) / 4] * 4)
