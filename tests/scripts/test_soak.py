"""The soak, in short: a row for each look, and the verdict once the keys do not fail any more."""

import csv
from pathlib import Path

import pytest

import soak
from soak import Sizes


def looks(*readers: float) -> list[Sizes]:
    """Looks that differ in the memory of the reader."""
    return [Sizes(n, 400, each, 500, 300, 1_700, 3, 20, 0) for n, each in enumerate(readers)]


def test_a_memory_that_grows_is_named() -> None:
    assert soak.grown(looks(50, 50, 100, 100, 110, 110, 120, 120)) == []
    assert soak.grown(looks(50, 50, 100, 100, 110, 120, 140, 140)) == ["reader"]


@pytest.mark.long
def test_what_fails_waits_while_the_topic_grows_and_arrives_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "soak.csv"
    monkeypatch.setattr("sys.argv", ["soak", "--rows", "3", "--every", "4", "--output", str(file)])
    assert soak.main() == 0
    shown = capsys.readouterr().out
    assert "the topic has 4 partitions" in shown
    assert "0 lost, 0 out of order" in shown
    names, *rows = csv.reader(file.read_text().splitlines())
    assert (names[0], [row[0] for row in rows]) == ("look", ["1", "2", "3"])
    assert all(float(row[names.index("reader")]) > 10 for row in rows)
