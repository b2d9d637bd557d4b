"""The head of each Lua file ends with the shared files that it uses, so a reader finds each function."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

import pytest

from coordinator.redis.client import SHARED

LUA = files("coordinator.redis") / "lua"
VERBS = {script.name: script for script in LUA.iterdir() if script.is_file()}
FILES = VERBS | {f"shared/{name}.lua": LUA / "shared" / f"{name}.lua" for name in SHARED}
DEFINED = re.compile(r"^local function (?P<function>\w+)\(|^local (?P<constants>[A-Z_]+(?:, [A-Z_]+)*) =", re.MULTILINE)


def code(file: Traversable) -> str:
    """The text of a file without its strings and comments."""
    return re.sub(r"'[^']*'|--.*", "", file.read_text(encoding="utf-8"))


def names(text: str) -> set[str]:
    """The shared functions and constants that a text defines."""
    defined = {name for match in DEFINED.finditer(text) for name in re.findall(r"\w+", match[1] or match[2])}
    return defined | ({"call"} if re.search(r"^local call =", text, re.MULTILINE) else set())


DEFINES = {shared: names(code(FILES[f"shared/{shared}.lua"])) for shared in SHARED}


def uses(file: str) -> str:
    """The last line of the head as it should be."""
    text = code(FILES[file])
    named = {name for pair in re.findall(r"(?<![.\w])(?:(\w+)\(|([A-Z_]+|call)\b)", text) for name in pair}
    needed = sorted(shared for shared in SHARED if file != f"shared/{shared}.lua" and DEFINES[shared] & named)
    return f"-- Uses {', '.join(needed)}" if needed else "-- Uses no shared file"


def head(file: str) -> list[str]:
    """The comment at the top of a file."""
    lines = FILES[file].read_text(encoding="utf-8").splitlines()
    return lines[: next(i for i, line in enumerate(lines) if not line.startswith("--"))]


@pytest.mark.parametrize("file", sorted(FILES))
def test_the_head_ends_with_the_shared_files_that_the_file_uses(file: str) -> None:
    assert [line for line in head(file) if line.startswith("-- Uses")] == [head(file)[-1]] == [uses(file)]


def test_every_shared_file_is_listed_and_used() -> None:
    assert {file.name for file in (LUA / "shared").iterdir()} == {f"{name}.lua" for name in SHARED}
    assert {name for file in VERBS for name in uses(file).removeprefix("-- Uses ").split(", ")} >= {*SHARED}


def test_a_name_has_one_shared_file() -> None:
    assert sum(map(len, DEFINES.values())) == len(set().union(*DEFINES.values())) > 50
