"""Lanes steered by cost, against workloads whose costs are known: a slow key holds up only itself."""

from dataclasses import replace
from statistics import median

import pytest

from bench.workload import SPARK_MS, TP, Batch, Workload
from coordinator.plan.cost.batch_cost import BatchCost, Load
from coordinator.plan.cost.pace import START_RECORDS
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.poison import Strike
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts, hash_key
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange

HEALTHY = {b"k%d" % i: 1.0 for i in range(1_000)}
SLOW = b"k7"
BUDGET_MS = 10_000
RATE = 5_600.0  # 70 % of what eight slots can do


def skewed(**more: float) -> Workload:
    """A thousand even keys, one of them a hundred times slower, on eight slots."""
    return Workload({**HEALTHY, SLOW: 100.0}, slots=8, per_second=RATE, exact=True, **more)  # type: ignore[arg-type]


def healthy(key_hash: int) -> bool:
    return key_hash != hash_key(SLOW)


def test_a_slow_key_is_alone_in_its_lane_within_ten_batches_and_delays_no_other_key() -> None:
    work = skewed()
    work.run(10)
    after = work.run(30)
    alone = [s.hashes for b in after for s in b.lanes if hash_key(SLOW) in s.hashes]
    assert {h.size for h in alone} == {1}
    assert sorted(b.ms for b in after)[28] <= 1.2 * BUDGET_MS
    assert work.lag(healthy) <= 3 * RATE  # what comes in three seconds: they are at the end of the log


def test_a_key_too_slow_for_its_load_falls_behind_alone() -> None:
    work = Workload({**HEALTHY, SLOW: 1_000.0}, slots=8, per_second=2_000, exact=True)
    after = work.run(60)[30:]
    assert sorted(b.ms for b in after)[28] <= 1.2 * BUDGET_MS
    assert work.lag(lambda h: not healthy(h)) > 100
    assert work.lag(healthy) <= 15 * 2_000  # of one batch


FAST = {b"k%d" % i: 0.03 for i in range(40)}


def test_what_the_first_call_of_a_task_takes_gives_no_fast_key_a_lane_of_its_own() -> None:
    work = Workload(FAST, slots=4, per_second=200, exact=True, trigger_ms=1_000, first_ms=5.0)
    assert {h.size == 1 for b in work.run(100) for h in _hashes(b)} == {False}


def test_a_key_of_which_much_waits_has_a_lane_of_its_own_also_if_a_record_takes_little() -> None:
    work = Workload({**HEALTHY, SLOW: 20.0}, slots=4, per_second=2_000, exact=True)
    assert HashRange(hash_key(SLOW), hash_key(SLOW)) in _hashes(work.run(50)[-1])


@pytest.mark.parametrize("slow_ms", [8.0, 40.0, 100.0])
def test_of_a_slow_key_with_little_traffic_the_lane_stays_or_does_not_come(slow_ms: float) -> None:
    work = Workload({**FAST, SLOW: slow_ms}, slots=4, per_second=200, exact=True, trigger_ms=1_000)
    assert len({_hashes(b) for b in work.run(100)[20:]}) == 1


def _hashes(batch: Batch) -> frozenset[HashRange]:
    return frozenset(s.hashes for s in batch.lanes)


@pytest.mark.parametrize("slow_ms", [5_000.0, 10_000.0, 30_000.0])
def test_of_a_rare_key_that_is_very_slow_a_batch_seldom_reads_more_than_fits(slow_ms: float) -> None:
    """Most batches have none of its records; that they are rare is no reason to read five at once."""
    work = Workload({**HEALTHY, SLOW: slow_ms}, slots=8, per_second=1_000, exact=True)
    after = work.run(55)[15:]
    assert sorted(b.ms for b in after)[37] <= max(BUDGET_MS, 2 * slow_ms)
    assert max(b.ms for b in after) <= max(2 * BUDGET_MS, 3 * slow_ms)


