"""Limits the next batch: five limits on owned ranges before the end of the log, one after the other.

    back pressure      the partition is at its cap of individual commits
    older partitions   a new partition waits for older ones
    poison             a lane is parked, or in a trial
    event time         lanes keep within a span of record time
    time budget        the quotas of the cost model

Each sets ceilings of ranges; none moves a position. Pure.

rule: individual-commit-cap; rule: growth-order; rule: trial-alone; rule: parked-until-released; rule: lane-lead
"""

from collections.abc import Iterator
from dataclasses import replace

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges
from coordinator.cost.batch_cost import LaneId
from coordinator.member.decision import Call, Decision, Seen
from coordinator.member.event_time import keep_lead
from coordinator.member.growing import older_partitions_first
from coordinator.member.pacing import ends_of
from coordinator.member.poison import without_parked
from coordinator.member.requests import Grant
from coordinator.member.state import Offsets, Reading, State
from coordinator.plan.back_pressure import held_back
from coordinator.plan.planning import OwnedRanges, with_positions
from coordinator.plan.poison import struck_ranges
from coordinator.reports.lane_lines import LEAD, OLDER, ROOM


def limit(state: State, seen: Seen, call: Call) -> Decision:
    """Limit the work on owned ranges; an equal look keeps the last result."""
    acquired = state.owning.acquired
    ends = ends_of(state.pace, state.log.bounds)
    looked_at = (acquired, state.log.bounds, ends, state.strikes.strikes)
    changing = state.owning.growths or state.strikes.strikes
    if state.reading.seen == looked_at and not changing:
        return Decision(state)
    work = with_positions(acquired.ownership, acquired.progress)
    roomy = held_back(work, acquired.whole, call.setup.settings.max_individual_commits)
    if roomy != work:  # a commit elsewhere may make room: acquire again each time
        state = replace(state, owning=replace(state.owning, stale=True))
    state, grown = older_partitions_first(state, roomy, seen)
    state, safe, trial_lane = without_parked(state, grown, ends, seen)
    state, near = keep_lead(state, safe, ends, call.setup.settings.max_lead_ms, seen)
    reading = replace(state.reading, trial_lane=trial_lane, ceilings=((ROOM, roomy), (OLDER, grown), (LEAD, near)))
    reading = _granted(replace(state, reading=reading), near, ends, seen, call)
    return Decision(replace(state, reading=replace(reading, seen=None if state.owning.stale else looked_at)))


def _granted(state: State, work: OwnedRanges, ends: Offsets, seen: Seen, call: Call) -> Reading:
    """The grant of the cost model. Ranges that were acquired or lost a strike since the last look begin anew in it."""
    before = state.reading
    owned, struck = owned_ranges(state.owning.acquired.ownership), struck_ranges(state.strikes.strikes)
    back = (*_lanes(difference(owned, before.owned)), *_lanes(difference(before.struck, struck)))
    granted = seen.of(Grant(work, ends, before.trial_lane, everything=call.limits.everything, anew=back))
    return replace(
        before, work=granted.work, quotas=granted.quotas, cutting=granted.cutting, owned=owned, struck=struck
    )


def _lanes(ranges: Ranges) -> Iterator[LaneId]:
    return ((tp, hashes) for tp, parts in ranges.items() for hashes in parts)
