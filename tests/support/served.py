"""A verb of `coop-kafka` that serves HTTP, as a process: the port that it prints, and how it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from broker_jars import ROOT

PATIENCE_S = 30


@dataclass(frozen=True, slots=True)
class Served:
    """The process, and its port on this host."""

    process: "subprocess.Popen[str]"
    port: int

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """A signal; the exit code, and stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err


def without_addresses() -> dict[str, str]:
    """The environment without addresses of servers: a command has those that its test passes."""
    return {name: value for name, value in os.environ.items() if name not in ("COOP_KAFKA", "COOP_REDIS")}


@contextmanager
def served(verb: str, line: str, *arguments: str) -> Iterator[Served]:
    """The verb on a free port; `line` is the regular expression of its first line, with the port as its group."""
    command = [sys.executable, "-m", "spark_coop_source.command_line", verb, "--listen", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(
        command, cwd=ROOT, env=without_addresses(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        found = re.fullmatch(line, printed := process.stdout.readline())
        if not found:
            process.kill()
            raise AssertionError((printed, process.communicate()[1]))
        yield Served(process, int(found[1]))
    finally:
        process.kill()
        process.communicate()
