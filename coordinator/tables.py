"""Views as tables for people; decides widths and words, no numbers."""

from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator.views import GroupView, LaneView, PartitionView

PIPED_WIDTH = 200
"""Columns where there is no terminal to ask: every row stays one line, for `grep` and `awk`."""

WIDE = 120
"""From this width on a hash range stands in one line."""

HALF_RANGE = 17
"""Columns of `lo-`, so that it is never broken elsewhere."""

MEMBER_ID = 10
"""Columns of a member's id, the very thing one looks for."""

_LEAST = {"HASHES": HALF_RANGE, "MEMBER": MEMBER_ID}
_TEXTS = ("MEMBER", "HOST", "TOPIC", "HASHES")


def stdout() -> Console:
    """Where tables go: as wide as the terminal, or wide enough for a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def print_group(group: GroupView, console: Console) -> None:
    """The group in a line, a table of its members, a table of its lanes."""
    console.print(Text(f"Group {group.group!r}: {group.state}"))
    if group.members:
        console.print(_members(group))
    console.print(_lanes(group, console.width >= WIDE) if group.partitions else Text("No positions yet."))


def _members(group: GroupView) -> Table:
    table = _table("MEMBER", "HOST", "PID", "CAPACITY", "LEASE")
    for member in group.members:
        said = [member.fields.get(name, "-") for name in ("host", "pid", "capacity")]
        _row(table, member.id, *said, f"{member.lease_left_ms / 1000:.1f} s" if member.lease_left_ms else "ended")
    return table


def _lanes(group: GroupView, in_one_line: bool) -> Table:
    table = _table("TOPIC", "PARTITION", "STABLE", "END", "LAG", "HASHES", "POSITION", "LANE LAG", "MEMBER")
    for partition in group.partitions:
        for i, lane in enumerate(partition.lanes):
            cells = _partition_cells(partition) if i == 0 else ("",) * 5
            _row(table, *cells, lane.hashes if in_one_line else lane.hashes.replace("-", "-\n"), *_lane_cells(lane))
    return table


def _partition_cells(p: PartitionView) -> tuple[str, ...]:
    return p.topic, str(p.partition), str(p.stable), _number(p.end), _number(p.lag)


def _lane_cells(lane: LaneView) -> tuple[str, ...]:
    return str(lane.position), _number(lane.lag), lane.member or "nobody"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        justify: Literal["left", "right"] = "left" if column in _TEXTS else "right"
        table.add_column(column, justify=justify, overflow="fold", min_width=_LEAST.get(column))
    return table


def _row(table: Table, *cells: str) -> None:
    """Names come from users: as text, since rich would read `[red]` in them as markup."""
    table.add_row(*map(Text, cells))
