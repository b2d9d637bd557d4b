"""When a member shows its lanes: once a second at most, and only news (rule: reports-decide-nothing). Pure."""

from dataclasses import replace

from coordinator.member.decision import Call, Decision, Seen
from coordinator.member.requests import DescribeLanes, ShowLanes
from coordinator.member.state import Reading, State
from coordinator.reports.lane_report import Planned, slow_part

EVERY_MS = 1_000


def show_lanes(state: State, seen: Seen, call: Call) -> Decision:
    """Show the lanes as they are planned; Redis is asked to store them only if they have changed."""
    shown, reading, now = state.shown, state.reading, seen.now_ms
    if shown.looked_at_ms is not None and now - shown.looked_at_ms < EVERY_MS:
        return Decision(state)
    shown = replace(shown, looked_at_ms=now)
    same = reading.quotas == shown.quotas and shown.lines[2:] == (state.life.nonce,)
    if same and not any(line.lag for line in shown.lanes.lines):
        return Decision(replace(state, shown=shown))  # an idle query may have very many lanes
    lanes = seen.of(DescribeLanes(_planned(state), shown.ended))
    slow = round(100 * slow_part(reading.quotas, call.setup.budget))
    lines = (lanes.lines, slow, state.life.nonce)
    if lines != shown.lines and seen.of(ShowLanes(lanes.lines, slow)):
        shown = replace(shown, lines=lines)
    return Decision(replace(state, shown=replace(shown, quotas=reading.quotas, lanes=lanes, slow_percent=slow)))


def _planned(state: State) -> Planned:
    reading: Reading = state.reading
    bounds = reading.cutting.bounds if reading.cutting else None
    strikes = state.strikes.strikes
    return Planned(reading.quotas, reading.until, strikes, bounds or (), reading.trial_lane, reading.ceilings)
