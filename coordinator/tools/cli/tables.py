"""Views as tables for people; decides widths and words, no numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord, deferred_and_parked
from coordinator.redis.group_state import PINNED
from coordinator.redis.lane_lines import CostKind, behind_s
from coordinator.tools.cli.printing import counted, moment, print_lines, printable, seconds
from coordinator.tools.fields import Inclusive, columns_of
from coordinator.tools.moving.exporting import Exported
from coordinator.tools.moving.importing import Place
from coordinator.tools.operations.gaps import Gap, PartitionGaps
from coordinator.tools.operations.group_list import GroupLine
from coordinator.tools.operations.key_owner import KeyOwner
from coordinator.tools.operations.redrive_view import LateKey
from coordinator.tools.operations.reset_plan import PartitionReset
from coordinator.tools.operations.top_view import LaneAtWork, MemberActivity, TopView
from coordinator.tools.operations.views import GroupView, GrowthView, PartitionView
from coordinator.tools.operations.waiting_views import FailingKey, StrikeView

T = TypeVar("T")

PIPED_WIDTH = 200
"""Columns where there is no terminal: every row stays one line, for `grep` and `awk`."""

WIDE = 120
"""From this width on a hash range stands in one line."""

MOST_RANGES = 1_000
"""Offset ranges that a cell shows: to draw them takes longer than to find them."""

MOST_LIMITED = 20
"""Lanes that `describe` shows, ranges that no member reads, and keys that `redrive` shows."""

_LEAST = {"HASHES": 17, "MEMBER": 10}  # a range breaks only behind `lo-`, and a member's id never
_TEXTS = {"MEMBER", "HOST", "APPLICATION", "LABELS", "STATE", "TOPIC", "HASHES", "MISSING", "KEY HASH", "DONE ABOVE"}
_TEXTS |= {"GROUP", "AT", "SLOWEST LANE", "WHY", "OFFSETS", "FAULT", "BATCH"}
_NO_GAP = Gap("", 0, ())


def stdout() -> Console:
    """Where tables go: as wide as the terminal, or wide enough for a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def print_group(group: GroupView, console: Console) -> None:
    """The group in some lines, a table of its members, a table of its lanes."""
    console.print(*map(line_of, _about(group)), sep="\n")
    if group.members:
        console.print(_members(group))
    of_partitions = _slices(group) if group.ordering == "none" else _lanes(group, console.width >= WIDE)
    console.print(of_partitions if group.partitions else line_of("No positions yet."))


def print_gaps(partitions: Sequence[PartitionGaps]) -> None:
    """A row for each gap, and one for a partition without any."""
    rows = (
        (p.topic, p.partition, p.stable, p.end, gap.hashes, _ranges(gap.missing) or "nothing")
        for p in partitions
        for gap in p.gaps or (_NO_GAP,)
    )
    stdout().print(_table("TOPIC, PARTITION, STABLE, END, HASHES, MISSING", rows))


def print_groups(lines: Sequence[GroupLine]) -> None:
    """A row for each group."""
    stdout().print(_rows_of(GroupLine, lines) if lines else "No groups.")


def print_age(age_s: float | None, *, asked: bool) -> None:
    """The age of the oldest log end, unless Kafka was `asked` now."""
    if age_s is not None and not asked:
        print_lines(_age(age_s))


def _age(age_s: float) -> str:
    return f"Log ends are up to {age_s:.0f} s old: a member saw them. --bootstrap-server asks Kafka."


def print_owners(owners: Sequence[KeyOwner]) -> None:
    """A row for each partition that the key may be in."""
    columns = "TOPIC, PARTITION, KEY HASH, HASHES, POSITION, DONE ABOVE, MEMBER, HOST"
    rows = ((o.topic, _starred(o.partition, o.usual), o.key_hash, o.hashes, o.position, *_of_owner(o)) for o in owners)
    stdout().print(_table(columns, rows))
    if any(o.usual for o in owners):
        print_lines("* the partition that Kafka's default partitioner chooses for this key")


def _of_owner(o: KeyOwner) -> Sequence[str]:
    return _ranges(o.done_above) or "-", o.member or "nobody", o.host or "-"


def print_moves(moves: Sequence[PartitionReset], *, done: bool) -> None:
    """A row for each partition that a reset would move, or has moved if it is `done`."""
    columns = f"TOPIC, PARTITION, {'WAS, IS NOW' if done else 'STABLE, RESET TO'}, BY"
    rows = ((m.topic, m.partition, m.before, _starred(m.after, m.clipped), f"{m.after - m.before:+d}") for m in moves)
    stdout().print(_table(columns, rows))
    _explain_star(moves)


def _explain_star(rows: Iterable[PartitionReset | Place]) -> None:
    if any(row.clipped for row in rows):
        print_lines("* the nearest offset that the log has")


def print_places(places: Sequence[Place]) -> None:
    """A row for each partition of an import."""
    rows = ((p.tp.topic, p.tp.partition, _starred(p.position, p.clipped), p.done_above) for p in places)
    stdout().print(_table("TOPIC, PARTITION, BEGINS AT, DONE LATER", rows))
    _explain_star(places)


