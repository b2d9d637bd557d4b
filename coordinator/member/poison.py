"""What a member does about poison: it strikes members that were lost, and keeps away from parked lanes. Pure.

A record whose reading never ends must not walk through the group and stop it member by member.

rule: strike-needs-evidence; rule: trial-alone; rule: parked-until-released.
"""

from dataclasses import replace

from coordinator.cost.batch_cost import LaneId
from coordinator.member.decision import Call, Decision, Seen
from coordinator.member.requests import Abandon, Forgive, OffsetsOfARecord, ReadStrikes, ReadWorking, StrikeMember
from coordinator.member.state import Offsets, State, Strikes
from coordinator.plan.planning import OwnedRanges
from coordinator.plan.poison import forgiven, left_out, quarantined, without_struck

LOOK_MS = 1_000
"""How old the strikes may be that a plan knows: an operator who releases a lane waits no longer."""


def strike_before_join(state: State, seen: Seen, call: Call) -> Decision:
    """Before it joins: an earlier life of this member may have been lost over a record. Not again while it waits."""
    life = state.life
    return Decision(state) if life.nonce or life.other else Decision(_struck(state, seen))


def strike_after_acquire(state: State, seen: Seen, call: Call) -> Decision:
    """Ranges that were acquired now may have been owned by a member that was lost over a record."""
    if not state.turn.acquired:
        return Decision(state)
    return Decision(replace(_struck(state, seen), turn=replace(state.turn, acquired=False)))


def _struck(state: State, seen: Seen) -> State:
    """Redis strikes the slices of each reported member that is lost; then there may be strikes that are new to us."""
    members = sorted(seen.of(ReadWorking()))
    for member in members:
        seen.of(StrikeMember(member))
    return replace(state, strikes=replace(state.strikes, looked_at_ms=None)) if members else state


def see_strikes(state: State, seen: Seen, call: Call) -> Decision:
    """Read the strikes, if those that are known are a second old."""
    looked_at = state.strikes.looked_at_ms
    if looked_at is not None and seen.now_ms - looked_at < LOOK_MS:
        return Decision(state)
    return Decision(replace(state, strikes=Strikes(seen.of(ReadStrikes()), seen.now_ms)))


def without_parked(
    state: State, work: OwnedRanges, ends: Offsets, seen: Seen
) -> tuple[State, OwnedRanges, LaneId | None]:
    """The work without parked lanes, and the struck lane that is read alone, if there is one.

    After a batch in which a lane was tried alone it is the turn of the others. Strikes that were passed are removed.
    """
    strikes = state.strikes.strikes
    if not strikes:
        return state, work, None
    if over := forgiven(strikes, work):
        seen.of(Forgive(over))
        strikes = tuple(s for s in strikes if s not in over)
        state = replace(state, strikes=replace(state.strikes, strikes=strikes))
    others = state.batch is not None and state.batch.trial
    limited, trial_lane = quarantined(work, ends, strikes, lambda lane: seen.of(OffsetsOfARecord(lane)), others=others)
    return state, limited, trial_lane


def leave_out_struck(state: State, seen: Seen, call: Call) -> Decision:
    """What of a batch is read that was planned before some of its hashes were struck twice.

    The rest is given up at its lane epoch, before anything is read: else the next life would take all of the batch
    for completed.
    """
    batch = state.batch
    if batch is None or batch.granted is None or batch.readable is not None:
        return Decision(state)
    strikes = seen.of(ReadStrikes())
    readable = without_struck(batch.granted, batch.end, strikes, batch.strikes)
    if given_up := left_out(batch.granted, readable):
        seen.of(Abandon(given_up))
    batch = replace(batch, readable=readable)
    return Decision(replace(state, batch=batch, strikes=Strikes(strikes, seen.now_ms)))
