"""Finding slow lanes by placing suspects in different batches, when only the time of a whole batch is known."""

import pytest

from coordinator.plan.cost.batch_cost import BatchCost, Load
from coordinator.plan.cost.search import ALL_SLOW, PROOF, CostClaim, Search, tried
from coordinator.progress.slices import LaneId
from coordinator.values.key_hash import cuts
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("t", 0)
LANES: list[LaneId] = [(TP, h) for h in cuts(8)]
SPAN, HEALTHY_MS, RATE_MS = 1_000, 4_000.0, 1.0
CLAIM = CostClaim(10.0, 3.0, SPAN)  # beside three healthy records in each offset


def search(*, known: bool = True, patience: float = PROOF) -> Search:
    return Search.among(dict.fromkeys(LANES, CLAIM), patience, known=known)


def batch(lanes: tuple[LaneId, ...], work_ms: float, span: int = SPAN) -> BatchCost:
    return BatchCost(tuple(Load(lane, i, span, span) for i, lane in enumerate(lanes)), work_ms)


def found(slow: set[int], *, known: bool = True) -> tuple[set[int], int, bool]:
    """The lanes found slow, the number of batches, and whether all lanes are alike; `known`: the healthy cost."""
    going, hits, tries, even = search(known=known), set[int](), 0, False
    while going.groups:
        tries += 1
        long = {LANES.index(lane) for lane in going.trial} & slow
        finding = tried(going, batch(going.trial, HEALTHY_MS + 6_000 * bool(long)), RATE_MS, HEALTHY_MS, 0.0)
        going, even = finding.search, finding.even
        hits |= {LANES.index(finding.slow)} if finding.slow else set()
        assert not hits & {LANES.index(lane) for lane in finding.quick}
    return hits, tries, even


@pytest.mark.parametrize("slow", range(8))
def test_one_slow_lane_of_eight_is_found_in_at_most_six_batches(slow: int) -> None:
    hits, tries, even = found({slow})
    assert (hits, even) == ({slow}, False)
    assert tries <= 6


@pytest.mark.parametrize("slow", [{0, 1}, {0, 7}, {3, 4}, {2, 6}])
def test_two_slow_lanes_are_both_found(slow: set[int]) -> None:
    assert found(slow)[0] == slow


def test_lanes_that_are_all_alike_are_left_alone() -> None:
    hits, tries, even = found(set(range(8)), known=False)
    assert (hits, even) == (set(), True)
    assert tries <= ALL_SLOW


def test_lanes_that_are_all_quick_by_now_are_cleared() -> None:
    hits, tries, even = found(set())
    assert (hits, even) == (set(), False)
    assert tries <= 4


def test_a_group_is_cleared_once_it_has_read_about_as_much_as_the_long_batch() -> None:
    """Half of that proves little where slow records are rare; so it reads twice as much in the next batch."""
    half = tried(search(), batch(search().trial, HEALTHY_MS, SPAN // 2), RATE_MS, HEALTHY_MS, 0.0)
    assert (half.quick, half.search.trial, half.search.groups[0].pace) == ((), search().trial, 2.0)
    assert tried(half.search, batch(half.search.trial, HEALTHY_MS, SPAN // 2), RATE_MS, HEALTHY_MS, 0.0).quick


def test_from_the_first_quick_batch_on_only_a_batch_that_its_suspects_explain_is_long() -> None:
    """Before it, the healthy time is a guess, and a batch that takes most of it may be long already."""
    going, slower = search(known=False), HEALTHY_MS + 1_000
    quick = tried(going, batch(going.trial, 3_000, SPAN // 2), RATE_MS, HEALTHY_MS, 0.0)
    assert (quick.search.trial, quick.quick) == (going.trial, ())
    assert tried(going, batch(going.trial, slower), RATE_MS, HEALTHY_MS, 0.0).long
    assert not tried(quick.search, batch(going.trial, slower), RATE_MS, HEALTHY_MS, 0.0).long


def test_a_trial_without_records_shows_nothing_of_the_healthy_time() -> None:
    """Lanes that are all alike are left alone after it, too."""
    going = search(known=False)
    empty = BatchCost(tuple(Load(lane, i, SPAN // 2, 0.0) for i, lane in enumerate(going.trial)), HEALTHY_MS)
    going = tried(going, empty, RATE_MS, HEALTHY_MS, 0.0).search
    assert not going.some_quick
    for _ in range(ALL_SLOW):
        finding = tried(going, batch(going.trial, HEALTHY_MS + 6_000), RATE_MS, HEALTHY_MS, 0.0)
        going = finding.search
    assert finding.even


def test_a_difference_that_may_be_chance_is_no_evidence() -> None:
    finding = tried(search(), batch(search().trial, HEALTHY_MS + 5_000), RATE_MS, HEALTHY_MS, 3_000.0)
    assert finding.quick


def test_a_claim_never_rises_for_a_batch_may_have_other_delays() -> None:
    longer = batch(search().trial, 60_000.0)
    assert set(tried(search(), longer, RATE_MS, HEALTHY_MS, 0.0).search.claims.values()) == {CLAIM}


def test_a_group_without_offsets_to_read_waits_behind_the_others() -> None:
    going = search()
    finding = tried(going, batch(going.groups[1].lanes, HEALTHY_MS), RATE_MS, HEALTHY_MS, 0.0)
    assert finding.search.groups == (going.groups[1], going.groups[0])


def test_a_group_whose_hashes_have_no_records_is_not_the_slow_one() -> None:
    going = search()
    empty = BatchCost(tuple(Load(lane, i, SPAN, 0.0) for i, lane in enumerate(going.trial)), 60_000.0)
    assert set(tried(going, empty, RATE_MS, HEALTHY_MS, 0.0).quick) == set(going.trial)


def test_suspects_that_have_nothing_to_read_hold_up_nobody() -> None:
    assert search().only(LANES[4:]).trial == tuple(LANES[4:])
    assert search().only([]) == Search()


def test_the_halves_of_a_slow_lane_are_suspects() -> None:
    halves = Search().halving(LANES[0], CLAIM)
    assert [group.lanes for group in halves.groups] == [
        ((TP, h),) for h in LANES[0][1].cut((LANES[0][1].lo + LANES[0][1].size // 2,))
    ]
    assert halves.found
