"""Failing keys: a member reads what Redis knows of them, and plans each at its time. Pure.

rule: position-holds-the-key; rule: one-record-at-its-time; rule: deferred-keys-cap.
"""

from dataclasses import replace

from coordinator.errors import TooManyFailingKeysError
from coordinator.member.decision import LOOK_MS, Call, Decision, Seen
from coordinator.member.requests import Event, ReadFailing, Resume
from coordinator.member.state import Failing, State
from coordinator.plan.failing_keys import apart, at_cap
from coordinator.plan.planning import OwnedRanges
from coordinator.values.subscription import OffsetByPartition

NO_RANGES: OwnedRanges = {}


def see_failing(state: State, seen: Seen, call: Call) -> Decision:
    """Read the failing records if the known ones are a second old. A partition that gets to its cap makes an event."""
    looked_at = state.failing.looked_at_ms
    if looked_at is not None and seen.now_ms - looked_at < LOOK_MS:
        return Decision(state)
    records, most = seen.of(ReadFailing()), call.setup.settings.max_deferred_keys
    full = at_cap(records, most) if len(records) >= most else frozenset()
    events = tuple(
        Event("failing", f"{tp} has {most} failing keys (maxDeferredKeys): only these are read until there are fewer")
        for tp in sorted(full - state.failing.full)
        if tp in state.owning.ranges
    )
    return Decision(replace(state, failing=Failing(records, seen.now_ms, full)), events)


def look_again(state: State) -> State:
    """The state whose failing records are read again before the next plan."""
    return replace(state, failing=replace(state.failing, looked_at_ms=None))


def refuse_a_full_partition(state: State, group: str, most: int) -> None:
    """A run that ends by itself: raise `TooManyFailingKeysError` if only a release lets this member read on."""
    mine = [r for r in state.failing.records if r.tp in state.owning.ranges]
    full = sorted(at_cap(mine, most))
    if full and all(r.parked for r in mine):
        raise TooManyFailingKeysError(
            f"{full[0]} of group {group} has {most} parked keys (maxDeferredKeys), so its other keys wait"
        )


def hold_failing(
    state: State, work: OwnedRanges, ends: OffsetByPartition, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    """The work without failing keys that wait. Entries that positions have passed are removed."""
    records = state.failing.records
    if not records:
        return replace(state, reading=replace(state.reading, held=NO_RANGES, due=frozenset())), work
    settings = call.setup.settings
    latest = state.owning.looked_at_ms, settings.longest_delay_ms
    found = apart(work, records, *latest, settings.max_deferred_keys)
    if found.over:
        seen.done(Resume(found.over))
        over = frozenset(found.over)
        state = replace(state, failing=replace(state.failing, records=tuple(r for r in records if r not in over)))
    return replace(state, reading=replace(state.reading, held=found.held, due=found.due)), found.work