@pytest.mark.parametrize(("slots", "slow_keys", "per_second"), [(2, 3, 800), (8, 8, 3_200)])
def test_as_many_slow_keys_as_slots_take_nothing_from_the_others(slots: int, slow_keys: int, per_second: int) -> None:
    """The others need two fifths of the slots; of the slow keys each could fill one."""
    slow = [b"k%d" % i for i in range(slow_keys)]
    work = Workload({**HEALTHY, **dict.fromkeys(slow, 4_000.0)}, slots=slots, per_second=per_second, exact=True)
    hashes = {hash_key(key) for key in slow}
    work.run(15)
    before, began, slow_lag = work.end, work.clock.now, work.lag(hashes.__contains__)
    lag = work.lag(lambda h: h not in hashes)
    work.run(25)
    arrived, took_ms = work.end - before, work.clock.now - began
    assert arrived - (work.lag(lambda h: h not in hashes) - lag) >= 0.95 * arrived
    read = arrived * slow_keys / len(HEALTHY) - (work.lag(hashes.__contains__) - slow_lag)
    assert read * 4_000.0 >= 0.2 * slots * took_ms, "they are read too"


def test_a_backlog_of_cheap_records_fills_each_batch_and_makes_no_lane_a_suspect() -> None:
    keys = dict.fromkeys(HEALTHY, 0.01)
    work = Workload(keys, slots=2, per_second=1_000.0, budget_ms=1_000, backlog=1_900_000, noisy_ms=300.0)
    for _ in range(9):
        work.run(1)
        assert not work.steering._known.trials.search.groups
    assert [round(batch.ms, -2) for batch in work.batches[-3:]] == [1_000.0] * 3


def test_by_the_clock_alone_lanes_that_were_away_start_small_and_double() -> None:
    work = Workload(HEALTHY, slots=2, per_second=1, backlog=200_000)
    known = work.run(14)[-1].rows
    work.anew = ((TP, WHOLE),)
    first, second = work.run(2)
    assert first.rows <= 1.1 * START_RECORDS * len(first.lanes)
    assert first.rows < min(known, second.rows)


def test_a_key_that_recovers_catches_up() -> None:
    work = Workload({**HEALTHY, SLOW: 1_000.0}, slots=8, per_second=2_000, exact=True)
    work.run(30)
    behind = work.lag(lambda h: not healthy(h))
    work.costs_now(k7=1.0)
    work.run(10)
    assert work.lag(lambda h: not healthy(h)) < behind / 10


def test_the_lane_of_a_key_that_recovers_merges_again_within_ten_batches() -> None:
    work = skewed(trigger_ms=BUDGET_MS)
    (alone,) = _lanes_of_the_key(work.run(20)[-1])
    work.costs_now(k7=1.0)
    (merged,) = _lanes_of_the_key(work.run(10)[-1])
    assert (alone.size, merged.size > 1) == (1, True)


@pytest.mark.parametrize("slow_ms", [500.0, 2_000.0])
def test_the_budget_holds_in_the_first_batch_too(slow_ms: float) -> None:
    """To within one record; a later batch without time to start workers reads no more of the slow key."""
    keys = {b"key-%d" % i: 1.0 for i in range(20)} | {SLOW: slow_ms}
    work = Workload(keys, slots=2, per_second=200.0, exact=True, cold_ms=4_000.0, backlog=12_000)
    assert max(batch.ms for batch in work.run(6)) <= BUDGET_MS + slow_ms


def _lanes_of_the_key(batch: Batch) -> set[HashRange]:
    return {s.hashes for s in batch.lanes if hash_key(SLOW) in s.hashes}


@pytest.mark.parametrize("slots", [2, 4, 8])
def test_slots_end_together_once_lanes_are_settled(slots: int) -> None:
    """Even lanes would leave 11 % of eight slots idle: the hash is not that even."""
    work = Workload(HEALTHY, slots=slots, per_second=900.0 * slots, exact=True)
    after = work.run(40)[20:]
    used = sum(sum(b.slots_ms) for b in after) / (slots * sum(b.ms for b in after))
    assert used >= 0.9


