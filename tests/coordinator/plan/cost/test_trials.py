"""Lanes that start small, after they were away; and suspects that cannot wait alone."""

from coordinator.plan.cost.batch_cost import BatchCost, Load
from coordinator.plan.cost.costs import Costs
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import Quota, Why
from coordinator.plan.cost.search import PROOF, CostClaim, Search
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


def test_a_suspect_without_records_is_cleared_once_it_has_read_as_much_as_in_the_long_batch() -> None:
    """It reads twice as much in each batch, and moves on: the others wait for it."""
    low, high = ((TP, hashes) for hashes in cuts(2))
    trials = Trials(Costs(), 10_000.0, 8, fixed=False)
    trials.search = Search.among(dict.fromkeys((low, high), CostClaim(5.0, 0.0, 400)), PROOF, known=True)
    for span, pace in ((100, 2), (150, 4)):
        trials.learn(BatchCost((Load(low, 0, span, 0.0),), 2_000.0), {}, 0, waited=False)
        assert (trials.search.trial, trials.search.groups[0].pace) == ((low,), pace)
    trials.learn(BatchCost((Load(low, 0, 200, 0.0),), 2_000.0), {}, 0, waited=False)
    assert trials.search.trial == (high,)
