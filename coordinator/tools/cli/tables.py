"""Views as tables for people; decides words, no numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console, Group
from rich.table import Table

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord, deferred_and_parked
from coordinator.redis.group_state import PINNED
from coordinator.redis.lane_lines import CostKind, behind_s
from coordinator.tools.cli.printing import counted, moment, print_lines, seconds
from coordinator.tools.cli.table_rows import (
    in_two_lines,
    line_of,
    print_rows,
    print_table,
    ranges,
    rows_of,
    stdout,
    table,
    whole,
)
from coordinator.tools.moving.importing import Place
from coordinator.tools.operations.gaps import Gap, PartitionGaps
from coordinator.tools.operations.key_owner import KeyOwner
from coordinator.tools.operations.reset_plan import PartitionReset
from coordinator.tools.operations.top_view import LaneAtWork, MemberActivity, TopView
from coordinator.tools.operations.views import GroupView, GrowthView, PartitionView
from coordinator.tools.operations.waiting_views import FailingKey, StrikeView

WIDE = 120
"""From this width on a hash range stands in one line."""

MOST_LIMITED = 20
"""Lanes that `describe` shows, ranges that no member reads, and keys that `redrive` shows."""

_MEMBER_FIELDS = "host", "driver_pid", "pid", "capacity", "application"
_NO_GAP = Gap("", 0, ())


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
        (p.topic, p.partition, p.stable, p.end, gap.hashes, ranges(gap.missing) or "nothing")
        for p in partitions
        for gap in p.gaps or (_NO_GAP,)
    )
    print_table("TOPIC, PARTITION, STABLE, END, HASHES, MISSING", rows)


def print_age(age_s: float | None, *, asked: bool) -> None:
    """The age of the oldest log end, unless Kafka was `asked` now."""
    if age_s is not None and not asked:
        print_lines(_age(age_s))


def _age(age_s: float) -> str:
    return f"End offsets are up to {age_s:.0f} s old: a member saw them. --bootstrap-server asks Kafka."


def print_owners(owners: Sequence[KeyOwner]) -> None:
    """A row for each partition that the key may be in."""
    print_rows(
        KeyOwner,
        owners,
        partition=lambda owner: _starred(owner.partition, owner.usual),
        member=lambda owner: owner.member or "nobody",
    )
    if any(o.usual for o in owners):
        print_lines("* the partition that Kafka's default partitioner chooses for this key")


def print_moves(moves: Sequence[PartitionReset], *, done: bool) -> None:
    """A row for each partition that a reset would move, or has moved if it is `done`."""
    columns = f"TOPIC, PARTITION, {'WAS, IS NOW' if done else 'STABLE, RESET TO'}, BY"
    rows = ((m.topic, m.partition, m.before, _starred(m.after, m.clipped), f"{m.after - m.before:+d}") for m in moves)
    print_table(columns, rows)
    _explain_star(moves)


def _starred(number: int, star: bool) -> str:
    return f"{number}{' *' if star else ''}"


def _explain_star(rows: Iterable[PartitionReset | Place]) -> None:
    if any(row.clipped for row in rows):
        print_lines("* the nearest offset that the log has")


def print_places(places: Sequence[Place]) -> None:
    """A row for each partition of an import."""
    rows = ((p.tp.topic, p.tp.partition, _starred(p.position, p.clipped), p.done_above) for p in places)
    print_table("TOPIC, PARTITION, BEGINS AT, DONE LATER", rows)
    _explain_star(places)


def print_limited(lanes: Sequence[LaneAtWork]) -> None:
    """The first of the lanes that a bound limits; nothing if there are none."""
    if lanes:
        are = "lane is" if len(lanes) == 1 else "lanes are"
        print_lines(f"{len(lanes)} {are} held back{only_first(lanes)}:")
        stdout().print(_activities(lanes[:MOST_LIMITED]))


def only_first(rows: Sequence[object]) -> str:
    """The end of a line above a table, if it shows only the first of its rows."""
    return f", the first {MOST_LIMITED}" if len(rows) > MOST_LIMITED else ""


def print_stuck(strikes: Sequence[Strike], records: Sequence[FailingRecord]) -> None:
    """A row for each failing key, and one for each strike."""
    keys = rows_of(FailingKey, map(FailingKey.of, records), next_try_ms=_next_try)
    struck = rows_of(StrikeView, map(StrikeView.of, strikes), at_ms=lambda s: moment(s.at_ms, "seconds"))
    shown = [rows for rows, found in ((keys, records), (struck, strikes)) if found]
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
    plan = f", generation {group.generation} {by}" if group.generation else ""
    plan = ", without order" if group.ordering == "none" else plan
    yield f"Group {group.group!r}: {group.state}{plan}"
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
        *place, application = (m.fields.get(name, "-") for name in _MEMBER_FIELDS)
        lease = seconds(m.lease_left_ms) if m.lease_left_ms else "ended"
        rows.append((m.member, m.state, *place, lease, application, _labels(m.fields)))
    return table(columns, rows)


def _labels(fields: Mapping[str, str]) -> str:
    labels = ((name.removeprefix("label."), value) for name, value in fields.items() if name.startswith("label."))
    return ",".join(f"{name}={value}" for name, value in sorted(labels)) or "-"


def _lanes(group: GroupView, in_one_line: bool) -> Table:
    columns = "TOPIC, PARTITION, STABLE, END, LAG, GAPS, HASHES, POSITION, LANE LAG, MEMBER"
    return table(columns, (row for partition in group.partitions for row in _lane_rows(partition, in_one_line)))


def _slices(group: GroupView) -> Table:
    columns = "TOPIC, PARTITION, STABLE, END, LAG, GAPS, OFFSETS, MEMBER, SINCE S"
    return table(columns, (row for partition in group.partitions for row in _slice_rows(partition)))


def _slice_rows(p: PartitionView) -> Iterator[Sequence[object]]:
    """A row for each member that holds offsets, or one row; the cells of the partition stand in the first."""
    cells: tuple[object, ...] = (p.topic, p.partition, p.stable, p.end, p.lag, p.gaps)
    held = [(ranges(s.offsets), s.member, whole(s.since_s)) for s in p.slices]
    for of_member in held or [("-", "-", None)]:
        yield *cells, *of_member
        cells = ("",) * len(cells)


def _lane_rows(p: PartitionView, in_one_line: bool) -> Iterator[Sequence[object]]:
    """A row for each lane; the cells of the partition stand in the first."""
    cells: tuple[object, ...] = (p.topic, p.partition, p.stable, p.end, p.lag, p.gaps)
    for lane in p.lanes:
        hashes = lane.hashes if in_one_line else in_two_lines(lane.hashes)
        yield *cells, hashes, lane.position, lane.lag, lane.member or "nobody"
        cells = ("",) * len(cells)


def _activities(lanes: Iterable[LaneAtWork]) -> Table:
    return rows_of(
        LaneAtWork,
        lanes,
        lag_s=lambda lane: behind_s(lane.lag_s, lane.lag_at_least),
        rate=lambda lane: f"{lane.rate:g}",
        record_ms=cost_text,
    )


def cost_text(lane: LaneAtWork) -> str:
    """The cost of a record in a lane; `~` marks one that was derived from the durations of batches."""
    return "-" if lane.cost is CostKind.UNKNOWN else f"{'~' * (lane.cost is CostKind.GUESSED)}{lane.record_ms:g}"


def _at_work(members: Iterable[MemberActivity]) -> Table:
    return rows_of(
        MemberActivity,
        members,
        batch_s=lambda m: None if m.ago_s is None else f"{m.batch_s:.1f}",
        rate=lambda m: None if m.ago_s is None else f"{m.rate:g}",
    )
