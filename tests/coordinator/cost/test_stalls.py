"""Finds a key with few, very slow records by the groups of lanes in batches that stalled."""

import pytest

from coordinator.cost.batch_cost import BatchCost, LaneId, Load
from coordinator.cost.profile import Cell
from coordinator.cost.quotas import Quota, Why
from coordinator.cost.stalls import CLEARED, GROWTH, IDLE, UNBOUND, Stalls, stalled
from coordinator.key_hash import cuts
from coordinator.plan.planning import OwnedRange
from coordinator.ranges import WHOLE, HashRange
from coordinator.subscription import TopicPartition

TP = TopicPartition("t", 0)
BUDGET_MS = 10_000.0
EIGHT: list[LaneId] = [(TP, h) for h in cuts(8)]
LOWER, UPPER = cuts(2)
SPAN = 3_000


def batch(lanes: list[LaneId], span: float = SPAN, work_ms: float = 100.0) -> BatchCost:
    return BatchCost(tuple(Load(x, i, int(span), span / 10) for i, x in enumerate(lanes)), work_ms)


def begun(lanes: list[LaneId] = EIGHT, *, fixed: bool = False) -> Stalls:
    """After a batch in which each of these lanes read so much, and which took three times the budget."""
    return Stalls(fixed=fixed).suspecting(lanes, SPAN, 3.0)


def reading(stalls: Stalls) -> tuple[LaneId, ...]:
    return stalls.turn.lanes if stalls.turn else ()


def read(stalls: Stalls, times: float | None = None, *, behind: bool = True) -> Stalls:
    """After the batch of those whose turn it is; they had more to read than they may if `behind`."""
    assert stalls.turn
    return stalls.after(batch(list(stalls.turn.lanes), stalls.turn.span if behind else 0.9 * stalls.turn.span), times)


def found(slow: int) -> tuple[list[HashRange], int, int]:
    """The range of a slow hash after each stall, the batches that took, and the groups at the end.

    Its records are few: one in a thousand offsets.
    """
    stalls, ranges, batches, offsets = begun(), [LOWER if slow in LOWER else UPPER], 0, 0.0
    while ranges[-1].size > 1 and batches < 2_000:
        batches += 1
        turn = stalls.turn
        offsets += turn.span if turn and any(slow in hashes for _, hashes in turn.lanes) else 0
        stall, offsets = offsets >= 1_000, offsets % 1_000
        stalls = read(stalls, 3.0 if stall else None, behind=False) if turn else stalls.passed_over()
        group = next(g for g in stalls.groups if g and any(slow in hashes for _, hashes in g.lanes))
        ranges += [HashRange(group.lanes[0][1].lo, group.lanes[-1][1].hi)] if stall else []
    return ranges, batches, len(stalls.groups)


@pytest.mark.parametrize("slow", [0, EIGHT[5][1].lo, EIGHT[7][1].hi])
def test_each_stall_halves_the_suspects_down_to_a_single_hash(slow: int) -> None:
    ranges, batches, groups = found(slow)
    assert [x.size for x in ranges] == [LOWER.size >> i for i in range(len(ranges))]
    assert ranges[-1] == HashRange(slow, slow)
    assert groups <= 8, "who did not stall is cleared meanwhile"
    assert batches <= 12 * len(ranges)


def test_suspects_read_less_after_a_stall_and_twice_as_much_after_each_turn_without() -> None:
    stalls = begun()
    assert reading(stalls) == tuple(EIGHT[:4])
    spans = []
    for _ in range(3):
        spans += [stalls.turn.span] if stalls.turn else []
        stalls = read(read(stalls)).passed_over()
    assert spans == [SPAN / 3, GROWTH * SPAN / 3, GROWTH**2 * SPAN / 3]
    first, _ = stalls.groups[:2]
    halves = read(stalls, 6.0).groups[-2:]
    assert first
    assert [g.span for g in halves if g] == [first.span / 6] * 2


def test_a_suspect_that_reads_less_than_its_turn_allows_is_cleared_after_some_turns() -> None:
    stalls, turns = begun(), 0
    while stalls.groups:
        turns += 1
        stalls = stalls.passed_over() if stalls.turn is None else read(stalls, behind=False)
    assert 2 * CLEARED < turns < 30


def test_a_suspect_of_a_large_batch_that_now_reads_little_is_cleared_by_turns() -> None:
    """A batch that caught up had 100,000 offsets of each lane, and now a hundred come at a time."""
    stalls, turns = Stalls().suspecting(EIGHT, 100_000.0, 3.0), 0
    while stalls.groups:
        turns += 1
        stalls = stalls.after(batch(list(reading(stalls)), 100))
    assert turns == 3 * UNBOUND - 1, "two groups and nobody, by turns"


def test_a_group_that_stalls_again_has_its_turns_before_it_again() -> None:
    stalls = Stalls().suspecting(EIGHT[:2], 100_000.0, 3.0)
    for _ in range(3 * UNBOUND - 3):
        stalls = stalls.after(batch(list(reading(stalls)), 100))
    assert [g.unbound for g in read(stalls, 3.0).groups if g] == [UNBOUND - 1, 0, 0]


def test_a_suspect_that_would_then_read_much_more_is_not_cleared() -> None:
    """A lane that waited for long may have very many slow records to read: it goes on to double."""
    stalls = begun()
    for _ in range(3 * 8):
        stalls = stalls.passed_over() if stalls.turn is None else read(stalls)
    assert [len(g.lanes) if g else 0 for g in stalls.groups] == [4, 4, 0]


