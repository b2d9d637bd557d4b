"""Every figure that README.md and pages of docs/ take from a benchmark is in the record."""

import re
from collections.abc import Collection

import pytest

from bench.record import load
from broker_jars import ROOT

RECORD = load()
CASE, FIGURE = re.compile(r"\bP\d+[a-z]?\b"), re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|[.,]\d)")
PAGES = {"README.md": 9, "docs/comparison.md": 9, "docs/reading.md": 6}
"""Pages that name cases of the benchmarks, with at least so many figures beside them."""
GIVEN = {"README.md": {"20,000"}, "docs/comparison.md": {"40", "1,000"}}
"""Figures that are arithmetic or describe the test, and no measurement."""


def claims(page: str) -> list[tuple[tuple[str, ...], str]]:
    """Each paragraph or bullet that names cases of the benchmarks, and each figure in it."""
    parts = re.split(r"\n(?=- |\n|\|)", (ROOT / page).read_text())
    told = [re.sub(r"\]\([^)]*\)|`[^`]*`", "", part) for part in parts]
    named = ((tuple(CASE.findall(part)), part) for part in told)
    return [(cases, figure) for cases, part in named if cases for figure in FIGURE.findall(part)]


def recorded(cases: Collection[str]) -> str:
    """The rows of the record that have one of the cases."""
    return "\n".join(f"{row.what}; {row.measured}; {row.target}" for row in RECORD if row.id.split()[0] in cases)


def holds(text: str, figure: str) -> bool:
    """Whether a text has this figure, and not only as a part of another one."""
    return re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d|[.,]\d)", text) is not None


@pytest.mark.parametrize("page", PAGES)
def test_a_figure_of_a_page_is_measured(page: str) -> None:
    found = claims(page)
    assert len(found) >= PAGES[page]
    given = GIVEN.get(page, set())
    assert [(c, figure) for c, figure in found if figure not in given and not holds(recorded(c), figure)] == []


def test_a_figure_of_the_benchmarks_is_in_the_record() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    before, method = page.split("\n## How it was measured\n")
    told = before + method[method.index("\n## ") :]
    told = re.sub(r"\]\([^)]*\)|`[^`]*`", "", told)
    whole = recorded({row.id.split()[0] for row in RECORD})
    found = FIGURE.findall(told)
    assert len(found) > 150
    assert [figure for figure in found if not holds(whole, figure)] == []


@pytest.mark.parametrize(
    ("text", "figure", "there"),
    [
        ("6,470 records/s (105 %)", "6,470", True),
        ("6,470 records/s (105 %)", "470", False),
        ("1.25 (runs 0.92-1.49, CPU 2.19)", "1.49", True),
        ("1.25 (runs 0.92-1.49, CPU 2.19)", "2.1", False),
    ],
)
def test_a_part_of_a_figure_is_another_figure(text: str, figure: str, there: bool) -> None:
    assert holds(text, figure) == there
