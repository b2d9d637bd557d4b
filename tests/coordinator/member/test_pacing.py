"""The ends of a batch, and the time of its plan: log ends, AvailableNow's targets, Spark's limits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.member.decision import LOOK_MS, Call, Decision, LookAgain, Seen, Setup, Step, decide
from coordinator.member.limits import Limits
from coordinator.member.pacing import IDLE_MS, adopt_targets, ends_of, pace_batch, rest
from coordinator.member.requests import WatchLogs
from coordinator.member.state import Life, LogView, Owning, Pacing, Reading, State
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges
from coordinator.redis.replies import Joining
from coordinator.values.key_hash import cuts
from coordinator.values.offset_spec import Earliest
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Bounds, TopicPartition, Topics
from states import EPOCH, GROWN_LOG, NOW, TP, TP1, call, decided, joined

LOG = {TP: Bounds(0, 100), TP1: Bounds(0, 100)}


LOWER, UPPER = cuts(2)


UNLIMITED = Limits()


def at(position: int, other: int) -> OwnedRanges:
    return {TP: (OwnedRange(WHOLE, position, "a.1"),), TP1: (OwnedRange(WHOLE, other, "a.1"),)}


SETUP = Setup(GroupSettings("g"), Topics(("orders",)), Earliest(), Cutting(2), Joining({}))


FREE = Pacing()


def state(work: OwnedRanges, pace: Pacing = FREE, *, others: Mapping[TopicPartition, int] | None = None) -> State:
    """A member that may read `work`."""
    return State(
        Life(""),
        log=LogView(bounds=LOG),
        owning=Owning(targets=others or {}),
        reading=Reading(work=work),
        pace=pace,
    )


def after(step: Step, before: State, now_ms: int = 1_000, limits: Limits = UNLIMITED) -> State:
    """The state after a step that goes on."""
    decision = decide(step, before, Seen(now_ms), Call(SETUP, limits=limits))
    assert decision == Decision(decision.state)
    return decision.state


@pytest.mark.parametrize(
    ("targets", "limits", "expected"),
    [
        pytest.param(None, UNLIMITED, {TP: 100, TP1: 100}, id="without limits to the end of the log"),
        pytest.param({TP: 70, TP1: 80}, UNLIMITED, {TP: 70, TP1: 80}, id="AvailableNow ends at its targets"),
        pytest.param({TP: 300, TP1: 80}, UNLIMITED, {TP: 100, TP1: 80}, id="never beyond the log"),
        pytest.param({TP: 70}, UNLIMITED, {TP: 70, TP1: 0}, id="a partition that came after the start is not read"),
        pytest.param(None, Limits(max_offsets=60), {TP: 60, TP1: 80}, id="a limit is shared by backlog"),
        pytest.param({TP: 20, TP1: 90}, Limits(max_offsets=10), {TP: 20, TP1: 70}, id="targets leave more to others"),
        pytest.param(None, Limits(max_offsets=1), {TP: 21, TP1: 61}, id="each partition reads at least one offset"),
        pytest.param(None, Limits(max_offsets=120), {TP: 100, TP1: 100}, id="a limit of the whole backlog is none"),
    ],
)
def test_until(
    targets: Mapping[TopicPartition, int] | None, limits: Limits, expected: Mapping[TopicPartition, int]
) -> None:
    assert after(pace_batch, state(at(20, 60), Pacing(targets)), limits=limits).reading.until == expected


def test_until_raises_the_lanes_furthest_behind_first() -> None:
    work = {TP: (OwnedRange(LOWER, 10, "a.1"), OwnedRange(UPPER, 50, "a.1"))}
    assert after(pace_batch, state(work), limits=Limits(max_offsets=15)).reading.until[TP] == 40


WAITING = Limits(min_offsets=500, max_delay_ms=60_000)


@pytest.mark.parametrize(
    ("limits", "planned_ms_ago", "targets", "expected"),
    [
        pytest.param(WAITING, None, None, 100, id="the first batch of a query never waits"),
        pytest.param(WAITING, 59_999, None, 0, id="too little waits for more"),
        pytest.param(WAITING, 60_000, None, 100, id="but not longer than maxTriggerDelay"),
        pytest.param(Limits(min_offsets=120), 1, None, 100, id="enough is read at once"),
        pytest.param(Limits(min_offsets=121), 1, None, 0, id="one offset too few waits"),
        pytest.param(WAITING, 1, {TP: 100, TP1: 100}, 100, id="AvailableNow waits for nothing"),
        pytest.param(
            Limits(min_offsets=120, max_offsets=2), 1, None, 21, id="maxOffsets limits a batch that minOffsets allows"
        ),
    ],
)
def test_min_offsets(
    limits: Limits, planned_ms_ago: int | None, targets: Mapping[TopicPartition, int] | None, expected: int
) -> None:
    planned_ms = None if planned_ms_ago is None else 100_000 - planned_ms_ago
    paced = after(pace_batch, state(at(20, 60), Pacing(targets, planned_ms=planned_ms)), 100_000, limits)
    assert paced.reading.until[TP] == expected
    assert (paced.pace.idle is None) == (expected > 0)


@pytest.mark.parametrize(
    ("own", "bounds", "expected"),
    [
        pytest.param(None, LOG, None, id="a member that runs for ever takes no targets of others"),
        pytest.param({TP: 50, TP1: 60}, LOG, {TP: 50, TP1: 60}, id="alone it keeps its own"),
        pytest.param({TP: 50, TP1: 60}, LOG | {TP: Bounds(0, 30)}, {TP: 30, TP1: 60}, id="a cut log lowers its"),
        pytest.param({TP: 50, TP1: 60}, {TP: Bounds(0, 100)}, {TP: 50}, id="a topic that is gone has no target"),
    ],
)
def test_adopt(
    own: Mapping[TopicPartition, int] | None,
    bounds: Mapping[TopicPartition, Bounds],
    expected: Mapping[TopicPartition, int] | None,
) -> None:
    before = replace(state({}, Pacing(own), others={TP: 90}), log=LogView(bounds=bounds))
    assert after(adopt_targets, before).pace.targets == expected


@pytest.mark.parametrize(
    ("work", "limits", "watched"),
    [
        pytest.param({TP: (OwnedRange(WHOLE, 100, "a.1"),)}, Limits(), {TP}, id="it has read to the end"),
        pytest.param(
            {TP: (OwnedRange(WHOLE, 60, "a.1", ceiling=60),)}, Limits(), None, id="what is left may not be read"
        ),
        pytest.param({TP: ()}, Limits(), None, id="others own it"),
        pytest.param({TP: (OwnedRange(WHOLE, 100, "a.1"),)}, Limits(min_offsets=5), None, id="one record is no batch"),
    ],
)
def test_a_record_ends_the_wait_of_an_idle_query_if_it_can_be_read(
    work: OwnedRanges, limits: Limits, watched: set[TopicPartition] | None
) -> None:
    """Else each record would make it look again, as often as records come."""
    idle = after(pace_batch, state(work), now_ms=1_000)
    ends = {tp: idle.log.bounds[tp].end for tp in watched or ()}
    seen = Seen(1_100)
    if ends:
        assert decide(rest, idle, seen, Call(SETUP, limits=limits)).effects == (WatchLogs(ends),)
        seen = seen.with_answer(WatchLogs(ends), 0)
    decision = decide(rest, idle, seen, Call(SETUP, limits=limits))
    assert (decision.effects, decision.outcome) == ((), LookAgain(IDLE_MS - 100))


BOTH_READ = at(100, 100)
ONE_OF_OTHERS: OwnedRanges = {**BOTH_READ, TP1: ()}
ONE_HELD: OwnedRanges = {**BOTH_READ, TP1: (OwnedRange(WHOLE, 10, "a.2", ceiling=10),)}


@pytest.mark.parametrize(
    ("work", "targets", "lacking", "watched_ms", "waits_ms"),
    [
        pytest.param(BOTH_READ, None, False, 5_000, LOOK_MS, id="fetches wait at all ends"),
        pytest.param(ONE_OF_OTHERS, None, False, 5_000, LOOK_MS, id="at all ends that are its own"),
        pytest.param(BOTH_READ, None, False, 600, 600, id="the first fetch ends before that"),
        pytest.param(BOTH_READ, None, False, 0, IDLE_MS, id="a fetch is missing"),
        pytest.param(ONE_OF_OTHERS, None, True, 5_000, IDLE_MS, id="another member may free its ranges"),
        pytest.param(ONE_HELD, None, False, 5_000, IDLE_MS, id="time or another member may let it read on"),
        pytest.param(BOTH_READ, {TP: 100, TP1: 100}, False, 5_000, IDLE_MS, id="the run ends once others have read"),
    ],
)
def test_an_idle_query_looks_seldom_while_only_a_record_can_give_it_work(
    work: OwnedRanges, targets: dict[TopicPartition, int] | None, lacking: bool, watched_ms: int, waits_ms: int
) -> None:
    idle = after(pace_batch, state(work), now_ms=1_000)
    idle = replace(idle, pace=replace(idle.pace, targets=targets), owning=Owning(lacking=lacking))
    (watch,) = decide(rest, idle, Seen(1_000), Call(SETUP)).effects
    decision = decide(rest, idle, Seen(1_000).with_answer(watch, watched_ms), Call(SETUP))
    assert decision.outcome == LookAgain(waits_ms)


def test_a_run_that_waits_for_other_members_reads_to_their_targets_too() -> None:
    """Rule: available-now. Otherwise two runs whose targets cross would wait for each other."""
    helping = state({}, Pacing({TP: 20, TP1: 40}, helps=True), others={TP: 30, TP1: 30})
    assert ends_of(helping) == {TP: 30, TP1: 40}


def test_members_that_ask_for_more_one_after_the_other_never_wait_for_each_other() -> None:
    targets: list[dict[TopicPartition, int]] = [{TP: 8}, {TP: 10, TP1: 0}, {TP: 22, TP1: 3}]
    members = [after(adopt_targets, state({}, Pacing(t), others={TP: 22, TP1: 3})) for t in targets]
    for n, waits in enumerate(members):
        for reads in members[n:]:  # those before it have ended
            assert all(ends_of(reads)[tp] >= target for tp, target in (waits.pace.targets or {}).items())


WORK: OwnedRanges = {TP: (OwnedRange(WHOLE, 10, EPOCH),)}


DONE: OwnedRanges = {TP: (OwnedRange(WHOLE, 100, EPOCH),)}


END, NO_FURTHER = {TP: 100}, {TP: 0}


@pytest.mark.parametrize(
    ("idle_ms", "outcome"),
    [
        pytest.param(NOW, LookAgain(250), id="just now"),
        pytest.param(NOW - 249, LookAgain(1), id="almost long enough"),
    ],
)
def test_a_look_found_nothing__rest(idle_ms: int, outcome: LookAgain) -> None:
    decision = decided(rest, joined(pace=Pacing(idle_ms=idle_ms)), call())
    assert decision == Decision(joined(), (), outcome)


@pytest.mark.parametrize("idle_ms", [pytest.param(None, id="not idle"), pytest.param(NOW - 250, id="long enough")])
def test_rested__go_on(idle_ms: int | None) -> None:
    assert decided(rest, joined(pace=Pacing(idle_ms=idle_ms)), call()) == Decision(joined())


@pytest.mark.parametrize(
    ("targets", "of_others", "ends"),
    [
        pytest.param(None, {}, {TP: 100, TP1: 50}, id="no targets: the log ends"),
        pytest.param({TP: 70, TP1: 60}, {}, {TP: 70, TP1: 50}, id="the targets, at most the log ends"),
        pytest.param({TP: 70}, {TP1: 20}, {TP: 70, TP1: 20}, id="a new partition: the target of others"),
        pytest.param({TP: 70}, {}, {TP: 70, TP1: 0}, id="a new partition that no query waits for: nothing"),
    ],
)
def test_partition__ends_for_this_run(targets: Any, of_others: Any, ends: Any) -> None:
    assert ends_of(joined(log=GROWN_LOG, pace=Pacing(targets), owning=Owning(targets=of_others))) == ends


def reading(work: OwnedRanges, **changes: Any) -> State:
    return joined(reading=Reading(work=work), **changes)


def paced(state: State, until: Any, **pace: Any) -> Decision:
    """The decision to read each partition so far."""
    return Decision(replace(state, reading=replace(state.reading, until=until), pace=replace(state.pace, **pace)))


def test_something_to_read__up_to_the_log_end() -> None:
    state = reading(WORK, pace=Pacing(idle=(DONE, END)))
    assert decided(pace_batch, state, call()) == paced(state, END, idle=None)


def test_nothing_to_read__idle() -> None:
    state = reading(DONE)
    assert decided(pace_batch, state, call()) == paced(state, END, idle=(DONE, END), idle_ms=NOW)


def test_still_nothing_to_read__idle_since_now() -> None:
    state = reading(DONE, pace=Pacing(idle=(DONE, END)))
    assert decided(pace_batch, state, call()) == paced(state, END, idle_ms=NOW)


def test_the_target_is_reached__idle() -> None:
    state = reading(WORK, pace=Pacing({TP: 10}))
    assert decided(pace_batch, state, call()) == paced(state, {TP: 10}, idle=(WORK, {TP: 10}), idle_ms=NOW)


WAITS = Limits(min_offsets=91, max_delay_ms=1_000)


def test_min_offsets_per_trigger_is_not_reached__wait_for_more() -> None:
    state = reading(WORK, pace=Pacing(planned_ms=NOW - 999))
    decision = decided(pace_batch, state, call(limits=WAITS))
    assert decision == paced(state, NO_FURTHER, idle=(WORK, NO_FURTHER), idle_ms=NOW)
