"""The Lua of the store is linted as Redis runs it, and each finding names the file and the line where it is."""

import re
import shutil
from pathlib import Path

import pytest

import lint_lua

pytestmark = pytest.mark.skipif(lint_lua.LUACHECK is None, reason=lint_lua.NO_LUACHECK)


@pytest.fixture
def lua(tmp_path: Path) -> Path:
    """The files that all verbs share, and two verbs."""
    shutil.copytree(lint_lua.LUA / "shared", tmp_path / "shared")
    for name in ("look", "release"):
        shutil.copy(lint_lua.LUA / f"{name}.lua", tmp_path)
    return tmp_path


def put_first(file: Path, *lines: str) -> None:
    file.write_text("\n".join(lines) + "\n" + file.read_text())


def test_each_fault_is_found_where_it_is(lua: Path) -> None:
    faults = {
        "local raised = META; call.a = raised": r"W411.*'raised'.* in shared/progress\.lua:\d+",  # shadows a function
        "local never = 1": r"W211.*'never'",
        "call.a = strange": r"W113.*'strange'",
        "also_strange = 1": r"W111.*'also_strange'",
        "call.a = os.time()": r"W113.*'os'",  # Redis has none
        "redis.log('a')": r"W143.*'log' of global 'redis'",
    }
    put_first(lua / "release.lua", *faults)
    found = lint_lua.findings(lua)
    for line, what in enumerate(faults.values(), 1):
        assert any(re.match(rf"release\.lua:{line}:\d+: \({what}", each) for each in found), (what, found)


def test_a_shared_function_that_no_verb_uses_is_found_and_no_other(lua: Path) -> None:
    put_first(lua / "shared" / "strikes.lua", "local function nobody_calls_it(less) return less end")
    found = [each for each in lint_lua.findings(lua) if each.startswith("shared/strikes.lua:1:")]
    assert len(found) == 2, found
    assert "nobody_calls_it" in found[0]
    assert re.search(r"shadowing upvalue 'less' in shared/prelude\.lua:\d+", found[1])


def test_lua_that_cannot_be_read_is_found(lua: Path) -> None:
    put_first(lua / "look.lua", "if then")
    assert [each for each in lint_lua.findings(lua) if each.startswith("look.lua:1:4: (E011)")]


@pytest.mark.long
def test_the_lua_of_the_store_has_no_finding() -> None:
    assert lint_lua.findings() == []