def test_lanes_are_not_cut_for_ever_at_steady_load() -> None:
    work = skewed()
    before = {s.hashes for s in work.run(60)[-1].lanes}
    after = {s.hashes for s in work.run(20)[-1].lanes}
    assert len(after - before) <= 4


@pytest.mark.parametrize(
    ("exact", "slow_ms", "most"),
    [
        pytest.param(True, 100.0, 1, id="costs are known, one key is slow"),
        pytest.param(True, 1.0, 1, id="costs are known, all keys alike"),
        pytest.param(False, 100.0, 1, id="the clock alone, one key is slow"),
        pytest.param(False, 1.0, 1, id="the clock alone, all keys alike"),
    ],
)
def test_at_steady_load_lanes_change_seldom(exact: bool, slow_ms: float, most: int) -> None:
    """In any minute; the aim is once."""
    work = Workload({**HEALTHY, SLOW: slow_ms}, slots=8, per_second=RATE if slow_ms > 1 else 6_000.0, exact=exact)
    work.run(60)
    changed: list[float] = []
    for _ in range(60):
        before = work.steering._known.bounds
        work.run(1)
        changed += [work.clock.now] if work.steering._known.bounds != before else []
    assert max((sum(at <= x < at + 60_000 for x in changed) for at in changed), default=0) <= most


@pytest.mark.parametrize(
    ("slow_ms", "per_second", "budget_ms", "kept", "longest"),
    [
        pytest.param({b"k7": 100.0}, RATE, BUDGET_MS, 0.95, 1.2, id="one key a hundred times slower"),
        pytest.param(
            {b"k7": 100.0, b"k300": 100.0}, 5_000.0, BUDGET_MS, 0.95, 1.2, id="two of them", marks=pytest.mark.long
        ),
        pytest.param({b"k7": 100.0}, RATE, 2_000, 0.85, 1.3, id="a short budget, in which few of its records come"),
        pytest.param({b"k7": 1_000.0}, RATE, BUDGET_MS, 0.9, 1.3, id="one that needs six slots, whose records are few"),
    ],
)
def test_by_the_clock_alone_healthy_keys_keep_their_rate(
    slow_ms: dict[bytes, float], per_second: float, budget_ms: int, kept: float, longest: float
) -> None:
    """Thirty batches, from the first that takes as long as one may: in them suspects are searched and found.

    Medians of five arrivals, since the keys of records come by chance.
    """
    found = []
    for seed in range(1, 6):
        work = Workload({**HEALTHY, **slow_ms}, slots=8, per_second=per_second, budget_ms=budget_ms, seed=seed)
        others = {hash_key(key) for key in HEALTHY if key not in slow_ms}
        while not work.run(1)[0].ms > 0.8 * budget_ms:
            assert len(work.batches) < 40
        before, lag = work.end, work.lag(others.__contains__)
        after = work.run(30)
        arrived, late = work.end - before, work.lag(others.__contains__) - lag
        found.append(((arrived - late) / arrived, sorted(b.ms for b in after[10:])[18]))
    assert median(part for part, _ in found) >= kept
    assert median(ms for _, ms in found) <= longest * budget_ms


RARER = [(30_000.0, 500), (30_000.0, 2_000), (10_000.0, 2_000)]


@pytest.mark.parametrize(
    ("slow_ms", "per_second"),
    [
        (5_000.0, 4_000),
        *(pytest.param(*each, marks=pytest.mark.long) for each in RARER),
    ],
)
def test_by_the_clock_alone_a_rare_and_very_slow_key_is_isolated(slow_ms: float, per_second: int) -> None:
    """Most batches have none of its records, so a batch without one proves nothing. After ten minutes it is alone.

    Medians of three arrivals, since its records come by chance.
    """
    found = []
    for seed in range(1, 4):
        work = Workload({**HEALTHY, SLOW: slow_ms}, slots=8, per_second=per_second, seed=seed)
        work.run_for(600_000)
        before, lag = work.end, work.lag(healthy)
        after = sorted(b.ms for b in work.run_for(400_000))
        arrived, of_a_batch = work.end - before, per_second * slow_ms / 1_000
        late = max(0.0, work.lag(healthy) - lag - of_a_batch)
        found.append((after[int(0.95 * len(after))], after[-1], _lane_of_the_key(work).size, late / max(1, arrived)))
    p95, longest, hashes, late_part = (median(of) for of in zip(*found, strict=True))
    assert p95 <= 2 * slow_ms + BUDGET_MS
    assert longest <= 5 * slow_ms + BUDGET_MS
    assert hashes <= WHOLE.size // 32
    assert late_part <= 0.05


