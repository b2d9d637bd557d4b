"""The command `coop-kafka` on a terminal of its own: its screen, and Ctrl-C."""

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from served import without_addresses

DEADLINE_S = 30
ROWS, COLUMNS = 40, 200
CTRL_C = b"\x03"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ON_IT = "import os, sys; os.login_tty(0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


@dataclass
class Terminal:
    """The screen of a command, and the pressed keys."""

    process: subprocess.Popen[bytes]
    _fd: int
    _all: bytes = b""
    _until: float = field(default_factory=lambda: time.monotonic() + DEADLINE_S)

    @property
    def drawn(self) -> str:
        """All that was drawn so far, without colours. A change may be drawn alone."""
        return _ESCAPES.sub("", self._all.decode(errors="replace"))

    def until(self, *words: str) -> str:
        """All that was drawn so far, once it has all these words."""
        while not all(word in self.drawn for word in words):
            assert self._read(), f"it ended, and never showed {words}:\n{self.drawn}"
        return self.drawn

    def press(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._fd, keys.encode())

    def rest(self) -> str:
        """All that the command prints until it ends, without colours."""
        while self._read():
            pass
        return self.drawn

    def end(self) -> int:
        """Press Ctrl-C; returns the exit code."""
        os.write(self._fd, CTRL_C)
        while self._read():
            pass
        return self.process.wait(DEADLINE_S)

    def _read(self) -> bool:
        """Wait for more; whether more may come."""
        left = self._until - time.monotonic()
        assert left > 0, f"not within {DEADLINE_S} s:\n{self.drawn}"
        if not select.select([self._fd], [], [], left)[0]:
            return True
        try:
            came = os.read(self._fd, 65_536)
        except OSError:  # on Linux: no process has the terminal open any more
            came = b""
        self._all += came
        return bool(came)


@contextmanager
def on_a_terminal(*arguments: str, code: str = "") -> Iterator[Terminal]:
    """The command at work, or a Python program if there is `code`; killed at the end if it still is."""
    mine, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    program = ("-c", code) if code else ("-m", "spark_coop_source.command_line", *arguments)
    command = (sys.executable, "-c", _ON_IT, *program)
    size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS)}  # the environment of this process may have another size
    environment = without_addresses() | {"TERM": "xterm"} | size
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        try:
            yield Terminal(process, mine)
        finally:
            process.kill()
            os.close(mine)
