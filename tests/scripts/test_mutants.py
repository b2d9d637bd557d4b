"""`scripts/mutants` itself: its faults fit the code as it is, are caught when they are on, and only then."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from broker_jars import ROOT
from mutants.catalogue import FAULTS
from mutants.fault import Edit, Fault
from mutants.hunt import Hunt, UnsoundError
from mutants.tree import OutOfDateError, broken, copied, edited

TEST = "tests/coordinator/values/test_hash_map.py"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_current_code_and_names_tests_that_should_catch_it(fault: Fault) -> None:
    for edit in fault.edits:
        text = edited((ROOT / edit.path).read_text(), fault, edit)
        if edit.path.endswith(".py"):
            compile(text, edit.path, "exec")
    assert fault.tests or fault.schedules
    assert all((ROOT / test).is_file() for test in fault.tests)


def test_every_fault_has_a_name_of_its_own_and_there_are_enough() -> None:
    names = Counter(fault.name for fault in FAULTS)
    assert max(names.values()) == 1
    assert len(names) >= 25


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(ROOT, tmp_path_factory.mktemp("mutants") / "tree")


def fault(old: str, new: str) -> Fault:
    return Fault("a fault", (Edit("coordinator/values/hash_map.py", old, new),), (TEST,))


@pytest.mark.long
def test_a_fault_is_caught_by_the_test_that_fails_with_it(tree: Path) -> None:
    assert (
        Hunt(tree)
        .find(fault("max(lo, c.hi + 1)", "max(lo, c.hi + 2)"))
        .caught_by.startswith("coordinator/values/test_hash_map.py::")
    )


@pytest.mark.long
def test_all_catchers_pass_without_a_fault_or_no_fault_is_hunted(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutants.hunt._AT_ONCE", 1)
    ranges = replace(fault("", ""), tests=("tests/coordinator/values/test_ranges.py", TEST))
    assert Hunt(tree).sound([ranges]).caught_by == ""
    with (
        broken(tree, fault("max(lo, c.hi + 1)", "max(lo, c.hi + 2)")),
        pytest.raises(UnsoundError, match="test_hash_map"),
    ):
        Hunt(tree).sound([ranges])


@pytest.mark.long
def test_an_edit_that_changes_nothing_is_caught_by_nothing(tree: Path) -> None:
    assert Hunt(tree).find(fault("max(lo, c.hi + 1)", "max(c.hi + 1, lo)")).caught_by == ""


def test_a_tree_is_whole_again_after_a_fault(tree: Path) -> None:
    before = (tree / "coordinator/values/hash_map.py").read_text()
    with broken(tree, fault("lo = max(lo, c.hi + 1)", "lo = 0")):
        assert (tree / "coordinator/values/hash_map.py").read_text() != before
    assert (tree / "coordinator/values/hash_map.py").read_text() == before


def test_a_fault_whose_text_is_gone_is_out_of_date(tree: Path) -> None:
    with pytest.raises(OutOfDateError, match=r"a fault: .* 0 times"), broken(tree, fault("no such text", "")):
        pass
