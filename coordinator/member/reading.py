"""Limits the next batch: seven limits on owned ranges before the end of the log, one after the other.

    failing keys       a key waits at a record on which the user's function failed
    back pressure      the partition is at its cap of individual commits
    older partitions   a new partition waits for older ones
    joined topics      a hash waits until the member owns it in all of them
    poison             a lane is parked, or on trial
    event time         lanes keep within a span of record time
    time budget        the quotas of the cost model
    partition order    all ranges of a partition end together, where its topic's policy asks for that

Each sets ceilings of ranges; none moves a position. Pure.

rule: one-record-at-its-time; rule: individual-commit-cap; rule: growth-order; rule: joined-topics;
rule: struck-lane-apart; rule: parked-until-released; rule: lane-lead; rule: partition-order
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges
from coordinator.member.decision import Call, Decision, Seen
from coordinator.member.failing import hold_failing
from coordinator.member.growing import older_partitions_first
from coordinator.member.inbox import Reach
from coordinator.member.obeying import in_order, one_end
from coordinator.member.pacing import ends_of
from coordinator.member.poison import without_parked
from coordinator.member.requests import Grant, ReadFirstTimes, ReadReach, ResolveOffsets
from coordinator.member.state import State
from coordinator.plan.back_pressure import held_back
from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.plan.failing_keys import together
from coordinator.plan.joined_ranges import owned_in_all
from coordinator.plan.planning import OwnedRanges, with_positions
from coordinator.progress.segments import Progress
from coordinator.progress.slices import LaneId
from coordinator.redis.lane_lines import FAILING, JOINED, LEAD, OLDER, ROOM
from coordinator.values.offset_spec import AtTimestamps, NoMatch
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import OffsetByPartition


def limit(state: State, seen: Seen, call: Call) -> Decision:
    """Limit the work on owned ranges; an equal look keeps the last result."""
    acquired = state.owning.acquired
    ends = ends_of(state)
    looked_at = (acquired, state.log.bounds, ends, state.strikes.strikes, state.failing.records, state.owning.policy)
    changing = state.owning.growths or state.strikes.strikes or state.failing.records
    if state.reading.seen == looked_at and not changing:
        return Decision(state)
    work, ceilings = with_positions(acquired.ownership, acquired.progress), tuple[tuple[str, OwnedRanges], ...]()
    for name, narrow in LIMITS:
        state, work = narrow(state, work, ends, seen, call)
        ceilings += ((name, work),) if name else ()
    work = together(work, state.reading.held)
    looked_at_now = None if state.owning.stale else looked_at
    return Decision(replace(state, reading=replace(state.reading, seen=looked_at_now, work=work, ceilings=ceilings)))


def _room(
    state: State, work: OwnedRanges, ends: OffsetByPartition, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    """Back pressure. A commit elsewhere may make room, so the member acquires again each time.

    A pinned member counts in its own hashes: no assignment ever moves the others, which may have no reader.
    """
    whole, pinned = state.owning.acquired.whole, call.setup.pinned
    if pinned:
        whole = {tp: _within(p, pinned[tp]) for tp, p in whole.items() if tp in pinned}
    roomy = held_back(work, whole, call.setup.settings.max_individual_commits)
    return (state if roomy == work else replace(state, owning=replace(state.owning, stale=True))), roomy


def _joined(
    state: State, work: OwnedRanges, ends: OffsetByPartition, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    topics = [t for t in call.setup.cutting.joined if t in state.log.topics]
    return state, owned_in_all(work, topics, state.reading.held)


def _within(progress: Progress, ranges: tuple[HashRange, ...]) -> Progress:
    return Progress(tuple(s for hashes in ranges for s in progress.within(hashes).segments))


def keep_lead(
    state: State, work: OwnedRanges, ends: OffsetByPartition, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    """`work` with no lane more than `maxLaneLead` ahead of the lane with the oldest next record.

    Without a partition whose leader has fallen silent since this look began (rule: silent-leader).
    """
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
        known |= {(tp, stretch.start): found[tp] for tp, stretch in missing.items() if tp in found}
        silent = {tp: stretches.pop(tp).start for tp in missing.keys() - found.keys()}
        work = within_lead(work, silent, {})
    state = replace(state, reading=replace(state.reading, first_times=known))
    times = {tp: time for (tp, _), time in known.items() if time is not None}
    if not times:
        return state, work
    first = min(times.values())
    too_late = AtTimestamps(dict.fromkeys(stretches, first + most_ms + 1), NoMatch.LATEST)
    oldest = {tp: stretches[tp] for tp, time in times.items() if time == first}
    return state, within_lead(work, seen.of(ResolveOffsets(too_late, tuple(stretches))), oldest)


def _budget(
    state: State, work: OwnedRanges, ends: OffsetByPartition, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    """The grant of the cost model. Ranges that were acquired since the last look begin anew in it."""
    before = state.reading
    owned = owned_ranges(state.owning.acquired.ownership)
    back = tuple(_lanes(difference(owned, before.owned)))
    early = call.setup.settings.early_ends and seen.of(ReadReach()) is Reach.ALL
    everything = call.limits.everything
    topics = in_order(state, state.owning.policy)
    granted = seen.of(
        Grant(work, ends, tuple(before.trials), everything=everything, early=early, anew=back, in_order=topics)
    )
    reading = replace(before, quotas=granted.quotas, cutting=granted.cutting, owned=owned)
    return replace(state, reading=reading), granted.work


Limit = Callable[[State, OwnedRanges, OffsetByPartition, Seen, Call], tuple[State, OwnedRanges]]
"""Narrows the work; the offsets are the ends of this run."""

LIMITS: tuple[tuple[str | None, Limit], ...] = (
    (FAILING, hold_failing),
    (ROOM, _room),
    (OLDER, older_partitions_first),
    (JOINED, _joined),
    (None, without_parked),
    (None, one_end),  # a range that may read nothing because of its partition holds up no other partition's lead
    (LEAD, keep_lead),
    (None, _budget),
    (None, one_end),
)
"""Each with the name that a lane's line shows for its ceiling; parked lanes and quotas have other words there."""


def _lanes(ranges: Ranges) -> Iterator[LaneId]:
    return ((tp, hashes) for tp, parts in ranges.items() for hashes in parts)
