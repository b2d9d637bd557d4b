"""Finding slow lanes by placing suspects in different batches, when only the time of a whole batch is known."""

import pytest

from coordinator.cost.batch_cost import BatchCost, LaneId, Load
from coordinator.cost.search import MOST_TRIALS, TRIAL, Claim, Search, Suspects, tried
from coordinator.key_hash import cuts
from coordinator.subscription import TopicPartition

TP = TopicPartition("t", 0)
LANES: list[LaneId] = [(TP, h) for h in cuts(8)]
BUDGET_MS = 10_000.0
CLAIM = 10.0  # milliseconds an offset: what each lane would cost if it alone were why
SPAN = int(TRIAL * BUDGET_MS / CLAIM)
HEALTHY_MS = 4_000.0


RATE_MS = 1.0  # of a healthy record


def found(slow: set[int], *, known: bool = True) -> tuple[set[int], int, bool]:
    """The lanes found slow, the number of batches, and whether all lanes are alike; `known`: the healthy cost."""
    search, hits, tries, even = Search.among(dict.fromkeys(LANES, Claim(CLAIM)), some_quick=known), set[int](), 0, False
    while search.groups:
        tries += 1
        in_batch = {LANES.index(lane) for lane in search.trial}
        batch = BatchCost(
            tuple(Load(LANES[i], i, SPAN, SPAN) for i in in_batch),
            work_ms=SPAN * CLAIM if in_batch & slow else HEALTHY_MS,
        )
        finding = tried(search, batch, RATE_MS, HEALTHY_MS)
        search, even = finding.search, finding.even
        hits |= {LANES.index(lane) for lane in finding.slow}
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
    assert tries <= 4


def test_lanes_that_are_all_quick_by_now_are_cleared() -> None:
    hits, tries, even = found(set())
    assert (hits, even) == (set(), False)
    assert tries <= 4


def test_one_lane_needs_no_search() -> None:
    assert not Search.among({LANES[0]: Claim(CLAIM)}).groups


def test_no_lane_waits_for_a_suspect_that_has_nothing_to_read() -> None:
    search = Search.among(dict.fromkeys(LANES, Claim(CLAIM)))
    assert search.held == tuple(LANES[4:])
    assert search.only(LANES[4:]).trial == tuple(LANES[4:])
    assert not search.only([]).groups


def test_quick_lanes_stop_waiting_when_the_last_suspect_is_gone() -> None:
    """It is another member's by now, or parked: no batch would ever prove who was slow."""
    search = Search((Suspects((LANES[0],)),), {LANES[0]: Claim(CLAIM)}, doubted=(LANES[1],))
    assert search.only(LANES[:2]).held == (LANES[1],)
    assert search.only(LANES[1:]) == Search()


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(BatchCost((Load(LANES[0], 0, SPAN, SPAN),), 8_000.0, clock_valid=False), id="waited"),
        pytest.param(BatchCost((Load(LANES[7], 0, SPAN, SPAN),), 8_000.0), id="had no suspect in it"),
    ],
)
def test_a_batch_without_evidence_ends_the_search(batch: BatchCost) -> None:
    search = Search.among(dict.fromkeys(LANES[:2], Claim(CLAIM)))
    assert not tried(search, batch, RATE_MS, HEALTHY_MS).search.groups


def test_a_search_without_a_quick_lane_ends() -> None:
    """Whatever makes all batches long, it is none of the suspects."""
    search = Search.among({(TP, h): Claim(CLAIM) for h in cuts(64)}, some_quick=True)
    for trials in range(MOST_TRIALS + 1):
        loads = tuple(Load(lane, i, SPAN, SPAN) for i, lane in enumerate(search.trial))
        finding = tried(search, BatchCost(loads, 2 * BUDGET_MS), RATE_MS, HEALTHY_MS)
        search = finding.search
        assert bool(search.groups) == (trials < MOST_TRIALS)
    assert finding.even


@pytest.mark.parametrize(
    ("longer_ms", "slow"),
    [
        pytest.param(2_000.0, False, id="a difference within chance is no reason"),
        pytest.param(4_500.0, True, id="a larger difference is"),
    ],
)
def test_a_batch_that_noise_makes_longer_proves_no_lane_slow(longer_ms: float, slow: bool) -> None:
    search = Search.among(dict.fromkeys(LANES[:2], Claim(8.0)), some_quick=True)
    batch = BatchCost((Load(LANES[0], 0, 1_000, 1_000),), HEALTHY_MS + longer_ms)
    assert bool(tried(search, batch, RATE_MS, HEALTHY_MS, 600.0).slow) == slow


def test_a_claim_does_not_grow_with_the_delay_of_a_batch() -> None:
    """Otherwise the suspect would read less, the next claim would be even higher, and so on."""
    search = Search.among(dict.fromkeys(LANES, Claim(CLAIM)), some_quick=True)
    loads = tuple(Load(lane, i, SPAN, SPAN) for i, lane in enumerate(search.trial))
    after = tried(search, BatchCost(loads, 60_000.0), RATE_MS, HEALTHY_MS).search
    assert {after.claims[lane].ms for lane in search.trial} == {CLAIM}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(Claim(100.0), 200.0, id="all that its offset took, for half a record an offset"),
        pytest.param(Claim(100.0, 5.0), 160.0, id="less the time of the records beside it"),
        pytest.param(Claim(10.0, 5.0), 4.0, id="but no less than a healthy record, however many were beside it"),
    ],
)
def test_cost_of_a_record_in_a_slow_lane(claim: Claim, expected: float) -> None:
    assert claim.record_ms(0.5, 4.0) == pytest.approx(expected)
