"""Draws the plane of a partition in characters: key hash upwards, offset to the right, a row for each lane. Pure.

    █████████████///////▒▒▒▒······      done, a gap, read now, not read yet
    █████X··············////······      a parked key at its record; `o` is one that is tried again

With more lanes than rows, neighbours share a row, which shows the one furthest behind. With fewer, wide lanes get more.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from coordinator.tools.operations.plane import Plane, PlaneLane

DONE, GAP, WORKING, UNREAD, TRIED, PARKED = "█/▒·oX"
LEGEND = f"{DONE} done  {GAP} gap  {WORKING} read now  {UNREAD} not read yet  {TRIED} failing key  {PARKED} parked key"

Run = tuple[str, int | None]
"""Equal characters in a row, and the place of their owner among `Plane.members`; None where nothing is done."""


def rows(plane: Plane, columns: int, height: int) -> list[list[Run]]:
    """The rows, from the highest hash down; each is `columns` wide. There are at most `height`."""
    shown = _spread(plane.lanes, height)
    return [_runs(_row(plane, lanes, columns)) for lanes in reversed(shown)]


def _spread(lanes: Sequence[PlaneLane], height: int) -> list[Sequence[PlaneLane]]:
    """The lanes of each row, from the lowest hash up."""
    if len(lanes) >= height:
        return [lanes[n * len(lanes) // height : (n + 1) * len(lanes) // height] for n in range(height)]
    spare, found, taken = height - len(lanes), list[Sequence[PlaneLane]](), 0.0
    for lane in lanes:
        before, taken = round(taken * spare), taken + lane.segment.hashes.share
        found += [[lane]] * (1 + round(taken * spare) - before)
    return found


def _row(plane: Plane, lanes: Sequence[PlaneLane], columns: int) -> Iterator[Run]:
    lane = min(lanes, key=lambda lane: lane.segment.position)
    s, members = lane.segment, plane.members
    owner = members.index(lane.member) if lane.member else None
    step = max(1, plane.end - plane.start) / columns
    marks = {
        min(columns - 1, max(0, int((r.offset - plane.start) / step))): PARKED if r.parked else TRIED
        for r in plane.failing
        if any(r.key_hash in each.segment.hashes for each in lanes)
    }
    begun = [at_work.offsets for at_work in plane.working_in(lane)]
    for column in range(columns):
        at = int(plane.start + (column + 0.5) * step)
        done = at < s.position or any(r.start <= at < r.until for r in s.ics)
        working = not done and any(r.start <= at < r.until for r in begun)
        unread = UNREAD if at >= plane.furthest else GAP
        character = DONE if done else WORKING if working else unread
        yield marks.get(column, character), owner if done or working else None


def _runs(cells: Iterator[Run]) -> list[Run]:
    return [(character * len([*same]), owner) for (character, owner), same in groupby(cells)]
