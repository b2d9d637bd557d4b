"""The cost of lanes whose task works on many keys at once: a key alone in its lane is no dearer than others."""

import pytest

from coordinator.plan.cost.batch_cost import BatchCost, Load
from coordinator.plan.cost.costs import SLOW, Costs
from coordinator.plan.cost.telemetry import MOST_KEYS, KeyCost, SliceCost
from coordinator.progress.slices import LaneId
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("t", 0)
AT_ONCE, WAIT_MS, SPAN = 16, 10.0, 2_000
LOWER, UPPER = cuts(2)
ONE = HashRange(UPPER.lo, UPPER.lo)
REST = HashRange(UPPER.lo + 1, UPPER.hi)


def load(hashes: HashRange, rows_of_keys: list[int], task: int = 0, wait_ms: float = WAIT_MS) -> Load:
    """A lane of a finished task: each record of each key waited so long."""
    worked = [KeyCost(hashes.lo + i, wait_ms * rows, rows) for i, rows in enumerate(rows_of_keys)]
    total = sum(rows_of_keys)
    costliest = tuple(sorted(worked, key=lambda k: -k.ms)[:MOST_KEYS])
    cost = SliceCost(TP, hashes, OffsetRange(0, SPAN), total, 0, 0.0, wait_ms * total, costliest, finished=True)
    return Load((TP, hashes), task, SPAN, total, cost)


def learnt(*loads: Load) -> tuple[Costs, BatchCost]:
    costs, batch = Costs(), BatchCost(loads, 1_000.0)
    costs.learn(batch, concurrency=AT_ONCE, reading_ms=0.0)
    return costs, batch


def slow(costs: Costs) -> set[LaneId]:
    return {*costs.slow(costs.of_most([TP]))}


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_a_key_alone_in_its_lane_costs_what_others_cost(rows: int) -> None:
    """It waited as long as each of them, while its task worked on fifteen others."""
    costs, _ = learnt(load(LOWER, [3] * 300), load(ONE, [rows]), load(REST, [3] * 300))
    assert costs.cell((TP, ONE)).record_ms == pytest.approx(WAIT_MS / AT_ONCE)
    assert not slow(costs)


def test_of_two_keys_in_a_lane_the_one_with_more_records_is_no_slow_one() -> None:
    costs, _ = learnt(load(LOWER, [3] * 300), load(UPPER, [2, 1]))
    assert not slow(costs)


def test_a_key_that_its_task_waited_for_costs_its_whole_time() -> None:
    costs, batch = learnt(load(LOWER, [3] * 300), load(ONE, [100], task=1), load(REST, [1] * 16, task=1))
    assert costs.cell((TP, ONE)).record_ms == pytest.approx(WAIT_MS)
    assert batch.slot_ms(batch.loads[1], AT_ONCE) == 100 * WAIT_MS
    assert slow(costs) == {(TP, ONE)}


def test_a_slow_key_is_slow_beside_any_others() -> None:
    """It costs a sixteenth of its time where its task did not wait for it, and that is a multiple still."""
    costs, _ = learnt(load(LOWER, [3] * 300), load(ONE, [2], wait_ms=4 * SLOW * WAIT_MS))
    assert slow(costs) == {(TP, ONE)}


def test_without_concurrency_a_lane_costs_the_sum_of_its_keys() -> None:
    costs, batch = Costs(), BatchCost((load(LOWER, [3] * 300), load(ONE, [3])), 1_000.0)
    costs.learn(batch, concurrency=1, reading_ms=0.0)
    assert [batch.slot_ms(x, 1) for x in batch.loads] == [900 * WAIT_MS, 3 * WAIT_MS]
    assert costs.cell((TP, LOWER)).record_ms == costs.cell((TP, ONE)).record_ms == WAIT_MS
