"""The pages about options: made from the code, and every row of the comparison names a test that exists."""

import re

import pytest

from broker_jars import ROOT
from pages.option_meanings import MEANINGS, Section
from pages.options import markdown
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.options.kafka_table import KAFKA_NAMES
from spark_coop_source.options.names import NAMES

MIGRATE = (ROOT / "docs" / "migrate.md").read_text(encoding="utf-8").split("## Options")[1]
PROOF = (ROOT / "tests" / "docs" / "parity.md").read_text(encoding="utf-8")
OPTION_PAGE = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
ROWS = [line for line in PROOF.splitlines() if line.startswith("| ") and "`tests/" in line]
OURS = {Section.FILTER, Section.GROUP, Section.TIMES, Section.CACHE, Section.FUNCTION}


def test_the_page_of_options_is_fresh() -> None:
    assert markdown() == OPTION_PAGE, "docs/options.md is stale: run scripts/reference-pages"


def test_every_option_is_on_the_page() -> None:
    assert [name for name in NAMES.values() if f"`{name}`" not in OPTION_PAGE] == []
    assert OPTION_PAGE.count("`kafka.") >= len(KAFKA_NAMES)


def test_a_job_begins_with_four_options_and_at_most_five_more() -> None:
    rows = re.findall(r"^\| (`.+?`) \| \w.*\|$", OPTION_PAGE.split("## What is read")[0], re.MULTILINE)
    four, more = ", ".join(rows[:2]), rows[2:]
    assert four == "`kafka.bootstrap.servers`, `subscribe`, `group`, `redisUrl`"
    assert len(more) <= 5


def test_every_option_of_sparks_source_is_compared() -> None:
    names = [OPTION_OF[field].name for section in MEANINGS if section not in OURS for field in MEANINGS[section]]
    assert [name for name in names if f"| `{name}` |" not in PROOF] == []


@pytest.mark.parametrize("row", ROWS, ids=[row.split("|")[1].strip() for row in ROWS])
def test_a_row_names_a_test_that_exists(row: str) -> None:
    named = re.search(r"`(tests/[\w/]+\.py)::(\w+)(?:\[(.+)\])?` \|$", row)
    assert named, "a row ends with the name of a test"
    source = (ROOT / named[1]).read_text(encoding="utf-8")
    assert f"def {named[2]}(" in source
    assert named[3] is None or f'id="{named[3]}"' in source


def test_every_option_with_a_test_is_on_the_page_for_a_user() -> None:
    page = " ".join(MIGRATE.split())
    compared = [row.split("|")[1].strip() for row in ROWS]
    assert [name for each in compared for name in each.split(", ") if name not in page] == []


def test_a_row_without_a_test_names_the_reason_why_the_option_cannot_apply() -> None:
    tested = {row.split("|")[1].strip() for row in ROWS}
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in MIGRATE.splitlines() if line.startswith("| ")]
    without = {name: why for name, why in rows if not {name, *name.split(", ")} & tested and name != "option"}
    missing = [name for name, why in without.items() if why.startswith("Missing: ")]
    assert len(missing) == 2
    (other,) = without.keys() - {*missing}
    assert "Cannot apply: " in without[other]
