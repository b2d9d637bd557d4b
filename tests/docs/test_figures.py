"""Every figure that README.md and docs/comparison.md take from a benchmark is in the record of measurements."""

import re

import pytest

from broker_jars import ROOT

RECORD = (ROOT / "docs" / "benchmarks.md").read_text()
CASE, FIGURE = re.compile(r"\bP\d+[a-z]?\b"), re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|[.,]\d)")
GIVEN = {"README.md": {"200", "50"}, "docs/comparison.md": {"40", "1,000"}}
"""Figures that are arithmetic or describe the test, and no measurement."""


def claims(page: str) -> list[tuple[str, str]]:
    """Each paragraph or bullet that names a case of the benchmarks, and each figure in it."""
    parts = re.split(r"\n(?=- |\n|\|)", (ROOT / page).read_text())
    told = [re.sub(r"\]\([^)]*\)|`[^`]*`", "", part) for part in parts]
    return [(case, figure) for part in told for case in CASE.findall(part)[:1] for figure in FIGURE.findall(part)]


def recorded(case: str) -> str:
    """The part of the record that has the case: its rows, and the section that explains it."""
    sections = re.split(r"\n(?=## |### |\*\*P)", RECORD)
    return "\n".join(section for section in sections if re.search(rf"\b{case}\b", section))


@pytest.mark.parametrize("page", GIVEN)
def test_a_figure_of_a_page_is_measured(page: str) -> None:
    found = claims(page)
    assert len(found) > 8, "the pages name cases beside their figures"
    lacking = [
        (case, figure)
        for case, figure in found
        if figure not in GIVEN[page] and not re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d,]|\.\d)", recorded(case))
    ]
    assert lacking == []
