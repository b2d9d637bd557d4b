"""The page of public names: its column "after" is what the code has, and former options do what the page says."""

import re
from pathlib import Path

import pytest

import spark_coop_source
from broker_jars import ROOT
from coordinator.errors import UnknownOptionError
from coordinator.tools.cli.commands import commands
from coordinator.values.options import key_of
from pages.command_page import arguments, verbs
from spark_coop_source import offset_commits, testing
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.options.names import check_name

PAGE = (ROOT / "tests" / "docs" / "interface.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
VARIABLE = re.compile(r"\bCOOP_(?!KAFKA_ERROR)[A-Z_]+\b")


def rows(section: str) -> list[list[list[str]]]:
    """The names in the first two columns, by row."""
    cells = [line.split(" | ")[:2] for line in SECTIONS[section].splitlines() if line.startswith("| ")][1:]
    names = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in cells]
    return [
        [before, before if "the same" in row[1] else after] for row, (before, after) in zip(cells, names, strict=True)
    ]


def after(section: str) -> list[str]:
    return sorted(name for row in rows(section) for name in row[1])


def test_every_option_is_there() -> None:
    assert after("Options") == sorted(option.name for option in OPTION_OF.values())


FORMER = re.findall(r"^\| `([^`]+)` \| (?:`(\w+)`|none) \| (.+) \|$", SECTIONS["Options"], re.MULTILINE)


@pytest.mark.parametrize(("before", "now", "what"), FORMER, ids=[row[0] for row in FORMER])
def test_a_former_option_does_what_the_page_says(before: str, now: str, what: str) -> None:
    if what == "another spelling":
        assert key_of(before) == key_of(now)
    elif what == "accepted":
        (option,) = (each for each in OPTION_OF.values() if before in each.also)
        assert option.name == now
    else:
        remedies = re.findall(r"`(\w+)`", what) or [now]
        with pytest.raises(UnknownOptionError) as refused:
            check_name(before)
        assert [name for name in remedies if not re.search(rf"\b{name}\b", refused.value.remedy or "")] == []


def test_every_command_is_there_with_all_that_it_takes() -> None:
    assert after("Commands") == sorted(" ".join([name, *arguments(verb)]) for name, verb in verbs(commands))


def test_every_name_of_python_is_there() -> None:
    more = ((module.__name__.rpartition(".")[2], module.__all__) for module in (offset_commits, testing))
    names = [*dir(spark_coop_source), *(f"{module}.{name}" for module, every in more for name in every)]
    assert after("Python") == sorted(names)


def test_every_environment_variable_is_there() -> None:
    files = [file for package in ("coordinator", "spark_coop_source") for file in Path(ROOT, package).rglob("*.py")]
    assert after("Environment variables") == sorted({n for f in files for n in VARIABLE.findall(f.read_text())})
