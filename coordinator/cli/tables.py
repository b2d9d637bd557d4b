"""Views as tables for people; decides widths and words, no numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator.cli.printing import moment, printable, seconds
from coordinator.group_state import Event
from coordinator.operations.gaps import PartitionGaps
from coordinator.operations.key_owner import KeyOwner
from coordinator.operations.reset_plan import Move
from coordinator.operations.views import GroupView, GrowthView, LaneView, PartitionView

PIPED_WIDTH = 200
"""Columns where there is no terminal to ask: every row stays one line, for `grep` and `awk`."""

WIDE = 120
"""From this width on a hash range stands in one line."""

HALF_RANGE = 17
"""Columns of `lo-`, so that it is never broken elsewhere."""

MEMBER_ID = 10
"""Columns of a member's id, the very thing one looks for."""

MOST_RANGES = 1_000
"""Offset ranges that a cell shows: drawing takes longer than finding them, and nobody reads more."""

_LEAST = {"HASHES": HALF_RANGE, "MEMBER": MEMBER_ID}
_TEXTS = {"MEMBER", "HOST", "APPLICATION", "LABELS", "STATE", "TOPIC", "HASHES", "MISSING", "KEY HASH", "DONE ABOVE"}
_TEXTS |= {"AT", "SLOWEST LANE", "WHY"}


