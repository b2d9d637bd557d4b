"""Poison: a member strikes members that died, and leaves parked lanes unread. Pure.

A record that hangs its reader must not stop the group member by member.

rule: strike-needs-evidence; rule: struck-lane-apart; rule: parked-until-released.
"""

from collections.abc import Iterable
from dataclasses import replace

from coordinator.member.decision import LOOK_MS, Call, Decision, Seen
from coordinator.member.failing import look_again
from coordinator.member.obeying import in_order
from coordinator.member.requests import Abandon, Forgive, OffsetsOfARecord, ReadStrikes, ReadWorking, StrikeMember
from coordinator.member.state import Offsets, State, Strikes
from coordinator.plan.planning import OwnedRanges
from coordinator.plan.poison import Strike, forgiven, left_out, tried, without_struck
from coordinator.values.ranges import WHOLE


def strike_before_join(state: State, seen: Seen, call: Call) -> Decision:
    """Before a join: an earlier life of this member may have died over a record. Once, not at each wait for a lease."""
    life = state.life
    return Decision(state) if life.nonce or life.other else _struck(state, seen)


def strike_after_acquire(state: State, seen: Seen, call: Call) -> Decision:
    """After an acquisition: the earlier owner of these ranges may have died over a record."""
    if not state.turn.acquired:
        return Decision(state)
    return _struck(look_again(replace(state, turn=replace(state.turn, acquired=False))), seen)


def _struck(state: State, seen: Seen) -> Decision:
    """Redis strikes the slices of each reported member that died; then the known strikes may be stale."""
    members = sorted(seen.of(ReadWorking()))
    strikes = replace(state.strikes, looked_at_ms=None) if members else state.strikes
    return Decision(replace(state, strikes=strikes), tuple(StrikeMember(member) for member in members))


def see_strikes(state: State, seen: Seen, call: Call) -> Decision:
    """Read the strikes if the known ones are a second old."""
    looked_at = state.strikes.looked_at_ms
    if looked_at is not None and seen.now_ms - looked_at < LOOK_MS:
        return Decision(state)
    return Decision(replace(state, strikes=Strikes(seen.of(ReadStrikes()), seen.now_ms)))


def without_parked(state: State, work: OwnedRanges, ends: Offsets, seen: Seen, call: Call) -> tuple[State, OwnedRanges]:
    """The work without parked lanes, and with struck ones on trial. Strikes that positions have passed are removed."""
    strikes = state.strikes.strikes
    if not strikes:
        return replace(state, reading=replace(state.reading, trials={})), work
    if over := forgiven(strikes, work):
        seen.done(Forgive(over))
        strikes = tuple(s for s in strikes if s not in over)
        state = replace(state, strikes=replace(state.strikes, strikes=strikes))
    limited, trials = tried(work, _widened(state, strikes), lambda lane: seen.of(OffsetsOfARecord(lane)))
    return replace(state, reading=replace(state.reading, trials=trials)), limited


def _widened(state: State, strikes: Iterable[Strike]) -> tuple[Strike, ...]:
    """In partition order a strike holds up its whole partition: no other lane of it has a turn."""
    topics = in_order(state, state.owning.policy)
    return tuple(replace(s, hashes=WHOLE) if s.tp.topic in topics else s for s in strikes)


def leave_out_struck(state: State, seen: Seen, call: Call) -> Decision:
    """Leave out hashes that were struck twice since the plan of the batch.

    The member releases them at their lane epoch before it reads: else the next life would count the whole batch as
    completed.
    """
    batch = state.batch
    if batch is None or batch.granted is None or batch.readable is not None:
        return Decision(state)
    strikes = seen.of(ReadStrikes())
    readable = without_struck(batch.granted, batch.end, strikes, batch.strikes)
    given_up = left_out(batch.granted, readable)
    state = replace(state, batch=replace(batch, readable=readable), strikes=Strikes(strikes, seen.now_ms))
    return Decision(state, (Abandon(given_up),) if given_up else ())
