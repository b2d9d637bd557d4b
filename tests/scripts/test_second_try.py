"""A broken promise ends a run with an exit code of its own, and `.ci/run` tries it no second time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker_jars import ROOT
from second_try import NO_SECOND_TRY

BROKEN = "from verdict import require\ndef test_promise(): require(False, '1 lost')\n"
LATE = "def test_deadline(): assert False, 'not within 90 s'\n"


@pytest.mark.parametrize(
    ("tests", "processes", "code"),
    [
        pytest.param(BROKEN + LATE, 0, NO_SECOND_TRY, id="a broken promise among other failures"),
        pytest.param(BROKEN + LATE, 2, NO_SECOND_TRY, id="the same where two processes share the tests"),
        pytest.param(LATE, 0, 1, id="a deadline that was missed"),
    ],
)
def test_what_failed_is_told_by_the_exit_code(tests: str, processes: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text("from second_try import *\n")
    (tmp_path / "test_inner.py").write_text(tests)
    path = os.pathsep.join(map(str, (ROOT / "tests" / "support", ROOT / "scripts" / "lib")))
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(processes), "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        pytest.param((0,), 0, id="all is well"),
        pytest.param((1, 0), 0, id="well at the second try"),
        pytest.param((1, 1), 1, id="not well at the second try either"),
        pytest.param((NO_SECOND_TRY, 0), NO_SECOND_TRY, id="a broken promise"),
    ],
)
def test_ci_tries_once_more_what_failed_for_another_reason_only(
    codes: tuple[int, ...], code: int, tmp_path: Path
) -> None:
    (line,) = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("scripts/test ")]
    tests = tmp_path / "scripts" / "test"  # ends with one code after the other
    tests.parent.mkdir()
    (tmp_path / "codes").write_text("".join(f"{one}\n" for one in codes))
    tests.write_text("#!/bin/sh\ncode=$(head -n 1 codes)\nsed -i 1d codes\nexit $code\n")
    tests.chmod(0o755)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", f"{line}\ntrue"], cwd=tmp_path, check=False)
    assert done.returncode == code
