"""Assignors are found by name: ours, and a user's `module:Class`."""

import sys
from pathlib import Path

import pytest

from coordinator.assignment.assignors.registry import NAMES, assignor
from coordinator.errors import (
    InvalidOptionError,
)

OWN = """
class Everything:
    name, version = "everything", 3

    def assign(self, members, partitions, previous):
        return {}


class Nothing:
    pass

class Hidden(Everything):
    @property
    def name(self):
        raise RuntimeError("no name today")

class TwoWords(Everything):
    name = "two words"

class Long(Everything):
    name = 101 * "a"

class Escapes(Everything):
    name = "\\x1b[2J"

class Yes(Everything):
    version = True

class Awaited(Everything):
    async def assign(self, members, partitions, previous):
        return {}

class Yields(Everything):
    def assign(self, members, partitions, previous):
        yield {}

class Wants(Everything):
    def assign(self, members, partitions):
        return {}

class Leaves:
    def __init__(self):
        raise SystemExit("not here")


class Greedy(Everything):
    def __init__(self, wanted):
        pass
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_assignors.py").write_text(OWN)
    (tmp_path / "broken_assignors.py").write_text("1 / 0")
    (tmp_path / "leaving_assignors.py").write_text("exit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_assignors", raising=False)
    return "own_assignors"


def test_assignors_are_found_by_their_names() -> None:
    assert NAMES == ("grouped", "range", "roundrobin", "copartitioned", "rack-aware")
    assert [assignor(name).name for name in NAMES] == list(NAMES)


def test_a_users_class_is_made_by_name(own_module: str) -> None:
    made = assignor(f"{own_module}:Everything")
    assert (made.name, made.version) == ("everything", 3)
    assert made.assign([], {}, {}) == {}


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        pytest.param("groped", "did you mean grouped", id="a misspelt name"),
        pytest.param("", "choose one of grouped, range", id="no name"),
        pytest.param("own_assignors:Missing", "AttributeError", id="no such class"),
        pytest.param("no_such_module:A", "ModuleNotFoundError", id="no such module"),
        pytest.param(":A", "is not module:Class", id="no module"),
        pytest.param("own_assignors:", "is not module:Class", id="no class"),
        pytest.param("broken_assignors:A", "ZeroDivisionError", id="a module that fails"),
        pytest.param("leaving_assignors:A", "SystemExit", id="a module that exits"),
        pytest.param("own_assignors:Greedy", "TypeError", id="a class that needs arguments"),
        pytest.param("own_assignors:Nothing", "is not an assignor", id="a class that is none"),
        pytest.param("own_assignors:Hidden", "no name today", id="a name that cannot be read"),
        pytest.param("own_assignors:TwoWords", "its name cannot be used", id="a name of two words"),
        pytest.param("own_assignors:Long", "its name cannot be used", id="a name too long"),
        pytest.param("own_assignors:Escapes", "its name cannot be used", id="a name that moves the cursor"),
        pytest.param("own_assignors:Yes", "its version is not", id="a version that others cannot read"),
        pytest.param("own_assignors:Awaited", "is not a plain function", id="a coroutine function"),
        pytest.param("own_assignors:Yields", "is not a plain function", id="a generator"),
        pytest.param("own_assignors:Wants", "does not take", id="a method that takes something else"),
        pytest.param("own_assignors:Leaves", "SystemExit: not here", id="a class that ends the process"),
    ],
)
def test_an_invalid_assignor_is_named(name: str, what: str) -> None:
    with pytest.raises(InvalidOptionError, match=what):
        assignor(name)
