"""The quotas of lanes within the time budget, and their order if the budget is too small for all."""

from math import sqrt

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from coordinator.cost.batch_cost import LaneId
from coordinator.cost.profile import START_RECORDS, UNKNOWN, Cell, Profile, one
from coordinator.cost.quotas import FOR_SLOW, SAFE, Budget, Quota, Why, all_there_is, quotas
from coordinator.cost.search import ASIDE, TRIAL, Claim, Search
from coordinator.key_hash import cut_bound, cuts
from coordinator.plan.planning import OwnedRange
from coordinator.ranges import WHOLE, HashRange
from coordinator.subscription import TopicPartition

TP = TopicPartition("t", 0)
LOWER, UPPER = cuts(2)
BUDGET = Budget(10_000, 2)
END = 1_000_000


def lanes(*positions: int, ceiling: int | None = None) -> list[tuple[TopicPartition, OwnedRange]]:
    return [(TP, OwnedRange(h, at, "e.1", ceiling)) for h, at in zip(cuts(len(positions)), positions, strict=True)]


def known(*costs: float, allowance: float = 1e9) -> dict[TopicPartition, Profile]:
    """Each lane of an even cut with one record an offset and the cost of a record, measured."""
    return {TP: tuple(Cell(h, 1.0, ms, True, allowance) for h, ms in zip(cuts(len(costs)), costs, strict=True))}


def granted(
    of: list[tuple[TopicPartition, OwnedRange]], profiles: dict[TopicPartition, Profile], search: Search | None = None
) -> list[tuple[int, Why]]:
    def cell_of(lane: LaneId) -> Cell:
        return one(profiles.get(lane[0], UNKNOWN), lane[1])

    made: tuple[Quota, ...] = quotas(of, {TP: END}, cell_of, 0.0, BUDGET, search or Search(), lambda _, at: END - at)
    return [(q.span, q.why) for q in made]


def test_a_lane_reads_as_many_offsets_as_fit_the_budget() -> None:
    few = SAFE * 100 - sqrt(SAFE * 100)  # less than 90 by what chance may add
    assert granted(lanes(0, 999_990), known(100.0, 1.0)) == [(int(few), Why.BUDGET), (10, Why.NOTHING)]


def test_a_lane_reads_at_least_one_record_however_slow_it_is() -> None:
    assert granted(lanes(0, 999_999), known(60_000.0, 1.0))[0] == (1, Why.BUDGET)


def test_it_does_so_also_where_guesses_of_its_parts_add_up_to_more_than_a_record_an_offset() -> None:
    dense: dict[TopicPartition, Profile] = {
        TP: (Cell(LOWER, 0.6, 60_000.0, True, 1e9), Cell(UPPER, 0.6, 60_000.0, True, 1e9))
    }
    assert granted(lanes(0), dense) == [(1, Why.BUDGET)]


def test_a_lane_of_unknown_cost_starts_small() -> None:
    assert granted(lanes(0), {}) == [(START_RECORDS, Why.START)]


def test_a_sparse_lane_reads_as_many_records_over_more_offsets() -> None:
    sparse: dict[TopicPartition, Profile] = {
        TP: (Cell(LOWER, 0.001, 100.0, True, 1e9), Cell(UPPER, 0.5, 1.0, True, 1e9))
    }
    assert granted(lanes(0, 999_990), sparse)[0] == (int((90 - sqrt(90)) / 0.001), Why.BUDGET)


def test_a_ceiling_of_the_plan_is_kept() -> None:
    assert granted(lanes(0, ceiling=7), known(1.0)) == [(7, Why.CEILING)]


def test_when_slots_cannot_serve_all_the_oldest_records_come_first() -> None:
    """Four lanes of 9 s of work each on two slots of 10 s: all come to the same offset."""
    made = granted(lanes(3_000, 0, 1_000, 2_000), known(*[1.0] * 4))
    assert made == [(3_000, Why.TURN), (6_000, Why.TURN), (5_000, Why.TURN), (4_000, Why.TURN)]


def test_a_lane_that_is_further_than_the_others_come_reads_a_record() -> None:
    made = granted(lanes(0, 0, 0, 8_000), known(*[1.0] * 4))
    assert made == [*[(6_000, Why.TURN)] * 3, (1, Why.TURN)]


def test_a_waiting_lane_is_older_at_the_next_turn_so_none_starves() -> None:
    at = [0, 0, 0, 0]
    for _ in range(4):
        for i, (span, _) in enumerate(granted(lanes(*at), known(*[1.0] * 4))):
            at[i] += span
    assert min(at) > 0


def test_a_lane_is_old_by_the_age_of_its_records_not_by_their_number() -> None:
    """Four lanes of a partition to which much comes, and a quiet one: it is never many records behind."""
    quiet = TopicPartition("quiet", 0)
    cells = known(*[1.0] * 4) | {quiet: (Cell(WHOLE, 1.0, 1.0, True, 1e9),)}
    at, turns = {(TP, h): 0 for h in cuts(4)} | {(quiet, WHOLE): 0}, 20
    ends = first = {TP: 100_000, quiet: 100}
    came_ms = {TP: 10_000 / 40_000, quiet: 10_000 / 10}  # from one record to the next
    for turn in range(turns):
        now_ms = 10_000 * turn
        made = quotas(
            [(tp, OwnedRange(h, position, "e.1")) for (tp, h), position in at.items()],
            ends,
            lambda lane: one(cells[lane[0]], lane[1]),
            0.0,
            BUDGET,
            Search(),
            lambda tp, position, now_ms=now_ms: now_ms - came_ms[tp] * max(0, position - first[tp]),  # type: ignore[misc]
        )
        assert made[-1].span >= 1
        at = {q.lane: q.piece.position + q.span for q in made}
        ends = {TP: ends[TP] + 40_000, quiet: ends[quiet] + 10}
    assert at[quiet, WHOLE] >= 10 * (turns - 10), "its oldest record is not older than that of the others"


