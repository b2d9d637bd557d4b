"""What the command says of itself: its version, and the completion of a real shell."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from command_runs import Run

COMPLETE = """
eval "$(_COOP_KAFKA_COMPLETE=source_bash coop-kafka)"
COMP_WORDS=({words}) COMP_CWORD={at}
_coop_kafka_completion coop-kafka
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version") == (0, f"coop-kafka {metadata.version('coop-kafka')}\n", "")


def test_a_package_that_is_not_installed_has_no_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.tools.cli.commands._NAME", "coop-kafka-of-nobody")
    code, out, err = run("--version")
    assert (code, out, err.startswith("ENVIRONMENT_MISMATCH: the package coop-kafka-of-nobody")) == (1, "", True)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        pytest.param("coop-kafka des", ["describe"], id="a verb"),
        pytest.param("coop-kafka check orders --max-", ["--max-age", "--max-lag"], id="a flag"),
    ],
)
def test_bash_completes_the_command(words: str, completed: list[str]) -> None:
    script = COMPLETE.format(words=words, at=len(words.split()) - 1)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60, check=True
    )
    assert (sorted(done.stdout.split()), done.stderr) == (completed, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_each_shell_is_shown(shell: str) -> None:
    asked = {**os.environ, "_COOP_KAFKA_COMPLETE": f"source_{shell}"}
    command = Path(sys.executable).parent / "coop-kafka"
    done = subprocess.run([command], env=asked, capture_output=True, text=True, timeout=60, check=True)
    assert "coop-kafka" in done.stdout
