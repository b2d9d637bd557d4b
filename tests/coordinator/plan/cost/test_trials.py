"""Lanes that start small, after they were away; and suspects that cannot wait alone."""

from coordinator.plan.cost.costs import Costs
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import Quota, Why
from coordinator.plan.cost.search import CostClaim, Search
from coordinator.plan.cost.trials import Trials
from coordinator.plan.planning import OwnedRange
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, HashRange
from coordinator.values.subscription import TopicPartition

TP, KEY = TopicPartition("orders", 0), HashRange(0, 0)


def test_a_lane_of_one_key_that_was_away_reads_at_least_one_offset() -> None:
    """By its share of all hashes it would read no record at all."""
    costs, dense = Costs(), Cell(KEY, 0.5)
    costs._profiles = {TP: (dense, Cell(HashRange(1, HASH_MAX), 0.5))}
    trials = Trials(costs, 10_000.0, 8, fixed=False)
    trials.away((TP, KEY))
    (allowed,) = trials.limited([Quota(TP, OwnedRange(KEY, 4, "e.1"), 6, dense, 1.0)], ())
    assert (allowed.span, allowed.why) == (1, Why.START)


def test_suspects_of_a_topic_in_order_are_no_suspects() -> None:
    """Rule: partition-order. If one waited at the lowest position, the whole partition would wait for ever."""
    low, high = cuts(2)
    lanes = [Quota(TP, OwnedRange(h, at, "e.1"), 20, Cell(h, 1.0), 1.0) for h, at in ((low, 7), (high, 6))]
    trials = Trials(Costs(), 10_000.0, 8, fixed=False)
    trials.search = Search().also({(TP, low): CostClaim(5.0, 0.0, 4), (TP, high): CostClaim(5.0, 0.0, 4)})
    assert trials.limited(lanes, ()) == lanes
    assert trials.search.groups
    trials.limited(lanes, {TP.topic})
    assert trials.search == Search()
