"""The cells of the support matrix, by what pytest says of them. `test_capped_versions` has its oldest broker."""

import configparser
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import matrix
import processes
from broker_jars import BROKER, ROOT
from matrix import MissingPartError, Outcome

PAGE = (ROOT / "docs" / "getting-started.md").read_text()


def test_a_cell_holds_if_all_its_tests_pass() -> None:
    output = "....\n7 passed, 2 skipped, 9 deselected in 61.20s (0:01:01)\na late word of Spark\n"
    assert Outcome.of(output, 0) == Outcome(7, (), 2)
    assert Outcome(7, (), 2).right


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("FAILED tests/a.py::test_b - KeyError\n1 failed, 7 passed in 3.1s", 1),
        ("ERROR tests/a.py::test_b - KeyError\n7 passed, 1 error in 3.1s", 1),
        ("2 skipped in 1.0s", 0),
        ("1 passed, 201 skipped in 1.0s", 0),
        ("!!! KeyboardInterrupt !!!\n7 passed in 3.1s", 2),
        ("ModuleNotFoundError: No module named 'kafka'", 1),
        ("", -9),
    ],
)
def test_a_cell_does_not_hold_otherwise(output: str, code: int) -> None:
    assert not Outcome.of(output, code).right


def test_a_part_that_is_missing_here_is_no_failure() -> None:
    assert Outcome(0, (), 0, "no python3.13 on this host's PATH").right


def test_a_cell_with_another_spark_starts_that_one(tmp_path: Path) -> None:
    home = tmp_path / "lib" / "python3.12" / "site-packages" / "pyspark"
    home.mkdir(parents=True)
    python = tmp_path / "bin" / "python"
    found = matrix.variables(python)
    assert (found["SPARK_HOME"], found["PYSPARK_PYTHON"]) == (str(home), str(python))


def test_ctrl_c_lets_the_tests_of_a_cell_end_by_themselves(tmp_path: Path) -> None:
    python, started, ended = (tmp_path / name for name in ("python", "started", "ended"))
    python.write_text(f"#!/bin/sh\ntrap 'touch {ended}; exit' TERM\ntouch {started}\nsleep 600 & wait\n")
    python.chmod(0o755)
    code = f"import matrix, pathlib; matrix._tests(pathlib.Path({str(tmp_path)!r}), {str(python)!r}, {{}})"
    path = os.pathsep.join((str(ROOT), str(ROOT / "scripts" / "lib")))
    command = [sys.executable, "-B", "-c", code]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, stderr=log) as runner,
    ):
        processes.wait_until(started.exists, 60, runner, tmp_path / "log")
        runner.send_signal(signal.SIGINT)
        runner.wait(30)
    assert ended.exists()


def test_cells_that_this_machine_cannot_try_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_folder: Path, _stack: object) -> Outcome:
        raise MissingPartError("no python3.13 on this host's PATH")

    here: dict[str, object] = {"python-3.13": missing}
    monkeypatch.setattr("matrix.cells", lambda: here)
    monkeypatch.setattr("sys.argv", ["matrix"])
    assert matrix.main() == 1, "nothing was tried"
    here["python-3.11"] = lambda _folder, _stack: Outcome(7, (), 2)
    assert matrix.main() == 0
    assert capsys.readouterr().out.endswith("1 of 2 cells tried, 1 of them hold\n")


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