@pytest.mark.parametrize("times", [None, 3.0])
def test_a_batch_in_which_a_group_read_nothing_is_no_evidence_about_it(times: float | None) -> None:
    stalls = begun(EIGHT[:4])
    for _ in range(3 * 4):  # enough to be cleared, but for what still waits
        stalls = stalls.passed_over() if stalls.turn is None else read(stalls)
    assert stalls.after(batch(EIGHT[4:]), times) == stalls.passed_over()
    assert stalls.after(batch([*EIGHT[:2], *EIGHT[4:]], 0), times) == stalls.passed_over()


@pytest.mark.parametrize(
    ("waiting", "empty_turn", "turn"),
    [
        pytest.param(EIGHT, False, EIGHT[:2], id="the first group"),
        pytest.param(EIGHT[2:], False, EIGHT[2:4], id="or the first that has something to read"),
        pytest.param(EIGHT[4:], False, [], id="or none, where only others have"),
        pytest.param(EIGHT, True, [], id="none while a search goes on"),
        pytest.param(EIGHT[:4], True, EIGHT[:2], id="unless no other lane has something to read"),
        pytest.param([], False, EIGHT[:2], id="any group if there is nothing to read"),
    ],
)
def test_whose_turn_it_is(waiting: list[LaneId], empty_turn: bool, turn: list[LaneId]) -> None:
    ready = begun(EIGHT[:4]).ready(waiting, EIGHT, empty_turn=empty_turn)
    assert list(reading(ready)) == turn


def test_suspects_that_went_to_others_are_none_any_more() -> None:
    ready = begun(EIGHT[:4]).ready(EIGHT, EIGHT[1:2], empty_turn=False)
    assert [g.lanes if g else () for g in ready.groups] == [(EIGHT[1],), ()]
    assert not ready.ready(EIGHT, EIGHT[4:], empty_turn=False).groups


def test_suspects_that_have_nothing_to_read_for_long_are_none_any_more() -> None:
    """Their topic went silent: a search does not wait for them for ever."""
    stalls, busy = begun(), EIGHT[:4]
    for _ in range(IDLE):
        stalls = stalls.ready(busy, EIGHT, empty_turn=False)
        assert [len(g.lanes) for g in stalls.groups if g] == [4, 4]
        stalls = read(stalls) if stalls.turn else stalls.passed_over()
    assert len([g for g in stalls.ready(EIGHT, EIGHT, empty_turn=False).groups if g]) == 2, "it has something again"
    assert [g.lanes for g in stalls.ready(busy, EIGHT, empty_turn=False).groups if g] == [tuple(busy)]


@pytest.mark.parametrize("fixed", [False, True])
def test_a_lane_alone_is_cut_in_the_middle_unless_the_user_has_fixed_lanes(fixed: bool) -> None:
    stalls = begun([(TP, LOWER)], fixed=fixed)
    after = read(stalls, 3.0)
    sizes = [hashes.size for g in after.groups if g for _, hashes in g.lanes]
    assert sizes == ([LOWER.size] if fixed else [LOWER.size // 2, LOWER.size // 4, LOWER.size // 4])
    assert after.settled


def test_each_suspect_is_a_lane() -> None:
    assert begun([(TP, LOWER)]).bounds(TP) == {LOWER.lo + LOWER.size // 2, UPPER.lo}
    assert begun([(TP, WHOLE)], fixed=True).bounds(TP) == frozenset()


def test_how_far_pieces_may_be_read_and_why() -> None:
    stalls = begun([(TP, LOWER)])
    half, other = (x for g in stalls.groups if g for _, x in g.lanes)
    pieces = [
        OwnedRange(half, 100, "e.1"),
        OwnedRange(other, 100, "e.1"),
        OwnedRange(UPPER, 100, "e.1"),
        OwnedRange(half, 100, "e.1", 150),
    ]
    limited = list(stalls.limited([(TP, p) for p in pieces]))
    assert [p.ceiling for _, p in limited] == [1_100, 100, None, 150]
    reasons = [Why.CEILING, Why.CEILING, Why.NOTHING, Why.BUDGET]
    quotas = [Quota(tp, p, 9_000, Cell(p.hashes, 1.0), 1.0, why) for (tp, p), why in zip(limited, reasons, strict=True)]
    assert [q.why for q in stalls.named(quotas)] == [Why.TRIAL, Why.SUSPECT, Why.NOTHING, Why.BUDGET]


@pytest.mark.parametrize(
    ("work_ms", "expected_ms", "seen", "expected"),
    [
        pytest.param(30_000.0, 500.0, [], True, id="three times its budget"),
        pytest.param(20_000.0, 500.0, [], False, id="twice its budget may be chance"),
        pytest.param(30_000.0, 13_000.0, [], False, id="its records should take as long"),
        pytest.param(30_000.0, 500.0, [(200.0, 200.0)], True, id="batches of two thirds of its records were short"),
        pytest.param(30_000.0, 500.0, [(50.0, 4_000.0)], False, id="one of a sixth was as long for its records"),
        pytest.param(30_000.0, 500.0, [(5.0, 1_000.0)], True, id="one of very few may be so by chance"),
        pytest.param(60_000.0, 500.0, [(50.0, 9_000.0)], True, id="however that was, six times its budget is a stall"),
    ],
)
def test_a_stall(work_ms: float, expected_ms: float, seen: list[tuple[float, float]], expected: bool) -> None:
    assert stalled(batch(EIGHT, work_ms=work_ms), BUDGET_MS, expected_ms, seen) == expected
