"""`scripts/mutants` itself: its faults fit the code as it is, are caught when they are on, and only then."""

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from broker_jars import ROOT
from mutants.catalogue import FAULTS, WITHOUT
from mutants.changes import Begins, Change, Fails, Holds, Put, Without
from mutants.fault import Fault
from mutants.hunt import Hunt, UnsoundError
from mutants.places import OutOfDateError, is_lua, tokens
from mutants.tree import broken, copied

TEST = "tests/coordinator/values/test_hash_map.py"
RANGES = "coordinator/values/hash_map.py:missing"
RULES = set(re.findall(r'<a id="([\w-]+)"></a>', (ROOT / "docs/protocol.md").read_text()))
HEADINGS = re.findall(r"^#+ (.+)$", (ROOT / "docs/guarantees.md").read_text(), re.MULTILINE)
PROMISES = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in HEADINGS}
LUA = "".join(path.read_text() for path in sorted((ROOT / "coordinator/redis/lua").rglob("*.lua")))
MOST_WORDS = 14
"""Tokens that an operator may quote: a line of the code has more."""


def words(text: str, *, lua: bool) -> set[str]:
    return {token.text for token in tokens(text, lua=lua) if token.text.isidentifier()}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_current_code_and_names_a_test_that_is_there(fault: Fault) -> None:
    change, lua = fault.change, is_lua(fault.change.place)
    text = (ROOT / change.path).read_text()
    changed = change.of(text)
    assert changed != text
    if not lua:
        compile(changed, change.path, "exec")
    known = words(text, lua=lua) | (words(LUA, lua=True) if lua else {*dir(builtins), *keyword.kwlist})
    assert words(changed, lua=lua) <= known, "the fault only raises an error"
    quoted = tokens(change.words, lua=lua)
    assert len(quoted) <= MOST_WORDS
    path, _, test = fault.test.partition("::")
    assert bool(path) != bool(fault.schedules)
    assert not path or re.search(rf"def {test}\(" if test else "def test_", (ROOT / path).read_text())


def test_each_changed_script_compiles(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as server:
        for change in (fault.change for fault in FAULTS if is_lua(fault.change.place)):
            server.script_load(change.of((ROOT / change.path).read_text()))


def test_each_rule_of_the_protocol_has_a_fault_or_a_reason_why_not() -> None:
    broken_ones = Counter(fault.breaks for fault in FAULTS)
    assert broken_ones.keys() <= RULES | PROMISES
    assert RULES - broken_ones.keys() == set(WITHOUT)
    assert max(Counter(fault.name for fault in FAULTS).values()) == 1


PYTHON = '''
LIMIT = 30

class Lane:
    def read(self, at: int) -> int:
        """Not `if at`: a text."""
        if at < self.end and not self.parked(at):  # if at
            self.log(
                at,
            )
            return at
        return self.reach(at) if self.cut else LIMIT

    def other(self, at: int) -> int:
        return at
'''
SCRIPT = """
local function other(key) return key end

local function takeable(key, member)
  local at = end_of(key, member)  -- at < now
  if not at or tonumber(at) < now_ms() then
    note('member ' .. member,
      at)
  end
  return at and at < 'now'
end
"""


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (Without("a.py:Lane.read", "self.log"), "self.log(\n                at,\n            )", "pass"),
        (Without("a.py:Lane.read", "self.parked"), None, "        pass\n        return self.reach"),
        (Holds("a.py:Lane.read", "self.parked"), "not self.parked(at)", "True"),
        (Fails("a.py:Lane.read", "at < self"), "at < self.end", "False"),
        (Fails("a.py:Lane.read", "if self.cut"), "self.cut", "False"),
        (Put("a.py:LIMIT", "30", "300"), "30", "300"),
        (Put("a.py:Lane.read", "self.reach(at)", "at"), "self.reach(at)", "at"),
        (Begins("a.py:Lane.other", "return 0"), "        return at\n'''", "        return 0\n        return at\n'''"),
        (Without("a.lua:takeable", "'member '"), "note('member ' .. member,\n      at)", ""),
        (Without("a.lua:takeable", "now_ms()"), None, "(key, member)  -- at < now\n  \n  return at"),
        (Holds("a.lua:takeable", "tonumber(at)"), "tonumber(at) < now_ms()", "true"),
        (Fails("a.lua:takeable", "if not at"), "not at", "false"),
        (Fails("a.lua:takeable", "< 'now'"), "at < 'now'", "false"),
        (Put("a.lua:other", "return key", "return nil"), "return key", "return nil"),
        (Begins("a.lua:takeable", "return true"), "  local at", "  do return true end\n  local at"),
    ],
    ids=lambda value: f"{type(value).__name__} {value.place} {value.words}" if isinstance(value, Change) else "",
)
def test_a_change_of(change: Change, old: str | None, new: str) -> None:
    text = SCRIPT if is_lua(change.place) else PYTHON
    if old is None:
        assert new in change.of(text)
    else:
        old, new = old.removesuffix("'''"), new.removesuffix("'''")
        head, _, rest = text.rpartition(old)
        assert change.of(text) == f"{head}{new}{rest}"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Without("a.py:Lane.gone", "at"), "a.py:Lane.gone is there 0 times"),
        (Without("a.lua:gone", "at"), "a.lua:gone is there 0 times"),
        (Holds("a.py:Lane.read", "self.gone"), "a.py:Lane.read: 'self.gone' is there 0 times"),
        (Put("a.lua:takeable", "member", "key"), "a.lua:takeable: 'member' is there 3 times"),
        (Fails("a.py:Lane.read", "a text"), "0 times"),
    ],
    ids=str,
)
def test_a_change_that_does_not_fit_is_out_of_date(change: Change, why: str) -> None:
    with pytest.raises(OutOfDateError, match=re.escape(why)):
        change.of(SCRIPT if is_lua(change.place) else PYTHON)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(ROOT, tmp_path_factory.mktemp("mutants") / "tree")


def fault(new: str) -> Fault:
    return Fault("even-cuts", "a fault", Put(RANGES, "max(lo, c.hi + 1)", new), TEST)


@pytest.mark.long
def test_a_fault_is_caught_by_the_test_that_fails_with_it(tree: Path) -> None:
    found = Hunt(tree).find(fault("max(lo, c.hi + 2)"))
    assert found.caught_by.startswith("coordinator/values/test_hash_map.py::")


@pytest.mark.long
def test_all_catchers_pass_without_a_fault_or_no_fault_is_hunted(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutants.hunt._AT_ONCE", 1)
    both: Iterable[Fault] = (fault(""), replace(fault(""), test="tests/coordinator/values/test_ranges.py"))
    assert Hunt(tree).sound(both).caught_by == ""
    with broken(tree, fault("max(lo, c.hi + 2)").change), pytest.raises(UnsoundError, match="test_hash_map"):
        Hunt(tree).sound(both)


@pytest.mark.long
def test_a_change_that_changes_nothing_is_caught_by_nothing(tree: Path) -> None:
    assert Hunt(tree).find(fault("max(c.hi + 1, lo)")).caught_by == ""


def test_a_tree_is_whole_again_after_a_fault(tree: Path) -> None:
    file = tree / fault("").change.path
    before = file.read_text()
    with broken(tree, fault("0").change):
        assert file.read_text() != before
    assert file.read_text() == before