def print_exported(offsets: Sequence[Exported]) -> None:
    """A row for each partition of an export."""
    print_rows(Exported, offsets)


def print_limited(lanes: Sequence[LaneAtWork]) -> None:
    """The first of the lanes that a bound limits; nothing if there are none."""
    if lanes:
        more = f", the first {MOST_LIMITED}" if len(lanes) > MOST_LIMITED else ""
        print_lines(f"{len(lanes)} {'lane is' if len(lanes) == 1 else 'lanes are'} held back{more}:")
        stdout().print(_activities(lanes[:MOST_LIMITED]))


def print_late_keys(keys: Sequence[LateKey]) -> None:
    """A row for each of the first keys that a redrive cannot keep in order."""
    stdout().print(_rows_of(LateKey, keys[:MOST_LIMITED]))


def print_stuck(strikes: Sequence[Strike], records: Sequence[FailingRecord]) -> None:
    """A row for each failing key, and one for each strike."""
    keys = _rows_of(FailingKey, map(FailingKey.of, records), next_try_ms=_next_try)
    ranges = _rows_of(StrikeView, map(StrikeView.of, strikes), at_ms=lambda s: moment(s.at_ms, "seconds"))
    shown = [rows for rows, found in ((keys, records), (ranges, strikes)) if found]
    for place, rows in enumerate(shown):
        stdout().print(*([""] if place else []), rows, sep="\n")
    if not shown:
        print_lines("Nothing is stuck.")


def print_failing_count(records: Sequence[FailingRecord]) -> None:
    """A line with the numbers of failing keys, if there are any."""
    if records:
        print_lines(f"Failing keys: {_counts(*deferred_and_parked(records))}")


def _counts(deferred: int, parked: int) -> str:
    return f"{deferred} deferred, {parked} parked, see coop-kafka stuck"


def _next_try(key: FailingKey) -> str:
    return "after a release" if key.next_try_ms is None else moment(key.next_try_ms, "seconds")


def lag_text(seen: TopView) -> str:
    """The lag of a group in records as its lanes, and in offsets as its partitions."""
    offsets = "unknown" if seen.lag is None else f"{seen.lag:,} offsets"
    return f"{sum(lane.lag for lane in seen.lanes):,} records, {offsets}" if seen.lanes else offsets


def activity(seen: TopView, most_lanes: int, *, asked: bool) -> Group:
    """A line, a table of members, a table of the first lanes; the age of log ends unless Kafka was `asked`."""
    rate = sum(m.rate for m in seen.members if m.ago_s is not None and m.state == "working")
    about = f"Group {seen.group!r}: {seen.state}, {rate:.0f} records/s in the last batches of its members"
    if seen.deferred_keys or seen.parked_keys:
        about += f"; failing keys: {_counts(seen.deferred_keys, seen.parked_keys)}"
    if seen.lag is not None:
        about += f"; lag {lag_text(seen)}"
    age = _age(seen.end_age_s) if seen.end_age_s is not None and not asked else ""
    more = len(seen.lanes) - most_lanes
    rest = line_of(f"and {counted(more, 'lane')} more" if more > 0 else "")
    limit = next((f"{m.member}: {m.limit}." for m in seen.members if m.limit), "")
    tables = _at_work(seen.members), _activities(seen.lanes[:most_lanes])
    return Group(line_of(about), *tables, rest, *map(line_of, filter(None, (limit, age))))


def _about(group: GroupView) -> Iterator[str]:
    by = "of pinned members" if group.assignor == PINNED else f"by {group.assignor}"
    made = f", generation {group.generation} {by}" if group.generation else ""
    made = ", without order" if group.ordering == "none" else made
    yield f"Group {group.group!r}: {group.state}{made}"
    if group.recovering_ms:
        yield f"Recovers from a loss of state, {seconds(group.recovering_ms)} left"
    if group.reset:
        yield f"Reset epoch {group.reset}"
    if group.policy:
        yield "Policy: " + ", ".join(f"{name}={value}" for name, value in sorted(group.policy.items()))
    if group.unread:
        more = f", and {len(group.unread) - MOST_LIMITED} more" if len(group.unread) > MOST_LIMITED else ""
        yield f"No pinned member reads: {', '.join(group.unread[:MOST_LIMITED])}{more}"
    yield from (_growth(growth) for growth in group.growths if growth.waiting or not growth.ordered)


def _growth(growth: GrowthView) -> str:
    grew = f"Topic {growth.topic!r} grew from {growth.old} to {growth.new} partitions"
    facts = [] if growth.ordered else [growth.promise]
    if growth.waiting and growth.grace_left_ms:
        facts.append(f"new partitions wait; grace left: {seconds(growth.grace_left_ms)}")
    elif growth.waiting:
        facts.append("new partitions wait for the older ones")
    return f"{grew}: {'; '.join(facts)}"


