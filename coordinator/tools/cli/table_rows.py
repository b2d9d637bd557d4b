"""Rows as tables for people: columns, widths, and the texts of cells."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator.tools.cli.printing import printable
from coordinator.tools.fields import Inclusive, columns_of

T = TypeVar("T")

PIPED_WIDTH = 200
"""Columns where there is no terminal: every row stays one line, for `grep` and `awk`."""

MOST_RANGES = 1_000
"""Offset ranges that a cell shows: to draw them takes longer than to find them."""

_LEAST = {"HASHES": 17, "MEMBER": 10}  # a range breaks only behind `lo-`, and a member's id never
_TEXTS = {"MEMBER", "HOST", "APPLICATION", "LABELS", "STATE", "TOPIC", "HASHES", "MISSING", "KEY HASH", "DONE ABOVE"}
_TEXTS |= {"GROUP", "AT", "SLOWEST LANE", "WHY", "OFFSETS", "FAULT", "BATCH"}


def stdout() -> Console:
    """Where tables go: as wide as the terminal, or wide enough for a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def print_rows(shown: type[T], things: Iterable[T], **cells: Callable[[T], object]) -> None:
    """Print the table of the columns that a class names."""
    stdout().print(rows_of(shown, things, **cells))


def print_table(columns: str, rows: Iterable[Sequence[object]]) -> None:
    """Print a table of these columns."""
    stdout().print(table(columns, rows))


def rows_of(shown: type[T], things: Iterable[T], **cells: Callable[[T], object]) -> Table:
    """A table of the columns that a class names; `cells` are texts of single fields."""
    columns = columns_of(shown)
    rows = (
        [cells[name](thing) if name in cells else _plain(getattr(thing, name)) for name in columns.values()]
        for thing in things
    )
    return table(", ".join(columns), rows)


def _plain(value: object) -> object:
    """A cell as it is: whole seconds, ranges, `-` for an empty text."""
    match value:
        case float():
            return whole(value)
        case Inclusive():
            return str(value)
        case tuple():
            return ranges(value) or "-"
        case "":
            return "-"
    return value


def table(columns: str, rows: Iterable[Sequence[object]]) -> Table:
    """A table without lines, whose cells are made harmless by `line_of`; `-` is a value that is not known."""
    found = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns.split(", "):
        least = _LEAST.get(column)
        found.add_column(column, justify="left" if column in _TEXTS else "right", overflow="fold", min_width=least)
    for row in rows:
        found.add_row(
            *("-" if cell is None else cell if isinstance(cell, Text) else line_of(str(cell)) for cell in row)
        )
    return found


def ranges(offsets: Sequence[object]) -> str:
    """Offset ranges of one cell, and how many more there are."""
    more = len(offsets) - MOST_RANGES
    return " ".join(map(str, offsets[:MOST_RANGES])) + (f" and {more} more: --json shows all" if more > 0 else "")


def whole(number: float | None) -> str | None:
    """A number without its fraction."""
    return None if number is None else f"{number:.0f}"


def in_two_lines(hashes: str) -> Text:
    """A hash range that breaks behind `lo-`."""
    return Text("-\n").join(map(line_of, hashes.split("-")))


def line_of(text: str) -> Text:
    """Names come from users: rich would read `[red]` in them as markup, and a terminal its escape sequences."""
    return Text(printable(text))
