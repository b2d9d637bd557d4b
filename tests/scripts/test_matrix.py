"""The cells of the support matrix, by what pytest says of them. `test_capped_versions` has its oldest broker."""

import configparser
import re

import pytest

import matrix
from broker_jars import BROKER, ROOT
from matrix import Outcome

PAGE = (ROOT / "docs" / "getting-started.md").read_text()


def test_a_cell_holds_if_all_its_tests_pass() -> None:
    assert Outcome.of("....\n7 passed, 2 skipped, 9 deselected in 61.20s") == Outcome(7, (), 2)
    assert Outcome(7, (), 2).right


@pytest.mark.parametrize(
    "output",
    [
        "FAILED tests/a.py::test_b - KeyError\n1 failed, 7 passed in 3.1s",
        "ERROR tests/a.py::test_b - KeyError\n7 passed, 1 error in 3.1s",
        "2 skipped in 1.0s",
        "ModuleNotFoundError: No module named 'kafka'",
        "",
    ],
)
def test_a_cell_does_not_hold_otherwise(output: str) -> None:
    assert not Outcome.of(output).right


def test_a_part_that_is_missing_here_is_no_failure() -> None:
    assert Outcome(0, (), 0, "no python3.13 on this host's PATH").right


def test_an_unknown_cell_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["matrix", "kafka-0.8"])
    with pytest.raises(SystemExit):
        matrix.main()
    assert "unknown cell 'kafka-0.8': choose from kafka-3.7.2" in capsys.readouterr().err


def test_the_page_names_the_versions_of_the_cells() -> None:
    for versions in (matrix.KAFKAS, matrix.SPARKS, matrix.PYTHONS):
        assert all(version in PAGE for version in versions), versions


def test_the_next_client_is_the_first_one_that_is_not_allowed() -> None:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    (below,) = re.findall(r"^kafka-python>=.*,<(.*)$", setup["options"]["install_requires"], re.MULTILINE)
    assert f"kafka-python>={below}" == matrix.NEXT_CLIENT


def test_the_newest_broker_is_that_of_all_tests() -> None:
    assert f'rev="{matrix.KAFKAS[-1]}"' in BROKER.wanted.read_text()
