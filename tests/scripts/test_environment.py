"""The set-up script refuses a machine that cannot work, and otherwise gets out of the way."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from broker_jars import ROOT

pytestmark = pytest.mark.server
SCRIPT = ROOT / "scripts" / "lib" / "environment.sh"
SECONDS = 60


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command through the script; an empty variable is one that is not set."""
    environment = {name: value for name, value in {**os.environ, **variables}.items() if value}
    return subprocess.run(
        [SCRIPT, *command], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("java", "found"),
    [
        pytest.param("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is version 11", id="a Java that is too old"),
        pytest.param("exit 127", "does not run", id="a Java that does not run"),
    ],
)
def test_a_java_that_spark_cannot_use_is_refused(java: str, found: str, tmp_path: Path) -> None:
    program(tmp_path, "bin/java", java)
    done = run("true", JAVA_HOME=str(tmp_path), COOP_ENVIRONMENT="")
    assert done.returncode == 1
    assert f"coop-kafka needs Java 17 or 21: {tmp_path}/bin/java {found}" in done.stderr
    assert "JAVA_HOME" in done.stderr


def test_a_missing_java_is_refused(tmp_path: Path) -> None:
    done = run("true", JAVA_HOME=str(tmp_path), COOP_ENVIRONMENT="")
    assert (done.returncode, f"{tmp_path}/bin/java does not run" in done.stderr) == (1, True)


def test_a_python_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """Its only `python3` fails the check of its version, as an old one would."""
    program(tmp_path, "python3", '[ "$1" = --version ] && echo Python 3.9.2\nexit 1')
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    done = run("true", PATH=str(tmp_path), PYTHON="")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer, and none was found (Python 3.9.2)" in done.stderr
    assert "PYTHON=" in done.stderr


def test_arguments_and_the_exit_code_pass_through() -> None:
    done = run("python", "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "a b", "*")
    assert (done.returncode, done.stdout, done.stderr) == (7, "['a b', '*']\n", "")


def test_a_command_finds_our_interpreter_and_our_spark_despite_the_users_environment() -> None:
    code = "import os; print(os.environ['SPARK_HOME'], os.environ['PYSPARK_PYTHON'], 'PYTHONPATH' in os.environ)"
    done = run("python", "-c", code, SPARK_HOME="/nowhere", PYSPARK_PYTHON="/nowhere", PYTHONPATH="/nowhere")
    spark_home, python, has_path = done.stdout.split()
    assert Path(spark_home, "bin", "spark-submit").is_file()
    assert (python, has_path) == (str(ROOT / ".venv" / "bin" / "python"), "False")


def test_a_command_that_does_not_exist_is_a_plain_message() -> None:
    done = run("no-such-command")
    assert (done.returncode, done.stderr) == (127, "no-such-command: not found\n")


def test_sparks_pythons_import_the_installed_pyspark_and_not_an_archive_of_sources() -> None:
    find = "import pyspark; from pathlib import Path; print(*Path(pyspark.__path__[0]).glob('python/lib/*.zip'))"
    assert run("python", "-c", find).stdout == "\n"
