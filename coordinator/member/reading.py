"""How far what is owned may be read in the next batch: five limits before the end of the log, one after the other.

    back pressure      the partition holds all the individual commits it may
    older partitions   a new partition waits for older ones
    poison             a record may be poison
    event time         lanes keep within a span of record time
    time budget        what the cost model grants

Each gives ranges a ceiling; none moves a position. Pure.

rule: individual-commit-cap; rule: growth-order; rule: trial-alone; rule: parked-until-released; rule: lane-lead
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
from coordinator.replies import Acquired
from coordinator.reports.lane_lines import LEAD, OLDER, ROOM


@dataclass(frozen=True, slots=True)
class Limited:
    """The work on the way through the limits."""

    state: State
    work: OwnedRanges
    ends: Offsets
    trial_lane: LaneId | None = None
    ceilings: tuple[tuple[str, OwnedRanges], ...] = ()

    def under(self, name: str, work: OwnedRanges) -> "Limited":
        """The work under a ceiling that people may want to know the reason of."""
        return replace(self, work=work, ceilings=(*self.ceilings, (name, work)))


def limit(state: State, seen: Seen, call: Call) -> Decision:
    """The work on what is owned, as far as the five limits let it be read; the same where nothing has changed."""
    acquired = state.owning.acquired
    ends = ends_of(state.pace, state.log.bounds)
    looked_at = (acquired, state.log.bounds, ends, state.strikes.strikes)
    changing = state.owning.growths or state.strikes.strikes
    if state.reading.seen == looked_at and not changing:
        return Decision(state)
    limited = Limited(state, with_positions(acquired.ownership, acquired.progress), ends)
    for each in (_back_pressure, _older_partitions, _poison, _event_time):
        limited = each(limited, acquired, seen, call)
    return Decision(_granted(limited, acquired, looked_at, seen, call))


def _back_pressure(limited: Limited, acquired: Acquired, seen: Seen, call: Call) -> Limited:
    less = held_back(limited.work, acquired.whole, call.setup.settings.max_individual_commits)
    state = limited.state
    if less != limited.work:  # a commit elsewhere may make room: acquire again each time
        state = replace(state, owning=replace(state.owning, stale=True))
    return replace(limited, state=state).under(ROOM, less)


def _older_partitions(limited: Limited, acquired: Acquired, seen: Seen, call: Call) -> Limited:
    state, work = older_partitions_first(limited.state, limited.work, seen)
    return replace(limited, state=state).under(OLDER, work)


def _poison(limited: Limited, acquired: Acquired, seen: Seen, call: Call) -> Limited:
    state, work, trial_lane = without_parked(limited.state, limited.work, limited.ends, seen)
    return replace(limited, state=state, work=work, trial_lane=trial_lane)


def _event_time(limited: Limited, acquired: Acquired, seen: Seen, call: Call) -> Limited:
    state, work = keep_lead(limited.state, limited.work, limited.ends, call.setup.settings.max_lead_ms, seen)
    return replace(limited, state=state).under(LEAD, work)


def _granted(limited: Limited, acquired: Acquired, looked_at: tuple[object, ...], seen: Seen, call: Call) -> State:
    """What the cost model grants; ranges that were not ours at the last look, or were struck, begin anew in it."""
    state, before = limited.state, limited.state.reading
    owned, struck = owned_ranges(acquired.ownership), struck_ranges(state.strikes.strikes)
    back = (*_lanes(difference(owned, before.owned)), *_lanes(difference(before.struck, struck)))
    grant = Grant(limited.work, limited.ends, limited.trial_lane, everything=call.limits.everything, anew=back)
    granted = seen.of(grant)
    reading = Reading(
        None if state.owning.stale else looked_at,
        granted.work,
        limited.trial_lane,
        limited.ceilings,
        granted.quotas,
        granted.cutting,
        owned,
        struck,
        first_times=before.first_times,
    )
    return replace(state, reading=reading)


def _lanes(ranges: Ranges) -> Iterator[LaneId]:
    return ((tp, hashes) for tp, parts in ranges.items() for hashes in parts)
