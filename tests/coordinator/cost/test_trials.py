"""Lanes that start small: after they were away, or were cleared of a suspicion."""

from coordinator.cost.costs import Costs
from coordinator.cost.profile import Cell
from coordinator.cost.quotas import Quota, Why
from coordinator.cost.trials import Trials
from coordinator.plan.planning import OwnedRange
from coordinator.ranges import HASH_MAX, HashRange
from coordinator.subscription import TopicPartition

TP, KEY = TopicPartition("orders", 0), HashRange(0, 0)


def test_a_lane_of_one_key_that_was_away_reads_at_least_one_offset() -> None:
    """By its share of all hashes it would read no record at all."""
    costs, dense = Costs(), Cell(KEY, 0.5)
    costs._profiles = {TP: (dense, Cell(HashRange(1, HASH_MAX), 0.5))}
    trials = Trials(costs, 10_000.0, 8, fixed=False)
    trials.away((TP, KEY))
    (allowed,) = trials.limited([Quota(TP, OwnedRange(KEY, 4, "e.1"), 6, dense, 1.0)])
    assert (allowed.span, allowed.why) == (1, Why.START)