def test_of_two_partitions_the_one_whose_records_are_older_comes_first() -> None:
    other = TopicPartition("older", 0)
    both = [(tp, piece) for tp in (TP, other) for _, piece in lanes(0, 0)]
    made = quotas(
        both,
        {TP: END, other: END},
        lambda lane: one(known(1.0, 1.0)[TP], lane[1]),
        0.0,
        BUDGET,
        Search(),
        lambda tp, _: 60_000.0 if tp == other else 1_000.0,
    )
    few = int(SAFE * BUDGET.ms - sqrt(SAFE * BUDGET.ms))
    assert [q.span for q in made[2:]] == [few, few]
    assert sum(q.span for q in made[:2]) < few / 10


@pytest.mark.parametrize("healthy_ms", [8_000.0, 40_000.0])
def test_slow_lanes_wait_for_one_another_and_not_the_others_for_them(healthy_ms: float) -> None:
    """Three slow lanes far behind, each with work for a slot; the others, at the end of the log, go on as they were."""
    kinds = [(0.1, 1_000.0)] * 3 + [(0.35, 1.0)] * 2  # records an offset, and what one costs
    profile = {TP: tuple(Cell(h, *kind, True, 1e9) for h, kind in zip(cuts(5), kinds, strict=True))}
    healthy = END - int(healthy_ms / 2 / 0.35)
    spans = [span for span, _ in granted(lanes(0, 0, 0, healthy, healthy), profile)]
    made = [span * density * ms for span, (density, ms) in zip(spans, kinds, strict=True)]
    whole = SAFE * BUDGET.slots * BUDGET.ms
    assert sum(made[3:]) == pytest.approx(min(healthy_ms, (1 - FOR_SLOW) * whole), abs=1)
    assert sum(made[:3]) == pytest.approx(whole - sum(made[3:]), abs=1_000)
    assert 0 in made, "not all of them fit"


@pytest.mark.parametrize(
    ("hashes", "why"), [(LOWER, Why.TRIAL), (UPPER, Why.SUSPECT)], ids=["on trial it works", "or it waits for its turn"]
)
def test_a_suspect(hashes: HashRange, why: Why) -> None:
    search = Search.among({(TP, LOWER): Claim(8.0), (TP, UPPER): Claim(8.0)})
    made = granted(lanes(0, 0), known(1.0, 1.0), search)
    slow_ms = TRIAL * BUDGET.ms  # alone on its slot
    assert dict(zip((LOWER, UPPER), made, strict=True))[hashes] == ((int(slow_ms / 8) if why is Why.TRIAL else 0), why)


def test_the_others_stand_aside_of_a_trial() -> None:
    four = cuts(4)
    search = Search.among({(TP, four[0]): Claim(8.0), (TP, four[1]): Claim(8.0)})
    made = granted(lanes(0, 0, 0, 0), known(*[1.0] * 4), search)
    assert [why for _, why in made] == [Why.TRIAL, Why.SUSPECT, Why.ASIDE, Why.ASIDE]
    assert made[2][0] + made[3][0] == ASIDE * BUDGET.ms  # on the slot that is left


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """The known costs of a partition, from none to many."""

    def cell(hashes: HashRange) -> Cell:
        cost = draw(st.sampled_from([None, None, 0.0, 0.1, 30.0, 600.0]))
        dense = hashes.share * draw(st.sampled_from([1.0, 1.0, 0.01, 3.0]))
        return Cell(hashes, dense, cost, cost is not None, draw(st.sampled_from([START_RECORDS, 1e9])))

    return tuple(map(cell, cuts(draw(st.integers(1, 3)))))


@given(
    st.lists(st.integers(END - 200, END), min_size=1, max_size=3),
    profiles(),
    st.sampled_from([0.0, 0.01, 1.0, 50.0]),
    st.integers(1, 4),
    st.sampled_from([None, None, END - 100, END]),
)
def test_where_whole_pieces_get_all_there_is_so_do_their_lanes(
    positions: list[int], profile: Profile, rate_ms: float, count: int, ceiling: int | None
) -> None:
    def cell_of(lane: LaneId) -> Cell:
        return one(profile, lane[1])

    def profile_of(_: TopicPartition) -> Profile:
        return profile

    pieces, bounds = lanes(*positions, ceiling=ceiling), tuple(cut_bound(i, count) for i in range(1, count))
    found = all_there_is(pieces, {TP: END}, cell_of, profile_of, rate_ms, BUDGET)
    cut = [(tp, piece.within(h)) for tp, piece in pieces for h in piece.hashes.cut(bounds)]
    each = quotas(cut, {TP: END}, cell_of, rate_ms, BUDGET, Search(), lambda _, at: END - at)
    event("all there is" if found else "bounded" if any(q.why is not Why.NOTHING for q in each) else "not sure")
    if found is not None:
        assert [q.piece for whole in found for q in whole.cut(bounds)] == [piece for _, piece in cut]
        assert [(q.piece, q.why) for q in each] == [(piece, Why.NOTHING) for _, piece in cut]
