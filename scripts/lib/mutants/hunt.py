"""Runs the catchers of a fault in a scratch copy, and returns the first that fails."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mutants.fault import Fault, Find
from mutants.tree import broken

_PATIENCE_S = 900
_AT_ONCE = 40  # tests that run within this time without a fault
_FAILED = re.compile(r"^(?:FAILED|ERROR) tests/(.+?)(?: - |$)", re.MULTILINE)  # not a line of a log
_VIOLATION = re.compile(r"^seed (\d+): (.*)", re.MULTILINE)


class UnsoundError(Exception):
    """A catcher fails without a fault, or does not run: its result on faults has no meaning."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """A scratch copy, and the servers that all its tests share (each simulation has a Valkey of its own)."""

    tree: Path
    servers: Mapping[str, str] = field(default_factory=dict)  # environment variables that name them

    def sound(self, faults: Iterable[Fault]) -> Find:
        """Run every catcher once without a fault; raises `UnsoundError` if one fails."""
        began = time.monotonic()
        wanted = list(faults)
        tests = sorted({fault.test for fault in wanted if fault.test})
        schedules = max((fault.schedules for fault in wanted), default=0)
        some = (tests[at : at + _AT_ONCE] for at in range(0, len(tests), _AT_ONCE))
        if caught := next(filter(None, map(self._tests, some)), "") or self._simulation(schedules):
            raise UnsoundError(f"without any fault: {caught}")
        return Find("(no fault)", "", time.monotonic() - began)

    def find(self, fault: Fault) -> Find:
        """The catcher of this fault."""
        began = time.monotonic()
        with broken(self.tree, fault.change):
            caught = self._tests([fault.test] if fault.test else ()) or self._simulation(fault.schedules)
        return Find(fault.name, caught, time.monotonic() - began)

    def _tests(self, tests: Sequence[str]) -> str:
        if not tests:
            return ""
        code, output = self._run(self.servers, "-m", "pytest", "-x", "-q", "-rfE", "--tb=line", *tests)
        if code in (0, None):
            return "" if code == 0 else "a test that hangs"
        if code == 1 and (name := _FAILED.search(output)):
            return name[1]
        raise UnsoundError(f"pytest ended with code {code}:\n{output[-2000:]}")

    def _simulation(self, schedules: int) -> str:
        if not schedules:
            return ""
        code, output = self._run({}, "scripts/lib/simulate.py", "--schedules", str(schedules), "--violations", "1")
        if code in (0, None):
            return "" if code == 0 else "a simulation that hangs"
        if code == 1 and (violation := _VIOLATION.search(output)):
            return f"simulation, seed {violation[1]}: {violation[2].partition(':')[0]}"
        print(f"the simulation ended with code {code}, without a seed:\n{output[-2000:]}", file=sys.stderr)
        return ""

    def _run(self, environment: Mapping[str, str], *words: str) -> tuple[int | None, str]:
        """Run Python in the tree, whose packages come before installed ones; the code is None after a kill."""
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=self.tree,
            env={**os.environ, "PYTHONPATH": str(self.tree), "PYTHONDONTWRITEBYTECODE": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=_PATIENCE_S)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:  # also if the hunt is ended
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
