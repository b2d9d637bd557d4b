"""The lanes of joined topics: the costs of one topic cut all of them."""

from coordinator.plan.cost.knowledge import Knowledge
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import Budget, Quota
from coordinator.plan.planning import OwnedRange
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition

ORDERS, PAYMENTS, CLICKS = (TopicPartition(topic, 1) for topic in ("orders", "payments", "clicks"))
LEFT, RIGHT = cuts(2)


def known() -> Knowledge:
    return Knowledge(Budget(10_000, 2), 1, ("orders", "payments"), fixed=False)


def test_bounds_of_a_search_in_one_topic_cut_the_other_too() -> None:
    knowledge = known()
    knowledge.bounds = {ORDERS: (4,), PAYMENTS: (4,), CLICKS: (4,)}
    knowledge.trials._parts[PAYMENTS] = {RIGHT.lo}
    assert knowledge.lanes(ORDERS) == knowledge.lanes(PAYMENTS) == (4, RIGHT.lo)
    assert knowledge.lanes(CLICKS) == (4,)
    assert knowledge.lanes(TopicPartition("orders", 0)) == ()


def test_a_topic_with_little_work_is_cut_like_its_partner() -> None:
    knowledge = known()
    work = [
        Quota(tp, OwnedRange(WHOLE, 0, "e"), end, Cell(WHOLE, 1.0), 0.0) for tp, end in ((ORDERS, 9), (PAYMENTS, 900))
    ]
    knowledge.cut(work, 4, 0)
    assert len(knowledge.lanes(ORDERS)) == 3
    assert knowledge.lanes(ORDERS) == knowledge.lanes(PAYMENTS)