def _lane_of_the_key(work: Workload) -> HashRange:
    return next(q.piece.hashes for q in work.quotas if hash_key(SLOW) in q.piece.hashes)


def test_by_the_clock_alone_a_rare_key_that_recovers_is_no_longer_a_suspect() -> None:
    work = Workload({**HEALTHY, SLOW: 30_000.0}, slots=8, per_second=500)
    work.run(80)
    behind = work.lag(lambda h: not healthy(h))
    work.costs_now(k7=1.0)
    work.run(40)
    assert work.lag(lambda h: not healthy(h)) < behind / 10
    assert not {"suspect, waits", "suspect, on trial"} & {str(q.why) for q in work.quotas}


@pytest.mark.parametrize("pause_ms", [30_000, 120_000])
def test_a_pause_of_the_sink_makes_suspects_for_two_minutes_at_most(pause_ms: int) -> None:
    """All lanes are suspects then. Half of the slots' time is free; the lag of the pause itself takes as long again."""
    work = Workload(HEALTHY, slots=8, per_second=4_000)
    work.run(15)
    work.spark_ms = pause_ms
    work.run(1)
    work.spark_ms = SPARK_MS
    work.run_for(pause_ms + 120_000)
    assert work.lag(healthy) <= 3 * 4_000
    assert {str(q.why) for q in work.quotas} == {"all there is"}


@pytest.mark.parametrize("slow_ms", [1.0, 200.0])
def test_while_a_struck_lane_is_on_trial_suspects_of_a_stall_are_read(slow_ms: float) -> None:
    work = Workload({**HEALTHY, SLOW: slow_ms}, slots=8, per_second=500)
    work.run(10)
    work.backlog, work.spark_ms = 40_000, 60_000
    work.run(1)
    work.spark_ms = SPARK_MS
    assert work.steering._known.trials.search.groups
    struck = _lane_of_the_key(work)
    position = min(x.position for x in work.progress.segments)
    work.strikes = (Strike(TP, struck, OffsetRange(position, position + 4_000), 2),)
    work.run(60)
    assert work.lag(lambda h: h not in struck) <= 10 * 500


@pytest.mark.parametrize("trigger_ms", [BUDGET_MS, 6 * BUDGET_MS])
def test_suspects_of_a_pause_are_cleared_although_the_clock_is_no_evidence_on_a_trigger(
    trigger_ms: int,
) -> None:
    """Each batch ends before the next trigger, so none has stalled."""
    work = Workload(HEALTHY, slots=8, per_second=500, trigger_ms=trigger_ms)
    work.run(15)
    work.spark_ms = 120_000
    work.run(1)
    work.spark_ms = SPARK_MS
    work.run(45)
    assert not work.steering._known.trials.search.groups
    assert work.lag(healthy) <= 3 * 500 * trigger_ms / 1000


def test_by_the_clock_alone_equal_lanes_lose_no_throughput() -> None:
    """More comes than slots can do: half of all lanes are tried, and the slots are as busy as ever."""
    work = Workload(HEALTHY, slots=8, per_second=9_000)
    work.run(15)
    after = work.run(15)
    took_ms = sum(b.ms + SPARK_MS for b in after)
    assert sum(b.rows for b in after) >= 0.8 * 8 * took_ms


