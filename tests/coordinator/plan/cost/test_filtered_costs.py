"""Records that a filter drops count in the cost model: a stream that is almost empty is read as fast as tasks can."""

from dataclasses import replace

import pytest

from bench.workload import TP, Workload
from coordinator.plan.cost.batch_cost import DROPPED, BatchCost, Load, with_dropped
from coordinator.plan.cost.costs import Costs
from coordinator.plan.cost.pace import BUFFERED, Pace
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts, hash_key
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

KEYS = [b"k%d" % i for i in range(1_000)]
LOWER, UPPER = cuts(2)
OTHER = TopicPartition("t", 1)
BACKLOG, SLOTS, BUDGET_MS, READ_MS = 1_900_000, 4, 1_000, 0.005


def backlog(record_ms: float = 0.0, **more: object) -> Workload:
    """With nothing but reading, four slots take 2.4 s for it."""
    times = {"slots": SLOTS, "per_second": 1.0, "budget_ms": BUDGET_MS, "backlog": BACKLOG, "read_ms": READ_MS}
    return Workload(dict.fromkeys(KEYS, record_ms), **(times | more))  # type: ignore[arg-type]


def position(work: Workload) -> int:
    """The first offset that some hash has not passed."""
    return min(s.position for s in work.progress.segments)


def read_all(work: Workload) -> float:
    """The seconds until the whole backlog is done."""
    while position(work) < BACKLOG:
        work.run(1)
        assert len(work.batches) <= 40, f"still at offset {position(work)}"
    return (work.clock.now - work._started) / 1_000


@pytest.mark.parametrize("keeps", [0.01, 0.001, 0.0], ids=["99 % denied", "99.9 % denied", "100 % denied"])
def test_a_stream_of_dropped_records_is_read_to_its_end_in_few_batches(keeps: float) -> None:
    """It doubles what it reads, as at any start, and then fills the budget."""
    work = backlog(keeps=keeps)
    assert read_all(work) <= 6.0
    assert len(work.batches) <= 14


@pytest.mark.parametrize("exact", [pytest.param(True, id="costs are known"), pytest.param(False, id="the clock alone")])
@pytest.mark.parametrize(("keeps", "record_ms"), [(0.001, 20.0), (0.01, 1.0)], ids=["one of 1,000", "one of 100"])
def test_where_the_few_kept_records_are_dear_batches_fill_the_budget_and_keep_it(
    keeps: float, record_ms: float, exact: bool
) -> None:
    work = backlog(record_ms, keeps=keeps, exact=exact)
    ideal = BACKLOG * (READ_MS + keeps * record_ms) / SLOTS / 1_000
    assert read_all(work) <= 2.0 * ideal
    assert sorted(b.ms for b in work.batches)[-2] <= 1.2 * BUDGET_MS


@pytest.mark.parametrize("exact", [pytest.param(True, id="costs are known"), pytest.param(False, id="the clock alone")])
def test_lanes_whose_records_are_all_dropped_make_no_others_slow(exact: bool) -> None:
    """A filter of key ranges keeps a quarter of the hashes."""
    denied = [k for k in KEYS if hash_key(k) < WHOLE.size * 3 // 4]
    work = backlog(0.05, denied=denied, exact=exact)
    ideal = sum(READ_MS + 0.05 * kept for kept in work.kept[:BACKLOG].tolist()) / SLOTS / 1_000
    assert read_all(work) <= 2.0 * ideal


def load(tp: TopicPartition, hashes: HashRange, task: int, rows: int, filtered: int, span: int = 1_000) -> Load:
    cost = SliceCost.nothing(Slice(tp, hashes, OffsetRange(0, span)))
    return Load((tp, hashes), task, span, rows, replace(cost, rows=rows, filtered=filtered, finished=True, read_ms=9.0))


@pytest.mark.parametrize(
    ("loads", "dropped"),
    [
        pytest.param([load(TP, WHOLE, 0, 10, 990)], [990], id="one task of a partition"),
        pytest.param([load(TP, WHOLE, 0, 10, 2_000)], [990], id="at most its offsets: a task reads ahead"),
        pytest.param([load(TP, LOWER, 0, 4, 400), load(TP, UPPER, 1, 6, 500)], [450, 450], id="each of its own lane"),
        pytest.param([load(TP, LOWER, 0, 4, 900), load(TP, UPPER, 1, 6, 0)], [450, 450], id="one fetched for both"),
        pytest.param([load(TP, LOWER, 0, 4, 900), load(TP, UPPER, 1, 0, 0, 500)], [600, 300], id="one ended early"),
        pytest.param([load(TP, WHOLE, 0, 10, 990), load(OTHER, WHOLE, 1, 9, 0)], [990, 0], id="of one partition only"),
        pytest.param([load(TP, WHOLE, 0, 0, 9)._replace(span=0)], [0], id="a task that ended at its first offset"),
        pytest.param([load(TP, WHOLE, 0, 10, 0), Load((OTHER, WHOLE), 1, 5, 5)], [0, 0], id="no filter"),
    ],
)
def test_the_dropped_records_of_each_lane(loads: list[Load], dropped: list[float]) -> None:
    found = with_dropped(loads)
    assert [x.rows for x in found] == pytest.approx([x.rows + DROPPED * d for x, d in zip(loads, dropped, strict=True)])
    assert [(x.kept, x.cost) for x in found] == [(x.rows, x.cost) for x in loads]


def test_dropped_records_count_as_parts_of_records_in_density_and_cost() -> None:
    batch = BatchCost(with_dropped([load(TP, WHOLE, 0, 100, 900)]), 1_000.0)
    rows = 100 + 900 * DROPPED
    assert (batch.fullest, batch.reading_ms, batch.thinned) == pytest.approx((rows, 9.0 / rows, rows / 100))
    costs = Costs()
    worked = replace(batch.loads[0].cost or SliceCost.nothing(Slice(TP, WHOLE, OffsetRange(0, 1))), function_ms=380.0)
    for _ in range(50):
        costs.learn(BatchCost((batch.loads[0]._replace(cost=worked),), 1_000.0), concurrency=1, reading_ms=0.5)
    cell = costs.cell((TP, WHOLE))
    assert (cell.density, cell.record_ms) == pytest.approx((rows / 1_000, 0.5 + 380.0 / rows), rel=0.02)


def test_buffers_hold_no_dropped_record() -> None:
    """Each kept record takes 10 ms behind the read; of a hundred read ones, buffers hold one."""
    pace = replace(Pace().after(10_000, 1_200), thinned=100.0)
    assert pace.rate_ms == pytest.approx(0.1, rel=0.05)
    assert BUFFERED * 0.1 < 9_000
    assert pace.dear(10_000)
    assert not replace(pace, thinned=1.0).dear(10_000)