def stdout() -> Console:
    """Where tables go: as wide as the terminal, or wide enough for a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def print_group(group: GroupView, console: Console) -> None:
    """The group in some lines, a table of its members, a table of its lanes."""
    for line in _about(group):
        console.print(line_of(line))
    if group.members:
        console.print(_members(group))
    console.print(_lanes(group, console.width >= WIDE) if group.partitions else line_of("No positions yet."))


def print_gaps(partitions: Sequence[PartitionGaps], console: Console) -> None:
    """A row for each gap, and one for a partition without any."""
    table = table_of("TOPIC", "PARTITION", "STABLE", "HASHES", "MISSING")
    for p in partitions:
        for gap in p.gaps:
            add_row(table, p.topic, str(p.partition), str(p.stable), gap.hashes, _ranges(gap.missing))
        if not p.gaps:
            add_row(table, p.topic, str(p.partition), str(p.stable), "", "nothing")
    console.print(table)


def print_owners(owners: Sequence[KeyOwner], console: Console) -> None:
    """A row for each partition that the key may be in."""
    table = table_of("TOPIC", "PARTITION", "KEY HASH", "HASHES", "POSITION", "DONE ABOVE", "MEMBER", "HOST")
    for o in owners:
        cells = (o.key_hash, o.hashes, str(o.position), _ranges(o.done_above) or "-", o.member or "nobody")
        add_row(table, o.topic, f"{o.partition}{' *' if o.usual else ''}", *cells, o.host or "-")
    console.print(table)
    if any(o.usual for o in owners):
        console.print(line_of("* the partition that Kafka's default partitioner chooses for this key"))


def _ranges(offsets: Sequence[str]) -> str:
    """Offset ranges of one cell, and how many more there are."""
    more = len(offsets) - MOST_RANGES
    return " ".join(offsets[:MOST_RANGES]) + (f" and {more} more: --json shows all" if more > 0 else "")


def print_events(events: Iterable[Event], console: Console) -> None:
    """A line for each event: when, what, who, why, and the key ranges that changed hands."""
    for e in events:
        said = f"{e.why}: {e.ranges}" if e.why and e.ranges else e.why or e.ranges
        console.print(line_of(f"{moment(e.at_ms)} {e.kind:9} {e.member or '-':10} {said}"), soft_wrap=True)


def print_moves(moves: Sequence[Move], console: Console, *, done: bool) -> None:
    """A row for each partition that a reset would move, or has moved if it is `done`."""
    table = table_of("TOPIC", "PARTITION", *(("WAS", "IS NOW") if done else ("STABLE", "RESET TO")), "BY")
    for m in moves:
        add_row(table, m.topic, str(m.partition), str(m.before), f"{m.after}{' *' if m.clipped else ''}", _by(m))
    console.print(table)
    if any(m.clipped for m in moves):
        console.print(line_of("* the nearest offset that the log has"))


def _by(move: Move) -> str:
    return f"{move.after - move.before:+d}"


def print_policy(fields: Mapping[str, str], console: Console) -> None:
    """A line for each policy."""
    for name, value in fields.items():
        console.print(line_of(f"{name}={value}"), soft_wrap=True)


def _about(group: GroupView) -> list[str]:
    made = f", generation {group.generation} by {group.assignor}" if group.generation else ""
    told = [f"Group {group.group!r}: {group.state}{made}"]
    if group.recovering_ms:
        told.append(f"Recovering from a loss of state; ends in {seconds(group.recovering_ms)}")
    if group.reset:
        told.append(f"Reset epoch {group.reset}")
    if group.policy:
        told.append("Policy: " + ", ".join(f"{name}={value}" for name, value in sorted(group.policy.items())))
    told += [_growth(growth) for growth in group.growths if growth.waiting or not growth.ordered]
    return told


def _growth(growth: GrowthView) -> str:
    grew = f"Topic {growth.topic!r} grew from {growth.old} to {growth.new} partitions: "
    if not growth.ordered:
        return grew + "key order across it is not guaranteed"
    if growth.grace_left_ms:
        return grew + f"new partitions wait; grace left: {seconds(growth.grace_left_ms)}"
    return grew + "new partitions wait for the older ones"


def _members(group: GroupView) -> Table:
    of_driver = ("HOST", "DRIVER PID", "READER PID", "CAPACITY")
    table = table_of("MEMBER", "STATE", *of_driver, "LEASE", "APPLICATION", "LABELS")
    for member in group.members:
        said = [member.fields.get(name, "-") for name in ("host", "driver_pid", "pid", "capacity", "application")]
        left = seconds(member.lease_left_ms) if member.lease_left_ms else "ended"
        add_row(table, member.id, member.state, *said[:-1], left, said[-1], _labels(member.fields))
    return table


def _labels(fields: Mapping[str, str]) -> str:
    labels = ((name.removeprefix("label."), value) for name, value in fields.items() if name.startswith("label."))
    return ",".join(f"{name}={value}" for name, value in sorted(labels)) or "-"


def _lanes(group: GroupView, in_one_line: bool) -> Table:
    table = table_of("TOPIC", "PARTITION", "STABLE", "END", "LAG", "GAPS", "HASHES", "POSITION", "LANE LAG", "MEMBER")
    for partition in group.partitions:
        for i, lane in enumerate(partition.lanes):
            cells = _partition_cells(partition) if i == 0 else ("",) * 6
            hashes = line_of(lane.hashes) if in_one_line else Text("-\n").join(map(line_of, lane.hashes.split("-")))
            add_row(table, *cells, hashes, *_lane_cells(lane))
    return table


def _partition_cells(p: PartitionView) -> tuple[str, ...]:
    return p.topic, str(p.partition), str(p.stable), _number(p.end), _number(p.lag), str(p.gaps)


def _lane_cells(lane: LaneView) -> tuple[str, ...]:
    return str(lane.position), _number(lane.lag), lane.member or "nobody"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def table_of(*columns: str) -> Table:
    """A table without lines; which columns are text is decided here."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        justify: Literal["left", "right"] = "left" if column in _TEXTS else "right"
        table.add_column(column, justify=justify, overflow="fold", min_width=_LEAST.get(column))
    return table


def add_row(table: Table, *cells: str | Text) -> None:
    """A row; texts are made harmless by `line_of`."""
    table.add_row(*(cell if isinstance(cell, Text) else line_of(cell) for cell in cells))


def line_of(text: str) -> Text:
    """Names come from users: rich would read `[red]` in them as markup, and a terminal its escape sequences."""
    return Text(printable(text))
