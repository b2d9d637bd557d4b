"""Keeps lanes within `max.lane.lead` of each other, by the record times in Kafka. Pure.

Reads nothing without the option, or if there is nothing to read.
"""

from dataclasses import replace

from coordinator.member.decision import Call, Seen
from coordinator.member.requests import ReadFirstTimes, ResolveOffsets
from coordinator.member.state import State
from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.plan.planning import OwnedRanges
from coordinator.values.offset_spec import AtTimestamps, NoMatch
from coordinator.values.subscription import OffsetByPartition


def keep_lead(
    state: State, work: OwnedRanges, ends: OffsetByPartition, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    """`work` with no lane more than `max.lane.lead` ahead of the lane with the oldest next record."""
    most_ms = call.setup.settings.max_lead_ms
    if most_ms is None:
        return state, work
    due = state.reading.due  # a failing key that is tried again holds up no other lane
    others = {tp: tuple(p for p in parts if (tp, p.hashes) not in due) for tp, parts in work.items()} if due else work
    stretches = unread(others, ends)
    wanted = {(tp, stretch.start) for tp, stretch in stretches.items()}
    known = {at: time for at, time in state.reading.first_times.items() if at in wanted}
    if missing := {tp: stretch for tp, stretch in stretches.items() if (tp, stretch.start) not in known}:
        found = seen.of(ReadFirstTimes(missing))
        known |= {(tp, stretch.start): found.get(tp) for tp, stretch in missing.items()}
    state = replace(state, reading=replace(state.reading, first_times=known))
    times = {tp: time for (tp, _), time in known.items() if time is not None}
    if not times:
        return state, work
    first = min(times.values())
    too_late = AtTimestamps(dict.fromkeys(stretches, first + most_ms + 1), NoMatch.LATEST)
    oldest = {tp: stretches[tp] for tp, time in times.items() if time == first}
    return state, within_lead(work, seen.of(ResolveOffsets(too_late, tuple(stretches))), oldest)
