"""Prints text that a terminal cannot misread, on streams of any encoding.

Names, labels, keys and reasons come from others. Their unprintable characters are escaped as in Python's `repr`. So no
escape sequence reaches a terminal, and a line stays a line.
"""

import io
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime

from coordinator.errors import OutputError

_MS = 1_000


def printable(text: str) -> str:
    """The text with its unprintable characters escaped: control, format and surrogate characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def print_lines(*lines: str) -> None:
    """Print these lines on stdout."""
    for line in lines:
        print(printable(line))  # noqa: T201 - the one place that prints results


def complain(line: str) -> None:
    """Print one line on stderr. If stderr fails too, nothing can report it."""
    with suppress(OSError):
        print(printable(line), file=sys.stderr or io.StringIO())


def counted(number: int, noun: str) -> str:
    """`1 lane`, `2 lanes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def moment(ms: int, timespec: str = "milliseconds") -> str:
    """The time in UTC of ms since 1970; the number itself if no calendar has it."""
    try:
        at = datetime.fromtimestamp(ms // _MS, UTC).replace(microsecond=ms % _MS * _MS, tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
    return at.isoformat(timespec=timespec) + "Z"


def seconds(ms: int) -> str:
    """A duration in seconds, of any length."""
    return f"{ms // _MS}.{ms % _MS // 100} s"


def encode_all() -> None:
    """Make stdout and stderr take every character: those that their encoding lacks are escaped."""
    if sys.stdout is None:  # closed by the shell, >&-
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def refused(error: OSError) -> OutputError:
    """The error for a stdout that failed. Later output goes nowhere, so that the end of the process does not fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OutputError(f"the output cannot be written ({error.strerror or error})")
