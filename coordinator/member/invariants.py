"""Invariants of every state of a member. Tests and the simulation call `check` after every step. Pure."""

from collections.abc import Callable, Iterator, Mapping

from coordinator.assignment.rebalance import difference, owned_ranges
from coordinator.member.batch import Batch
from coordinator.member.state import State
from coordinator.plan.planning import anything
from coordinator.progress.growth import SIGHTS
from coordinator.progress.ownership import Ownership, lane_ranges, not_owned
from coordinator.progress.slices import LaneId
from coordinator.values.hash_map import overlap


class BrokenInvariantError(AssertionError):
    """A state breaks an invariant."""


def check(state: State, before: State | None = None) -> None:
    """Raise `BrokenInvariantError` with every invariant that the state breaks.

    `before`: the state that was checked last. What depends only on the same parts is not checked again.
    """
    if broken := [text for part, names in _PARTS.items() if _differ(state, before, names) for text in part(state)]:
        raise BrokenInvariantError("; ".join(broken))


def _differ(state: State, before: State | None, names: tuple[str, ...]) -> bool:
    return before is None or any(getattr(state, name) is not getattr(before, name) for name in names)


def _life(state: State) -> Iterator[str]:
    life = state.life
    if life.nonce and not life.member:
        yield "a life that has joined has no member id"
    if life.nonce and not life.lease_end_ms:
        yield "a life that has joined has no lease"
    if life.nonce and life.nonce != life.nonce_before:
        yield "a life does not remember the nonce at which it has joined"


def _batch(state: State) -> Iterator[str]:
    batch = state.batch
    if batch is None:
        return
    granted, readable = batch.granted, batch.readable
    if granted is not None and _outside(granted, _lanes(batch)):
        yield "Redis has granted ranges that are not in the batch at their lane epoch"
    if readable is not None and (granted is None or _outside(readable, granted)):
        yield "ranges are read that Redis has not granted"
    if batch.began_ms is not None and readable is None:
        yield "a batch has begun that was not authorized"
    if batch.under_way and batch.end not in state.evidence.unconfirmed:
        yield "the slices of the batch under way are not unconfirmed"
    lanes = [(tp, lane.hashes) for tp, lane in batch.end if lane.offsets and batch.trials]
    if any(_together(lane, trial) for lane in lanes for trial in batch.trials):
        yield "a lane on trial is read together with other hashes"


def _together(lane: LaneId, trial: LaneId) -> bool:
    return trial[0] == lane[0] and trial[1].intersection(lane[1]) not in (None, lane[1])


def _lanes(batch: Batch) -> Ownership:
    return {tp: lane_ranges(rows) for tp, rows in batch.end.rows.items()}


def _outside(some: Ownership, other: Ownership) -> bool:
    """Whether `some` has a range that is not in `other` at its lane epoch."""
    return any(not_owned(owned, other.get(tp, ())) for tp, owned in some.items())


def _commits(state: State) -> Iterator[str]:
    commits = state.commits
    if commits.under_way and commits.under_way.start == commits.confirmed:
        yield "a batch is committed again that was confirmed"
    if commits.under_way and commits.under_way.start not in state.evidence.unconfirmed:
        yield "the slices of a commit under way are not unconfirmed"
    if commits.whole and commits.whole.member and commits.whole != commits.confirmed:
        yield "an offset counts as whole that was not confirmed"
    if state.turn.skipped and not state.turn.committed:
        yield "part of a start was skipped before it was committed"


def _owning(state: State) -> Iterator[str]:
    owning = state.owning
    acquired = owning.acquired
    owned = owned_ranges(acquired.ownership)
    covered = {tp: tuple(s.hashes for s in p.segments) for tp, p in acquired.progress.items() if p.segments}
    if owned and (difference(owned, covered) or difference(covered, owned)):  # without order, none is owned
        yield "positions are not of exactly the owned ranges"
    if any(overlap(sorted(o.hashes for o in of_tp)) for of_tp in acquired.ownership.values()):
        yield "owned ranges overlap"
    if owning.as_of and owning.ranges != owned:
        yield "the owned ranges are not those that were acquired"


def _others(state: State) -> Iterator[str]:
    sights, pace, strikes = state.growing.sights, state.pace, state.strikes.strikes
    numbers = [sight.number for sight in sights]
    if numbers != sorted(set(numbers)) or len(sights) > SIGHTS or any(n >= state.growing.number for n in numbers):
        yield f"sights are out of order: {numbers}, next {state.growing.number}"
    if pace.idle is not None and anything(*pace.idle):
        yield "the member is idle, though there is something to read"
    if len({(s.tp, s.hashes) for s in strikes}) != len(strikes):
        yield "a range has two strikes"
    if not 0 <= state.shown.slow_percent <= 100:
        yield f"{state.shown.slow_percent} % of the slots are taken by slow lanes"


_PARTS: Mapping[Callable[[State], Iterator[str]], tuple[str, ...]] = {
    _life: ("life",),
    _batch: ("batch", "evidence"),
    _commits: ("commits", "evidence", "turn"),
    _owning: ("owning",),
    _others: ("growing", "pace", "strikes", "shown"),
}
"""The invariants, and the parts of a state on which each depends."""