def test_by_the_clock_alone_all_keys_are_slower_at_once_and_none_is_a_suspect_for_long() -> None:
    """A sink that is slower for all keys is no reason to try its lanes one by one."""
    work = Workload(HEALTHY, slots=8, per_second=1_500, backlog=1_200_000)
    work.run(12)
    work.costs *= 3
    work.run(15)
    after = work.run(15)
    assert sum(b.rows for b in after) >= 0.7 * 8 / 3 * sum(b.ms + SPARK_MS for b in after)


def test_by_the_clock_alone_a_single_lane_soon_learns_that_all_records_are_slower() -> None:
    work = Workload(HEALTHY, slots=1, per_second=300, lanes=1)
    work.run(20)
    work.costs *= 20
    assert max(b.ms for b in work.run(30)[2:]) <= 1.2 * BUDGET_MS


def test_the_wait_for_a_long_trigger_does_not_count_as_work() -> None:
    """Batches of a minute, most of it waiting: everything is read all the same."""
    work = Workload(HEALTHY, slots=8, per_second=500, trigger_ms=60_000)
    after = work.run(12)[-3:]
    assert min(b.rows for b in after) >= 0.9 * 500 * 60


@pytest.mark.parametrize("exact", [False, True])
def test_waiting_for_a_trigger_as_long_as_the_budget_takes_nothing_from_it(exact: bool) -> None:
    work = Workload(HEALTHY, slots=8, per_second=5_000, exact=exact, trigger_ms=BUDGET_MS)
    work.run(30)
    assert work.lag(healthy) <= 3 * 5_000 * BUDGET_MS / 1000
    if exact:
        assert work.steering.beside_ms <= BUDGET_MS / 5


def test_an_odd_pause_between_batches_soon_does_not_count_as_work() -> None:
    work = Workload(HEALTHY, slots=8, per_second=500, trigger_ms=23_457)
    work.run(30)
    assert work.lag(healthy) <= 3 * 500 * 24


def test_a_backlog_is_read_in_growing_batches() -> None:
    work = Workload(dict.fromkeys(HEALTHY, 0.001), slots=2, per_second=1, backlog=1_000_000)
    rows = [b.rows for b in work.run(6)]
    assert rows[0] <= 2_100
    assert sum(rows) >= 1_000_000


def test_without_a_budget_a_batch_reads_all_there_is() -> None:
    work = Workload(HEALTHY, slots=2, per_second=1, backlog=50_000, budget_ms=0)
    assert work.run(1)[0].rows == 50_000


@pytest.mark.parametrize("exact", [pytest.param(True, id="costs are known"), pytest.param(False, id="the clock alone")])
def test_the_start_of_workers_does_not_count_as_work(exact: bool) -> None:
    """The first batch takes a budget and more, with ten records in it; the second reads as if nothing had been."""
    work = Workload(HEALTHY, slots=8, per_second=1, backlog=10, exact=exact, cold_ms=15_000, budget_ms=10_000)
    work.run(1)
    work.backlog += 4_000
    assert work.run(1)[0].rows >= 4_000
    assert {str(q.why) for q in work.quotas} == {"all there is"}


def test_time_before_the_first_record_is_not_a_cost_of_records() -> None:
    """A second of a budget of three: quotas soon fill what is left of it."""
    work = Workload(HEALTHY, slots=8, per_second=1, backlog=200_000, exact=True, open_ms=1_000, budget_ms=3_000)
    after = work.run(10)[4:]
    assert min(b.rows for b in after) >= 0.5 * 8 * (3_000 - 1_000)
    assert max(b.ms for b in after) <= 1.1 * 3_000


def test_a_key_that_becomes_dear_is_within_the_budget() -> None:
    """From its first dear record on, to within one of them."""
    work = Workload({**HEALTHY, SLOW: 1.0}, slots=8, per_second=RATE, exact=True, budget_ms=3_000)
    work.run(5)
    work.costs_now(k7=300.0)
    assert max(batch.ms for batch in work.run(20)) <= 3_000 + 300


