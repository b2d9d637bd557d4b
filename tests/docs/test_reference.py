"""docs/reference.md is made from the code, and no error lacks a text."""

import ast
import re
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from broker_jars import ROOT
from coordinator.errors import CoopKafkaError
from coordinator.tools.cli.commands import commands
from pages import command_page
from pages.event_kinds import EVENT_KINDS, EventKind
from pages.metrics import BATCH, COUNTERS, LANE, PROGRESS, REASONS, Metric
from pages.reference import markdown, raised

PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
COMMAND = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
FLAG = re.compile(r"(?<![\w-])--[a-z-]+[a-z]")
TABLES: dict[str, tuple[EventKind | Metric, ...]] = {
    "events": EVENT_KINDS,
    "metrics": PROGRESS + LANE + BATCH + COUNTERS,
    "bounds": tuple(Metric(why, "-", meaning) for why, meaning in REASONS.items()),
}


def tree(kind: type[CoopKafkaError]) -> Iterator[type[CoopKafkaError]]:
    yield kind
    for sub in kind.__subclasses__():
        yield from tree(sub)


ROWS = {"ReplyKind", "FailureKind"}
OURS = sorted({k for k in tree(CoopKafkaError) if k.__module__.startswith("coordinator.errors.")}, key=lambda k: k.name)
RAISED = sorted(raised(CoopKafkaError), key=lambda k: k.name)


def raised_in_code() -> set[str]:
    """The names of all errors that the code constructs, also by a row of the replies of Redis and Kafka.

    Some code constructs an error again by `type(error)`.
    """
    names = {kind.__name__ for kind in OURS}
    files = (f for package in ("coordinator", "spark_coop_source") for f in (ROOT / package).rglob("*.py"))
    calls = (n for f in files for n in ast.walk(ast.parse(f.read_text(encoding="utf-8"))) if isinstance(n, ast.Call))
    made = (n for call in calls for n in (call.func, *(call.args if getattr(call.func, "id", "") in ROWS else ())))
    return {name for n in made if (name := getattr(n, "id", getattr(n, "attr", ""))) in names}


def test_the_page_of_errors_events_and_metrics_is_fresh() -> None:
    assert markdown() == PAGE, "docs/reference.md is stale: run scripts/reference-pages"


def test_the_page_of_the_command_is_fresh() -> None:
    assert command_page.markdown() == COMMAND, "docs/command.md is stale: run scripts/reference-pages"


@pytest.mark.parametrize("verb", re.findall(r"^## ([a-z-]+)$", COMMAND, re.MULTILINE))
def test_the_page_has_the_flags_that_help_prints(verb: str) -> None:
    printed = CliRunner().invoke(commands, [*verb.split(), "--help"], env={"COLUMNS": "400", "TERM": "dumb"}).stdout
    part = COMMAND.split(f"\n## {verb}\n")[1].split("\n## ")[0].split("\n**JSON.**")[0]
    assert set(FLAG.findall(part)) | {"--help"} == set(FLAG.findall(printed))


@pytest.mark.parametrize("kind", OURS, ids=[kind.name for kind in OURS])
def test_an_error_has_a_meaning_of_its_own(kind: type[CoopKafkaError]) -> None:
    assert (vars(kind).get("__doc__") or "").strip().endswith(".")


def test_the_page_has_exactly_the_errors_that_the_code_raises() -> None:
    assert {kind.__name__ for kind in raised(CoopKafkaError)} == raised_in_code()


@pytest.mark.parametrize("kind", RAISED, ids=[kind.name for kind in RAISED])
def test_an_error_that_is_raised_is_on_the_page_with_its_remedy(kind: type[CoopKafkaError]) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{kind.name}`"))
    assert kind.usual_remedy.strip()
    assert kind.usual_remedy[1:].rstrip(".") in row


@pytest.mark.parametrize("table", TABLES)
def test_no_text_of_a_table_is_empty(table: str) -> None:
    for entry in TABLES[table]:
        assert all(text.strip() for text in asdict(entry).values()), entry
