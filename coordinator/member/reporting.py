"""Shows the lanes of a member: once a second at most, and only changes (rule: reports-decide-nothing). Pure.

The first batch of a process is shown in any case. It may take long, and an earlier look found nothing to read.
"""

from dataclasses import replace

from coordinator.member.decision import LOOK_MS, Call, Decision, Seen
from coordinator.member.lane_report import Planned, slow_part
from coordinator.member.requests import DescribeLanes, ShowLanes
from coordinator.member.state import State


def show_lanes(state: State, seen: Seen, call: Call) -> Decision:
    """Show the planned lanes. Redis stores them only if they have changed."""
    shown, reading, now = state.shown, state.reading, seen.now_ms
    first = state.pace.planned_ms is None and state.pace.idle is None
    if not first and shown.looked_at_ms is not None and now - shown.looked_at_ms < LOOK_MS:
        return Decision(state)
    shown = replace(shown, looked_at_ms=now)
    same = reading.quotas == shown.quotas and shown.nonce == state.life.nonce
    if same and not any(line.lag for line in shown.lanes.lines):
        return Decision(replace(state, shown=shown))  # an idle query may have very many lanes
    lanes = seen.of(DescribeLanes(_planned(state), shown.ended))
    slow = round(100 * slow_part(reading.quotas, call.setup.budget))
    request = ShowLanes(lanes.lines, slow)
    if (state.life.nonce, request) != (shown.nonce, shown.request) and seen.of(request):
        shown = replace(shown, nonce=state.life.nonce, request=request)
    return Decision(replace(state, shown=replace(shown, quotas=reading.quotas, lanes=lanes, slow_percent=slow)))


def _planned(state: State) -> Planned:
    r = state.reading
    bounds = r.cutting.bounds if r.cutting else None
    return Planned(r.quotas, r.until, state.strikes.strikes, bounds or {}, r.ceilings)
