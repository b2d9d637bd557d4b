"""New partitions wait for older ones."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.errors import ConflictingOptionsError
from coordinator.member.decision import RETRY_MS, Decision, LookAgain, Return
from coordinator.member.growing import log_growths, set_targets
from coordinator.member.reading import limit
from coordinator.member.requests import (
    Grant,
    LogLine,
    ReadAssignment,
    ReadGrowths,
    ReadHighWatermarks,
    ReadPartitionCounts,
    ReadPositions,
    RecordGrowths,
)
from coordinator.member.state import Growing, Low, Pacing, State
from coordinator.plan.cost.steering import Allowance
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges
from coordinator.progress.data_loss import LOW_MS
from coordinator.progress.growth import Growth, Sight
from coordinator.progress.ownership import Owned
from coordinator.redis.replies import Acquired
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, Bounds, Topic, TopicPartition
from progresses import starting_at
from states import (
    EPOCH,
    GROWN_LOG,
    LEFT,
    NONCE,
    NOW,
    RIGHT,
    TP,
    TP1,
    Answer,
    asks,
    call,
    decided,
    fails,
    joined,
    owning,
)

GROWTH = Growth("orders", "id-1", 1, 2, 5, NOW + 1)
ENDS = {TP: 100, TP1: 50}
IDS = {"orders": "id-1"}


def test_available_now__the_targets_are_the_log_ends() -> None:
    decision = decided(
        set_targets,
        joined(log=GROWN_LOG),
        call(),
        (ReadGrowths(), ()),
        (ReadPartitionCounts(), {"orders": 2}),
        (ReadHighWatermarks(()), {}),
    )
    growing = Growing((Sight(0, ENDS, {}),), 1, IDS)
    assert decision == Decision(joined(log=GROWN_LOG, pace=Pacing(ENDS), growing=growing), (), Return(None))


def test_available_now_with_a_part_of_the_joined_topics__refuse() -> None:
    of = call(cutting=Cutting(1, joined=("orders", "payments")))
    refusal = fails(ConflictingOptionsError, "joins topics that this load() does not read")
    assert decided(set_targets, joined(log=GROWN_LOG), of) == Decision(joined(log=GROWN_LOG), (), refusal)


@pytest.mark.parametrize(
    ("growths", "count"),
    [pytest.param((GROWTH,), 2, id="recorded"), pytest.param((), 1, id="not recorded yet")],
)
def test_available_now_with_a_growth__older_partitions_end_a_little_later(growths: Any, count: int) -> None:
    decision = decided(
        set_targets,
        joined(log=GROWN_LOG),
        call(),
        (ReadGrowths(), growths),
        (ReadPartitionCounts(), {"orders": count}),
        (ReadHighWatermarks((TP,)), {TP: 104}),
    )
    assert decision.state.pace == Pacing({TP: 104, TP1: 50})


@pytest.mark.parametrize(
    ("growth", "info"),
    [
        pytest.param(GROWTH, True, id="order is kept"),
        pytest.param(replace(GROWTH, until_ms=5), False, id="no grace"),
        pytest.param(replace(GROWTH, old=2, new=3), False, id="no multiple: a warning"),
        pytest.param(replace(GROWTH, new=4, late=True), False, id="seen late: a warning"),
    ],
)
def test_a_growth_is_seen_first__one_line(growth: Growth, info: bool) -> None:
    known = owning(growths=(growth,))
    decision = decided(log_growths, joined(owning=known), call())
    then = joined(owning=known, growing=Growing(logged=frozenset({growth})))
    assert decision == Decision(then, (LogLine(f"group g: {growth}", info=info),))


@pytest.mark.parametrize(
    ("growth", "logged"),
    [
        pytest.param(GROWTH, {GROWTH}, id="logged before"),
        pytest.param(replace(GROWTH, ends=(50,)), {GROWTH}, id="logged before it had ends"),
        pytest.param(replace(GROWTH, topic_id="id-0"), set(), id="of a topic that was recreated"),
        pytest.param(replace(GROWTH, topic="other"), set(), id="of a topic that we do not read"),
    ],
)
def test_a_growth_that_is_known_or_not_ours__no_line(growth: Growth, logged: set[Growth]) -> None:
    state = joined(owning=owning(growths=(growth,)), growing=Growing(logged=frozenset(logged)))
    assert decided(log_growths, state, call()) == Decision(state)


PINNED = call(subscription=Assigned({TP1: (WHOLE,)}, pinned=True))


def seen_before(**growing: Any) -> State:
    """The growth has a line already."""
    return joined(owning=owning(growths=(GROWTH,)), growing=Growing(logged=frozenset({GROWTH}), **growing))


def test_pinned_and_no_member_names_a_part_of_the_older_partition__one_line_for_that_part() -> None:
    claims = (ReadAssignment(), {"m-1": {TP1: (WHOLE,)}, "m-2": {TP: (LEFT,)}})
    decision = decided(log_growths, seen_before(), PINNED, claims)
    line = LogLine(
        f"group g: new partitions wait for older ones of which no pinned member names orders-0 {RIGHT}. "
        "Remedy: start a query that names these hashes"
    )
    assert decision == Decision(seen_before(unnamed={TP: (RIGHT,)}), (line,))
    again = decided(log_growths, decision.state, PINNED, claims)
    assert again == Decision(decision.state)


def test_pinned_and_all_of_the_older_partition_is_named__no_line() -> None:
    claims = (ReadAssignment(), {"m-2": {TP: (LEFT,)}, "m-3": {TP: (RIGHT,)}})
    assert decided(log_growths, seen_before(unnamed={TP: (RIGHT,)}), PINNED, claims) == Decision(seen_before())


def test_pinned_and_the_growth_is_over__no_line() -> None:
    over = seen_before(over=frozenset({(GROWTH, NONCE)}))
    assert decided(log_growths, over, PINNED) == Decision(over)


def pieces(position: int, ceiling: int | None) -> OwnedRanges:
    """Both partitions; only the new one has a ceiling."""
    return {TP: (OwnedRange(WHOLE, position, EPOCH),), TP1: (OwnedRange(WHOLE, 0, EPOCH, ceiling),)}


def grown(position: int, growth: Growth = GROWTH, **growing: Any) -> State:
    """The member owns both partitions, the older one at this position."""
    progress = {TP: starting_at(position), TP1: starting_at(0)}
    ownership = {TP: (Owned(WHOLE, EPOCH),), TP1: (Owned(WHOLE, EPOCH),)}
    known = owning(Acquired(0, IDS, ownership, progress, progress), growths=(growth,), looked_at_ms=NOW)
    return joined(log=GROWN_LOG, owning=known, growing=Growing(topic_ids=IDS, **growing))


def limited(state: State, work: OwnedRanges, *answers: Answer) -> Growing:
    """The known growths after this work was granted."""
    grant = Grant(work, ENDS, everything=False, anew=((TP, WHOLE), (TP1, WHOLE)))
    allowance = Allowance(work, (), Cutting(1))
    return decided(limit, state, call(), *answers, (grant, allowance)).state.growing


def looked(position: int, mark: int = 100) -> tuple[Answer, ...]:
    return (
        (ReadHighWatermarks((TP,)), {TP: mark}),
        (ReadAssignment(), {}),
        (ReadPositions((TP,)), {TP: ((WHOLE, position),)}),
    )


def test_the_older_partition_has_not_passed_any_sight__the_new_one_waits() -> None:
    growing = limited(grown(10), pieces(10, 0), *looked(10))
    graces = {GROWTH.field: NOW + 1}
    assert growing == Growing((Sight(0, ENDS, {TP: 100}),), 1, IDS, closed=frozenset({TP1}), graces=graces)


def test_the_older_partition_has_passed_a_sight__the_new_one_is_read_up_to_its_end_then() -> None:
    earlier = Sight(0, {TP: 30, TP1: 20}, {TP: 30})
    growing = limited(grown(30, sights=(earlier,), number=1), pieces(30, 20), *looked(30))
    assert growing.sights == (earlier, Sight(1, ENDS, {TP: 100}))


def test_part_of_the_older_partition_has_passed_a_sight__that_part_is_read() -> None:
    earlier = Sight(0, {TP: 30, TP1: 20}, {TP: 30})
    state = grown(30, sights=(earlier,), number=1)
    work = {**pieces(30, 20), TP1: (OwnedRange(LEFT, 0, EPOCH, 20), OwnedRange(RIGHT, 0, EPOCH, 0))}
    behind: Answer = ReadPositions((TP,)), {TP: ((LEFT, 30), (RIGHT, 10))}
    limited(state, work, *looked(30)[:2], behind)


def test_the_log_was_cut_since__older_sights_are_worth_nothing() -> None:
    earlier = Sight(0, {TP: 200, TP1: 20}, {TP: 200})
    low = {TP: Low(-1, NOW - LOW_MS)}
    growing = limited(grown(30, sights=(earlier,), number=1, low=low), pieces(30, 0), *looked(30))
    assert growing.sights == (Sight(1, ENDS, {TP: 100}),)


@pytest.mark.parametrize("growth", [GROWTH, replace(GROWTH, until_ms=NOW)], ids=["in the grace", "the grace is over"])
def test_a_watermark_is_lower_than_before__no_sight_and_no_record(growth: Growth) -> None:
    """The older partition is done up to 80, and has records up to 100: the new one waits for them."""
    earlier = Sight(0, {TP: 100, TP1: 20}, {TP: 100})
    growing = limited(grown(80, growth, sights=(earlier,), number=1), pieces(80, 0), *looked(80, 80))
    graces = {GROWTH.field: NOW + growth.until_ms - NOW}
    assert growing == Growing((earlier,), 1, IDS, {TP: Low(-1, NOW)}, closed=frozenset({TP1}), graces=graces)


def test_a_watermark_is_lower_than_before_after_the_grace__up_to_the_recorded_end() -> None:
    """Another member has recorded the end, since the last sight of this one."""
    ended, earlier = replace(GROWTH, ends=(100,)), Sight(0, {TP: 80, TP1: 0}, {TP: 80})
    state = grown(80, ended, sights=(earlier,), number=1)
    growing = limited(state, pieces(80, 0), *looked(80, 79))
    assert growing.over == frozenset()


def test_available_now_with_a_low_watermark__look_again() -> None:
    decision = decided(
        set_targets,
        joined(log=GROWN_LOG),
        call(),
        (ReadGrowths(), (GROWTH,)),
        (ReadPartitionCounts(), {"orders": 2}),
        (ReadHighWatermarks((TP,)), {TP: 99}),
    )
    assert (decision.state.pace, decision.outcome) == (Pacing(), LookAgain(RETRY_MS))


def test_the_topic_was_recreated_since__older_sights_are_forgotten() -> None:
    earlier = Sight(0, {TP: 30, TP1: 20}, {TP: 30})
    state = grown(30, sights=(earlier,), number=1)
    state = replace(state, growing=replace(state.growing, topic_ids={"orders": "id-0"}))
    assert limited(state, pieces(30, 0), *looked(30)).sights == (Sight(1, ENDS, {TP: 100}),)


def test_a_partition_without_a_reader__holds_nothing_back() -> None:
    state = replace(grown(10), log=replace(GROWN_LOG, partitions=(TP1,)))
    nobody: tuple[Answer, ...] = (ReadHighWatermarks((TP,)), {TP: 100}), (ReadAssignment(), {}), (ReadPositions(()), {})
    assert limited(state, pieces(10, None), *nobody).over == frozenset()


def test_pinned__an_older_partition_that_no_member_names_yet_holds_back() -> None:
    """Its member may start later. Newer records of a key must not overtake its older ones."""
    state = replace(grown(10), log=replace(GROWN_LOG, partitions=(TP1,)))
    behind = (ReadHighWatermarks((TP,)), {TP: 100}), (ReadPositions((TP,)), {TP: ((WHOLE, 10),)})
    grant = Grant(pieces(10, 0), ENDS, everything=False, anew=((TP, WHOLE), (TP1, WHOLE)))
    assert decided(limit, state, PINNED, *behind).effects == (grant,)


def test_a_partition_that_another_member_reads__holds_back() -> None:
    state = replace(grown(10), log=replace(GROWN_LOG, partitions=(TP1,)))
    another = (ReadHighWatermarks((TP,)), {TP: 100}), (ReadAssignment(), {"m-2": {TP: (WHOLE,)}})
    assert decided(limit, state, call(), *another) == asks(state, ReadPositions((TP,)))


def test_an_older_partition_that_waits_for_its_leader_to_have_a_position__holds_back() -> None:
    """A partition that nobody reads has no position either, and holds nothing back."""
    state = grown(10)
    waiting = replace(state, owning=replace(state.owning, unplaced=frozenset({TP})))
    no_position: tuple[Answer, ...] = (
        (ReadHighWatermarks((TP,)), {TP: 100}),
        (ReadAssignment(), {}),
        (ReadPositions((TP,)), {}),
    )
    assert limited(waiting, pieces(10, 0), *no_position).closed == {TP1}


def test_the_grace_is_over__record_the_ends_of_the_older_partitions() -> None:
    due = replace(GROWTH, until_ms=NOW)
    record = RecordGrowths((replace(due, ends=(100,)),)), None
    marks, *rest = looked(10)
    limited(grown(10, due), pieces(10, 0), marks, record, *rest)


FORWARD_MS = 3_600_000


def test_the_clock_of_redis_is_set_forward__the_grace_goes_on() -> None:
    """This process has seen the growth before: its own clock shows how long that is ago."""
    state = grown(10, graces={GROWTH.field: NOW + 1})
    state = replace(state, owning=replace(state.owning, looked_at_ms=NOW + FORWARD_MS))
    assert decided(limit, state, call(), looked(10)[0]) == asks(state, ReadAssignment())
    assert decided(limit, state, call(), looked(10)[0], now_ms=NOW + 1).effects[0].kind is RecordGrowths


def test_the_clock_of_redis_is_set_forward_before_the_growth_is_seen__its_whole_grace_lies_ahead() -> None:
    """It was recorded after the last look of this process."""
    state = grown(10, graces={})
    state = replace(state, owning=replace(state.owning, looked_at_ms=NOW + FORWARD_MS))
    whole = GROWTH.until_ms - GROWTH.seen_ms
    assert decided(limit, state, call(), looked(10)[0], now_ms=NOW) == asks(state, ReadAssignment())
    growing = limited(state, pieces(10, 0), *looked(10))
    assert growing.graces == {GROWTH.field: NOW + whole}


def test_the_clock_of_redis_is_set_forward_before_the_query_starts__the_grace_ends_early() -> None:
    """Its first look has no other clock (docs/ordering.md, not covered)."""
    state = grown(10)
    state = replace(state, owning=replace(state.owning, looked_at_ms=NOW + FORWARD_MS))
    assert decided(limit, state, call(), looked(10)[0], now_ms=NOW).effects[0].kind is RecordGrowths


def test_the_clock_of_redis_is_set_back__the_grace_is_no_longer_than_it_was() -> None:
    state = grown(10)
    state = replace(state, owning=replace(state.owning, looked_at_ms=NOW - FORWARD_MS))
    assert limited(state, pieces(10, 0), *looked(10)).graces == {GROWTH.field: NOW + GROWTH.until_ms - GROWTH.seen_ms}


def test_the_grace_is_not_over__record_nothing() -> None:
    state = grown(10)
    assert decided(limit, state, call(), looked(10)[0]) == asks(state, ReadAssignment())


def test_the_older_partition_is_past_the_recorded_end__the_growth_is_over() -> None:
    over = replace(GROWTH, ends=(10,))
    assert limited(grown(10, over), pieces(10, None), *looked(10)).over == {(over, NONCE)}


def test_the_older_partition_is_before_the_recorded_end__the_growth_is_not_over() -> None:
    ended = replace(GROWTH, ends=(50,))
    assert limited(grown(10, ended), pieces(10, 0), *looked(10)).over == frozenset()


def test_a_growth_that_is_over__is_not_looked_at_again() -> None:
    over = replace(GROWTH, ends=(10,))
    state = grown(
        10, over, over=frozenset({(over, NONCE)}), sights=(Sight(0, {}, {}),), number=1, closed=frozenset({TP1})
    )
    graces = {over.field: NOW + 1}
    assert limited(state, pieces(10, None)) == Growing((), 1, IDS, over=frozenset({(over, NONCE)}), graces=graces)


def test_over_before_a_loss_of_state__look_again() -> None:
    over = replace(GROWTH, ends=(10,))
    state = grown(10, over, over=frozenset({(over, "ffff")}))
    assert decided(limit, state, call()) == asks(state, ReadHighWatermarks((TP,)))


def test_a_growth_to_no_multiple__the_new_partition_waits_for_all_older_ones() -> None:
    """Partition 2 of three may hold keys of both older ones."""
    growth, newer = replace(GROWTH, old=2, new=3), TopicPartition("orders", 2)
    bounds = {**GROWN_LOG.bounds, newer: Bounds(0, 20)}
    log = replace(GROWN_LOG, topics={"orders": Topic("orders", "id-1", (0, 1, 2))}, partitions=(newer,), bounds=bounds)
    progress = {newer: starting_at(0)}
    acquired = Acquired(0, IDS, {newer: (Owned(WHOLE, EPOCH),)}, progress, progress)
    state = joined(log=log, owning=owning(acquired, growths=(growth,), looked_at_ms=NOW))
    answers = (
        (ReadHighWatermarks((TP, TP1)), {TP: 100, TP1: 50}),
        (ReadAssignment(), {"m-2": {TP: (WHOLE,), TP1: (WHOLE,)}}),
        (ReadPositions((TP, TP1)), {TP: ((WHOLE, 100),), TP1: ((LEFT, 50), (RIGHT, 49))}),
    )
    work = {newer: (OwnedRange(LEFT, 0, EPOCH, 20), OwnedRange(RIGHT, 0, EPOCH, 0))}
    ends = {tp: b.end for tp, b in bounds.items()}
    asked = Grant(work, ends, everything=False, anew=((newer, WHOLE),))
    assert decided(limit, state, call(), *answers).effects == (asked,)


def test_a_growth_without_a_grace__holds_nothing_back() -> None:
    limited(grown(10, replace(GROWTH, until_ms=5)), pieces(10, None))
