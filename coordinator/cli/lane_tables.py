"""Tables of lanes, members at work and strikes for people; decides widths and words, no numbers."""

from collections.abc import Iterable, Sequence

from rich.console import Console, Group
from rich.table import Table

from coordinator.cli.printing import counted, moment
from coordinator.cli.tables import add_row, line_of, table_of
from coordinator.operations.top_view import LaneActivity, MemberActivity, TopView
from coordinator.plan.poison import Strike

MOST_LIMITED = 20
"""Lanes that `describe` shows."""


def activity(seen: TopView, most_lanes: int) -> Group:
    """A line, a table of members, a table of the first lanes."""
    rate = sum(m.rate for m in seen.members if m.ago_s is not None and m.state == "working")
    about = f"Group {seen.group!r}: {seen.state}, {rate:.0f} records/s in the last batches of its members"
    more = len(seen.lanes) - most_lanes
    told = line_of(f"and {counted(more, 'lane')} more" if more > 0 else "")
    return Group(line_of(about), _members(seen.members), lanes_table(seen.lanes[:most_lanes]), told)


def lanes_table(lanes: Iterable[LaneActivity]) -> Table:
    """A row for each lane."""
    made = table_of(
        "TOPIC", "PARTITION", "HASHES", "POSITION", "LAG", "LAG S", "RATE", "MS/RECORD", "QUOTA", "WHY", "MEMBER"
    )
    for x in lanes:
        behind = "-" if x.lag_s is None else f"{'>' if x.lag_at_least else ''}{x.lag_s}"
        cost = "-" if x.cost == "unknown" else f"{'~' if x.cost == 'guessed' else ''}{x.record_ms:g}"
        numbers = (str(x.position), str(x.lag), behind, f"{x.rate:g}", cost, str(x.quota))
        add_row(made, x.topic, str(x.partition), x.hashes, *numbers, x.why, x.member)
    return made


def print_limited(lanes: Sequence[LaneActivity], console: Console) -> None:
    """The first of the lanes that are held back; nothing if there are none."""
    if lanes:
        more = f", the first {MOST_LIMITED}" if len(lanes) > MOST_LIMITED else ""
        are = "lane is" if len(lanes) == 1 else "lanes are"
        console.print(line_of(f"{len(lanes)} {are} held back{more}:"))
        console.print(lanes_table(lanes[:MOST_LIMITED]))


def print_strikes(strikes: Sequence[Strike], console: Console) -> None:
    """A row for each strike."""
    if not strikes:
        console.print(line_of("Nothing is parked."))
        return
    made = table_of("TOPIC", "PARTITION", "HASHES", "OFFSET", "STRIKES", "STATE", "AT", "MEMBER")
    for s in strikes:
        at = moment(s.at_ms, "seconds")
        state = "parked" if s.parked else "tried alone"
        add_row(made, s.tp.topic, str(s.tp.partition), str(s.hashes), str(s.offset), str(s.count), state, at, s.member)
    console.print(made)


def _members(members: Iterable[MemberActivity]) -> Table:
    made = table_of("MEMBER", "STATE", "LANES", "SLOW %", "BATCH S", "RATE", "AGO S", "SLOWEST LANE")
    for m in members:
        ago = "-" if m.ago_s is None else f"{m.ago_s:.0f}"
        numbers = (str(m.lanes), str(m.slow_percent), f"{m.seconds:.1f}", f"{m.rate:g}", ago)
        add_row(made, m.id, m.state, *numbers, m.slowest)
    return made
