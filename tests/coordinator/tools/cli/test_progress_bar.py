"""The bar of a command that waits: on a real terminal after two seconds, never in a pipe, never with --json."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from command_runs import Run
from coordinator.tools.cli.progress_bar import waiting
from own_valkey import OwnValkey
from terminal import on_a_terminal

BAR = "━"
SHOWN_AFTER = """
import sys
from coordinator.tools.cli import progress_bar
from spark_coop_source.command_line import app
progress_bar.AFTER_S = {seconds}
sys.argv[1:] = {arguments!r}
app()
"""
"""A command whose bar is shown after so many seconds: it gives up after one or two, by the version of redis-py."""


@pytest.fixture
def silent() -> Iterator[str]:
    """The url of a server that accepts connections and never answers: a command waits for some seconds."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("verb", [("describe", "g"), ("backup", "g")])
def test_a_command_that_waits_shows_a_bar_and_then_only_its_result(silent: str, verb: tuple[str, ...]) -> None:
    with on_a_terminal(code=SHOWN_AFTER.format(seconds=0.5, arguments=[*verb, "--redis", silent])) as terminal:
        printed = terminal.rest()
        assert terminal.process.wait(10) == 1
    assert [verb[0] in printed, BAR in printed, "Traceback" in printed] == [True, True, False]
    assert printed.rstrip().splitlines()[-1].startswith("REDIS_UNAVAILABLE: "), "the bar is gone"


def test_with_json_there_is_no_bar(silent: str) -> None:
    with on_a_terminal("describe", "g", "--json", "--redis", silent) as terminal:
        assert BAR not in terminal.rest()


def test_in_a_pipe_there_is_no_bar(silent: str) -> None:
    command = [sys.executable, "-m", "spark_coop_source.command_line", "describe", "g", "--redis", silent]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n"), BAR in done.stderr) == (1, "", 1, False)


def test_a_command_that_is_done_earlier_shows_none(valkey: OwnValkey) -> None:
    """Valkey of its own: elsewhere the command asks the brokers of other tests' groups, which may be gone."""
    with on_a_terminal(code=SHOWN_AFTER.format(seconds=20, arguments=["list", "--redis", valkey.address])) as terminal:
        assert "No groups." in (printed := terminal.rest())
    assert BAR not in printed


def test_without_a_terminal_no_numbers_are_wanted(run: Run) -> None:
    with waiting("redrive", as_json=False) as bar:
        assert bar is None


NUMBERS = """
import time
from coordinator.tools.cli import progress_bar
progress_bar.AFTER_S = {after_s}
with progress_bar.waiting("redrive", as_json=False) as bar:
    bar("reading [red]dead\\x1b[2J", 3, 6)
    time.sleep({after_s} + 0.5)
print("done")
"""


def test_the_bar_counts_from_the_beginning_of_the_command() -> None:
    with on_a_terminal(code=NUMBERS.format(after_s=1.1)) as terminal:
        printed = terminal.rest()
    shown = re.findall(r"0:00:\d\d", printed)
    assert shown
    assert "0:00:00" not in shown


def test_numbers_fill_the_bar_and_a_name_cannot_drive_the_terminal() -> None:
    with on_a_terminal(code=NUMBERS.format(after_s=0.0)) as terminal:
        printed = terminal.rest()
    assert r"redrive: reading [red]dead\x1b[2J" in printed
    assert printed.rstrip().endswith("done")