@pytest.mark.parametrize("exact", [pytest.param(True, id="costs are known"), pytest.param(False, id="the clock alone")])
def test_the_fixed_time_of_each_batch_is_not_a_cost_of_records(exact: bool) -> None:
    """Half of the budget is Spark's own or the sink's: batches do not become smaller and smaller for it."""
    work = Workload(HEALTHY, slots=8, per_second=1, backlog=400_000, exact=exact, spark_ms=1_500, budget_ms=3_000)
    after = work.run(25)[10:]
    assert sum(b.rows for b in after) >= 0.6 * len(after) * 8 * (3_000 - 1_500)
    assert max(b.ms for b in after) <= 1.1 * 3_000


def test_time_until_tasks_pass_on_records_is_not_a_cost_of_records() -> None:
    """Four seconds and a half, and half a second at the end: as soon as it is reported, quotas fill the rest."""
    work = Workload(HEALTHY, slots=8, per_second=1, backlog=400_000, spark_ms=5_000, early=0.9)
    work.run(3)
    assert 0.9 <= work.quotas[0].rate_ms <= 1.5
    after = work.run(8)[2:]
    assert sum(b.rows for b in after) >= 0.7 * len(after) * 8 * (BUDGET_MS - 5_000)


@pytest.mark.parametrize(
    ("handed_ms", "start_ms"),
    [
        pytest.param((None, None, None, None), None, id="no report came"),
        pytest.param((None, 900.0, None, None), 900.0, id="one report came"),
        pytest.param((500.0, 900.0, 700.0, 1_000.0), 700.0, id="half of them had records"),
        pytest.param((500.0, 600.0, 8_000.0, 8_100.0), 600.0, id="two cores: the others waited for the first"),
    ],
)
def test_when_tasks_handed_records_on(handed_ms: tuple[float | None, ...], start_ms: float | None) -> None:
    lanes = [Slice(TP, hashes, OffsetRange(0, 9)) for hashes in cuts(len(handed_ms))]
    costs = [replace(SliceCost.nothing(s), handed_ms=ms) for s, ms in zip(lanes, handed_ms, strict=True)]
    loads = (Load(s.lane, task, 9, 9.0, cost) for task, (s, cost) in enumerate(zip(lanes, costs, strict=True)))
    assert BatchCost(tuple(loads), 10_000.0).start_ms == start_ms


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize(
    ("budget_ms", "most_ms", "used"),
    [
        pytest.param(3_000, 1_200, 0.7, id="a third of the budget"),
        pytest.param(3_000, 2_500, 0.65, id="half of the budget"),
        pytest.param(10_000, 2_500, 0.8, id="little of it"),
    ],
)
def test_time_of_sparks_own_that_comes_and_goes_makes_no_batch_smaller(
    budget_ms: int, most_ms: int, used: float, seed: int
) -> None:
    """On a busy machine: of the time that is left the slots use most, and no search goes on without an end."""
    work = Workload(
        HEALTHY,
        slots=8,
        per_second=1,
        backlog=1_900_000,
        budget_ms=budget_ms,
        seed=seed,
        spark_ms=0.2 * most_ms,
        noisy_ms=0.8 * most_ms,
    )
    work.run(8)
    began = work.clock.now
    after = work.run(14)
    possible = 8 * (1 - 0.6 * most_ms / budget_ms)
    assert sum(b.rows for b in after) >= used * possible * (work.clock.now - began)


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_slow_key_is_found_although_sparks_own_time_comes_and_goes(seed: int) -> None:
    work = Workload({**HEALTHY, SLOW: 100.0}, slots=8, per_second=4_800, spark_ms=500, noisy_ms=2_000, seed=seed)
    while not work.run(1)[0].ms > 0.8 * BUDGET_MS:
        assert len(work.batches) < 60
    before, lag = work.end, work.lag(healthy)
    after = work.run(30)
    arrived = work.end - before
    assert arrived - (work.lag(healthy) - lag) >= 0.9 * arrived
    assert sorted(b.ms for b in after[10:])[18] <= 1.2 * BUDGET_MS
