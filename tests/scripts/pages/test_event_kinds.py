"""The table of events has every kind that Python or a script writes, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from broker_jars import ROOT
from pages.event_kinds import EVENT_KINDS

CODE = ROOT / "coordinator"
WRITES = re.compile(r"(?<!function )\bevent\([^,]+, (?:'(?P<kind>\w+)'|(?P<variable>\w+)),")


def in_python(file: Path) -> Iterator[str]:
    """The kinds that `event(...)` is called with, or `Event` requests are made with; `apply` passes them on."""
    for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(call, ast.Call) or not call.args:
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        first = call.args[0]
        if name in ("event", "Event") and isinstance(first, ast.Constant):
            yield str(first.value)
        elif name == "event":
            passed_on = getattr(first, "id", getattr(first, "attr", ""))
            assert passed_on == "kind", f"{file}:{call.lineno} writes a kind that cannot be read here"


def in_lua(file: Path) -> Iterator[str]:
    """The kinds that `event(...)` is called with: a literal, or one of the literals of a local variable."""
    text = file.read_text(encoding="utf-8")
    for write in WRITES.finditer(text):
        if write["kind"]:
            yield write["kind"]
        else:
            (chosen,) = re.findall(rf"local {write['variable']} = (.*)", text)
            yield from re.findall(r"'(\w+)'", chosen)


def written() -> set[str]:
    return {
        *(kind for file in CODE.rglob("*.py") for kind in in_python(file)),
        *(kind for file in CODE.rglob("*.lua") for kind in in_lua(file)),
    }


def test_the_table_has_exactly_the_kinds_that_the_code_writes() -> None:
    assert {event.kind for event in EVENT_KINDS} == written()


def test_every_call_of_a_script_was_read() -> None:
    calls = sum(len(re.findall(r"(?<!function )\bevent\(", f.read_text(encoding="utf-8"))) for f in CODE.rglob("*.lua"))
    assert calls == sum(len(WRITES.findall(f.read_text(encoding="utf-8"))) for f in CODE.rglob("*.lua")) > 20


def test_kinds_stand_in_their_order_and_once() -> None:
    kinds = [event.kind for event in EVENT_KINDS]
    assert kinds == sorted({*kinds})
