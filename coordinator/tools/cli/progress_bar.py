"""A bar on stderr while a command takes longer than two seconds: on a terminal, never in a pipe, never with --json.

A timer's thread shows the bar, since the main thread waits for Redis or Kafka. The bar disappears at the end.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from coordinator.tools.cli.printing import printable

if TYPE_CHECKING:
    from coordinator.tools.operations.redrive import Tell

AFTER_S = 2.0
"""Time without a bar: most commands end within it."""


@contextmanager
def waiting(verb: str, *, as_json: bool) -> Iterator["Tell | None"]:
    """Show a bar from `AFTER_S` until the end of the body. The value shows numbers in it; None: no bar will be shown.

    The body must not print on stdout.
    """
    console = Console(stderr=True)
    if as_json or not (console.is_interactive and sys.stderr.isatty() and sys.stdout.isatty()):
        yield None
        return
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(verb, total=None)  # without a total, the bar only moves

    def tell(what: str, done: int, of: int) -> None:
        progress.update(task, description=f"{verb}: {printable(what)}", completed=done, total=of)

    timer = Timer(AFTER_S, progress.start)
    timer.start()
    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