def _members(group: GroupView) -> Table:
    columns = "MEMBER, STATE, HOST, DRIVER PID, READER PID, CAPACITY, LEASE, APPLICATION, LABELS"
    rows = []
    for m in group.members:
        *place, application = (m.fields.get(x, "-") for x in ("host", "driver_pid", "pid", "capacity", "application"))
        lease = seconds(m.lease_left_ms) if m.lease_left_ms else "ended"
        rows.append((m.member, m.state, *place, lease, application, _labels(m.fields)))
    return _table(columns, rows)


def _labels(fields: Mapping[str, str]) -> str:
    labels = ((name.removeprefix("label."), value) for name, value in fields.items() if name.startswith("label."))
    return ",".join(f"{name}={value}" for name, value in sorted(labels)) or "-"


def _lanes(group: GroupView, in_one_line: bool) -> Table:
    columns = "TOPIC, PARTITION, STABLE, END, LAG, GAPS, HASHES, POSITION, LANE LAG, MEMBER"
    return _table(columns, (row for partition in group.partitions for row in _lane_rows(partition, in_one_line)))


def _slices(group: GroupView) -> Table:
    columns = "TOPIC, PARTITION, STABLE, END, LAG, GAPS, OFFSETS, MEMBER, SINCE S"
    return _table(columns, (row for partition in group.partitions for row in _slice_rows(partition)))


def _slice_rows(p: PartitionView) -> Iterator[Sequence[object]]:
    """A row for each member that holds offsets, or one row; the cells of the partition stand in the first."""
    cells: tuple[object, ...] = (p.topic, p.partition, p.stable, p.end, p.lag, p.gaps)
    held = [(_ranges(s.offsets), s.member, _whole(s.since_s)) for s in p.slices]
    for of_member in held or [("-", "-", None)]:
        yield *cells, *of_member
        cells = ("",) * len(cells)


def _lane_rows(p: PartitionView, in_one_line: bool) -> Iterator[Sequence[object]]:
    """A row for each lane; the cells of the partition stand in the first."""
    cells: tuple[object, ...] = (p.topic, p.partition, p.stable, p.end, p.lag, p.gaps)
    for lane in p.lanes:
        hashes = lane.hashes if in_one_line else Text("-\n").join(map(Text, lane.hashes.split("-")))
        yield *cells, hashes, lane.position, lane.lag, lane.member or "nobody"
        cells = ("",) * len(cells)


def _activities(lanes: Iterable[LaneAtWork]) -> Table:
    return _rows_of(
        LaneAtWork,
        lanes,
        lag_s=lambda lane: behind_s(lane.lag_s, lane.lag_at_least),
        rate=lambda lane: f"{lane.rate:g}",
        record_ms=_cost,
    )


def _cost(lane: LaneAtWork) -> str:
    return "-" if lane.cost is CostKind.UNKNOWN else f"{'~' * (lane.cost is CostKind.GUESSED)}{lane.record_ms:g}"


def _at_work(members: Iterable[MemberActivity]) -> Table:
    return _rows_of(
        MemberActivity,
        members,
        batch_s=lambda m: None if m.ago_s is None else f"{m.batch_s:.1f}",
        rate=lambda m: None if m.ago_s is None else f"{m.rate:g}",
    )


def _ranges(offsets: Sequence[object]) -> str:
    """Offset ranges of one cell, and how many more there are."""
    more = len(offsets) - MOST_RANGES
    return " ".join(map(str, offsets[:MOST_RANGES])) + (f" and {more} more: --json shows all" if more > 0 else "")


def _whole(number: float | None) -> str | None:
    return None if number is None else f"{number:.0f}"


def _starred(number: int, star: bool) -> str:
    return f"{number}{' *' if star else ''}"


def _rows_of(shown: type[T], things: Iterable[T], **cells: Callable[[T], object]) -> Table:
    """A table of the columns that a class names; `cells` are texts of single fields."""
    columns = columns_of(shown)
    rows = (
        [cells[name](x) if name in cells else _plain(getattr(x, name)) for name in columns.values()] for x in things
    )
    return _table(", ".join(columns), rows)


def _plain(value: object) -> object:
    """A cell as it is: whole seconds, ranges, `-` for an empty text."""
    match value:
        case float():
            return _whole(value)
        case Inclusive():
            return str(value)
        case tuple():
            return _ranges(value) or "-"
        case "":
            return "-"
    return value


def print_rows(shown: type[T], things: Iterable[T]) -> None:
    """A table of the columns that a class names."""
    stdout().print(_rows_of(shown, things))


def print_table(columns: str, rows: Iterable[Sequence[object]]) -> None:
    """A table of these columns."""
    stdout().print(_table(columns, rows))


def _table(columns: str, rows: Iterable[Sequence[object]]) -> Table:
    """A table without lines, whose cells are made harmless by `line_of`; `-` is a value that is not known."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns.split(", "):
        least = _LEAST.get(column)
        table.add_column(column, justify="left" if column in _TEXTS else "right", overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*("-" if x is None else x if isinstance(x, Text) else line_of(str(x)) for x in row))
    return table


def line_of(text: str) -> Text:
    """Names come from users: rich would read `[red]` in them as markup, and a terminal its escape sequences."""
    return Text(printable(text))
