"""The report on faults, with one of them: a row whose records have all arrived."""

from pathlib import Path

import pytest

import fault_report

pytestmark = pytest.mark.long


def test_a_fault_has_a_row_with_the_verdict_on_the_records_around_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fault_report.report(3, tmp_path, fault_report.chosen(["goes back"]), {}) == 0
    first, _, head, _, row, _, total = capsys.readouterr().out.splitlines()
    assert first.endswith("seed 3")
    assert head.count("|") == row.count("|")
    name, sent, wrong, out_of_order, _, unexplained, _ = row.strip("| ").split(" | ")
    assert (name, wrong, out_of_order, unexplained) == ("Redis goes back by 4 s", "0", "0", "0")
    assert int(sent) > 100
    assert "0 lost, 0 out of order or altered" in total


def test_it_names_the_faults_that_it_cannot_bring_about(capsys: pytest.CaptureFixture[str]) -> None:
    every = [*fault_report.FAULTS]
    assert fault_report.possible(every, mounts=True, clocks=True) == every
    left = fault_report.possible(every, mounts=False, clocks=False)
    assert {*every} - {*left} == {name for name in every if "disk of" in name or "clock of" in name}
    assert capsys.readouterr().err.count("not tried, as it needs ") == 4
