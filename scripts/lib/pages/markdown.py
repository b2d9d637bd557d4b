"""Tables in Markdown."""

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table with a head."""
    names = list(head)
    return _row(names) + "|" + "---|" * len(names) + "\n" + "".join(map(_row, rows))


def _row(cells: Iterable[str]) -> str:
    """One row; a bar in a cell is escaped."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"
