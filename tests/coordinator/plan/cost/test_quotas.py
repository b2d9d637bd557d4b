"""How far lanes may read: slow lanes share time, others share records, suspects take turns."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.cost.pace import SAFE
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import FOR_SLOW, Budget, Quota, Why, fair, leveled, quotas
from coordinator.plan.cost.search import ASIDE, TRIAL, CostClaim, Search
from coordinator.plan.planning import OwnedRange
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("t", 0), TopicPartition("other", 0)
LOWER, UPPER = cuts(2)
BUDGET = Budget(10_000, 2)
END = 1_000_000


def lane(hashes: HashRange, lag: int, record_ms: float | None = None, density: float = 1.0) -> Quota:
    return Quota(TP, OwnedRange(hashes, END - lag, "e.1"), END, Cell(hashes, density, record_ms), 1.0)


def granted(
    lanes: list[Quota], slot_rows: float = inf, search: Search | None = None, *, exact: bool = True
) -> list[tuple[int, Why]]:
    made = quotas(lanes, slot_rows, search or Search(), BUDGET, lambda _, at: END - at, Why.BUDGET, exact=exact)
    return [(q.span, q.why) for q in made]


def test_lanes_that_are_alike_read_all_there_is_where_tasks_end_by_the_clock() -> None:
    assert granted([lane(LOWER, 90_000), lane(UPPER, 10)]) == [(90_000, Why.NOTHING), (10, Why.NOTHING)]


def test_where_records_are_dear_all_lanes_of_a_partition_end_at_one_offset() -> None:
    made = quotas(
        [lane(LOWER, 9_000), lane(UPPER, 5_000)], 3_000, Search(), BUDGET, lambda *_: 0.0, Why.BUDGET, exact=False
    )
    assert {q.piece.position + q.span for q in made} == {END - 4_000}
    assert sum(q.span for q in made) == 6_000


def test_a_lane_that_is_ahead_of_the_others_waits_for_them() -> None:
    """And gets no more than a slot can read: a lane is read by one task."""
    assert granted([lane(LOWER, 9_000), lane(UPPER, 10)], 1_000) == [(1_010, Why.BUDGET), (0, Why.BUDGET)]


def test_partitions_share_and_a_small_one_is_read_whole() -> None:
    quiet = lane(LOWER, 100)._replace(tp=OTHER)
    made = dict(zip((TP, OTHER), leveled([lane(LOWER, 90_000), quiet], 1_000, 1_000, Why.BUDGET), strict=True))
    assert (made[OTHER].span, made[TP].span) == (100, 900)


def test_no_lane_gets_more_than_a_slot_can_read() -> None:
    large = [lane(h, 90_000, density=0.25) for h in cuts(4)]
    small = lane(WHOLE, 10_000)._replace(tp=OTHER)
    made = [*leveled([*large, small], 5_000, 1_000, Why.BUDGET)]
    assert [q.rows for q in made] == [1_000] * 5


@given(st.dictionaries(st.integers(), st.floats(0, 1e6), min_size=1), st.floats(0, 1e7))
def test_a_fair_share_is_what_it_wants_or_as_much_as_any_other(wants: dict[int, float], total: float) -> None:
    shares = fair(wants, total)
    most = max(shares.values())
    assert sum(shares.values()) <= total * (1 + 1e-9) + 1e-6
    assert all(
        shares[key] == pytest.approx(min(want, most)) or shares[key] >= most - 1e-6 for key, want in wants.items()
    )


@pytest.mark.parametrize("healthy_ms", [8_000, 40_000])
def test_slow_lanes_get_the_time_that_others_leave_and_a_reserved_part(healthy_ms: int) -> None:
    """Three slow lanes far behind, each with work for a slot; others at the end of the log go on as they were."""
    slow = [lane(h, 900_000, 500.0, density=0.1) for h in cuts(5)[:3]]
    others = [lane(h, healthy_ms // 2, 1.0) for h in cuts(5)[3:]]
    whole = SAFE * BUDGET.slots * BUDGET.ms
    made = granted([*slow, *others], BUDGET.ms)
    read_ms = sum(span * 0.1 * 500.0 for span, _ in made[:3])
    assert read_ms == pytest.approx(max(FOR_SLOW * whole, whole - healthy_ms), abs=1_000)


def test_without_time_for_a_record_of_each_slow_lane_the_oldest_records_come_first() -> None:
    slow = [lane(h, lag, 60_000.0) for h, lag in zip(cuts(4), (5, 7, 6, 8), strict=True)]
    made = granted([*slow, lane(LOWER, 100_000, 1.0, density=9.0)._replace(tp=OTHER)], BUDGET.ms)
    assert made[:4] == [(0, Why.TURN), (0, Why.TURN), (0, Why.TURN), (1, Why.BUDGET)]


def test_a_slow_lane_whose_records_are_rare_seldom_reads_two_in_a_batch() -> None:
    """By the clock alone: nobody ends its task early."""
    rare = lane(LOWER, 500_000, 30_000.0, density=0.001)
    assert granted([rare, lane(UPPER, 10, 1.0)], exact=False)[0] == (350, Why.BUDGET)


def test_a_slow_lane_that_is_guessed_denser_than_a_record_an_offset_reads_one() -> None:
    dense = lane(LOWER, 500_000, 30_000.0, density=5.0)
    assert granted([dense, lane(UPPER, 10, 1.0, density=9.0)], exact=False)[0] == (1, Why.BUDGET)


def test_suspects_take_turns_and_the_others_leave_room_for_what_shows() -> None:
    search = Search.among({(TP, h): CostClaim(8.0, 0.0, 1_000) for h in (LOWER, UPPER)}, 0.75, known=True)
    other = lane(LOWER, 90_000)._replace(tp=OTHER)
    trial, waits, beside = granted([lane(LOWER, 90_000), lane(UPPER, 90_000), other], 9_000, search)
    assert trial == (int((TRIAL - ASIDE) * BUDGET.ms / (8.0 - 1.0)), Why.TRIAL)
    assert waits == (0, Why.SUSPECT)
    assert beside[0] == pytest.approx(ASIDE * 9_000, abs=1)


def test_a_ceiling_of_the_plan_is_kept() -> None:
    bounded = lane(LOWER, 100)
    bounded = bounded._replace(piece=bounded.piece._replace(ceiling=END - 60), why=Why.CEILING)
    assert granted([bounded], 10_000) == [(40, Why.CEILING)]
