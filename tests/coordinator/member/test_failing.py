"""The steps of a member that hold failing keys, and try them again (rule: one-record-at-its-time)."""

from dataclasses import replace

import pytest

from coordinator.errors import TooManyFailingKeysError
from coordinator.member.decision import Decision
from coordinator.member.failing import hold_failing, refuse_a_full_partition, see_failing
from coordinator.member.requests import Event, ReadFailing, Resume
from coordinator.member.state import Failing, State
from coordinator.plan.planning import OwnedRange
from coordinator.progress.failing import FailingRecord
from coordinator.values.ranges import HASH_MAX, HashRange
from states import EPOCH, NOW, TP, TP1, Answer, call, decided, joined, owns

REDIS = 1_700_000_000_000
RECORD = FailingRecord(TP, 5, 10, 2, REDIS + 1)
BELOW, KEY, ABOVE = HashRange(0, 4), HashRange(5, 5), HashRange(6, HASH_MAX)


def held(state: State, *answers: Answer) -> State:
    """The state once its work, one range from position 10 on, is without failing keys."""
    work = {TP: (OwnedRange(HashRange(0, HASH_MAX), 10, EPOCH),)}

    def step(state: State, seen: object, call: object) -> Decision:
        after, readable = hold_failing(state, work, {TP: 100}, seen, call)  # type: ignore[arg-type]
        return Decision(replace(after, reading=replace(after.reading, work=readable)))

    return decided(step, state, call(), *answers).state


def failing(record: FailingRecord, at_ms: int = REDIS) -> State:
    """A member that knows this failing record, and looked at the group at this time of the Redis clock."""
    state = owns(failing=Failing((record,), NOW))
    return replace(state, owning=replace(state.owning, looked_at_ms=at_ms))


def piece(hashes: HashRange, ceiling: int | None = None) -> OwnedRange:
    return OwnedRange(hashes, 10, EPOCH, ceiling)


def test_no_failing_record__ask_nothing() -> None:
    assert held(owns()).reading.held == {}


def test_its_time_has_not_come__its_hash_is_held() -> None:
    reading = held(failing(RECORD)).reading
    assert reading.work == {TP: (piece(BELOW), piece(ABOVE))}
    assert reading.held == {TP: (piece(KEY, 10),)}
    assert reading.due == frozenset()


def test_its_time_has_come__its_record_alone() -> None:
    reading = held(failing(RECORD, REDIS + 1)).reading
    assert reading.work == {TP: (piece(BELOW), piece(KEY, 11), piece(ABOVE))}
    assert reading.held == {}
    assert reading.due == frozenset({(TP, KEY)})


def test_its_position_has_passed_it__remove_the_entry() -> None:
    over = replace(RECORD, offset=9)
    state = held(failing(over), (Resume((over,)), 1))
    assert state.failing == Failing((), NOW)
    assert state.reading.work == {TP: (piece(HashRange(0, HASH_MAX)),)}


def test_old__read_them() -> None:
    decision = decided(see_failing, owns(), call(), (ReadFailing(), (RECORD,)))
    assert decision == Decision(owns(failing=Failing((RECORD,), NOW)))


def test_fresh__keep_them() -> None:
    state = joined(failing=Failing((RECORD,), NOW - 999))
    assert decided(see_failing, state, call()) == Decision(state)


def test_a_partition_gets_to_its_cap__one_event() -> None:
    records = (RECORD, replace(RECORD, tp=TP1))
    decision = decided(see_failing, owns(), call(max_deferred_keys=1), (ReadFailing(), records))
    why = f"{TP} has 1 failing keys (maxDeferredKeys): only these are read until there are fewer"
    assert decision.effects == (Event("failing", why),), "the other partition is of another member"
    again = replace(decision.state, failing=replace(decision.state.failing, looked_at_ms=None))
    assert decided(see_failing, again, call(max_deferred_keys=1), (ReadFailing(), records)).effects == ()


PARKED = replace(RECORD, parked=True)


def test_a_run_that_ends_by_itself_fails_if_only_a_release_lets_it_go_on() -> None:
    full = owns(failing=Failing((PARKED, replace(RECORD, tp=TP1)), NOW))
    with pytest.raises(TooManyFailingKeysError, match=rf"{TP} of group g has 1 parked keys \(maxDeferredKeys\)"):
        refuse_a_full_partition(full, "g", 1)


@pytest.mark.parametrize(
    ("records", "most", "why"),
    [
        ((PARKED,), 2, "there is room for more"),
        ((PARKED, replace(RECORD, key_hash=6)), 2, "one is tried again"),
        ((replace(PARKED, tp=TP1),), 1, "the full partition is of another member"),
        ((), 1, "the last key was released"),
    ],
)
def test_else_it_goes_on(records: tuple[FailingRecord, ...], most: int, why: str) -> None:
    refuse_a_full_partition(owns(failing=Failing(records, NOW, frozenset({TP}))), "g", most)
