"""What the page shows: the worst first, and no more rows than fit."""

from dataclasses import replace

from coordinator.progress.failing import FailingRecord
from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.page.facts import MOST, overview
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition

TPS = [TopicPartition("orders", number) for number in range(2 * MOST)]
STATE = GroupState(
    now_ms=10_000,
    meta={},
    leases_ms={},
    members={},
    topics={},
    segments=dict.fromkeys(TPS, ((WHOLE, 5),)),
    owners={},
    stable=dict.fromkeys(TPS, 5),
    ends={tp: 5 + tp.partition for tp in TPS},
    ends_ms={"orders": 7_000},
)


def look(state: GroupState = STATE, *failing: FailingRecord) -> GroupLook:
    return GroupLook("g", state, failing)


def test_the_partitions_with_the_largest_lag_come_first_and_the_others_are_counted() -> None:
    seen = overview(look())
    assert [row["lag"] for row in seen["partitions"]] == list(range(2 * MOST - 1, MOST - 1, -1))
    assert seen["topics"] == {"orders": 2 * MOST}
    assert (seen["lag"], seen["end_age_s"]) == (sum(range(2 * MOST)), 3.0)


def test_no_log_end_is_known__no_lag() -> None:
    seen = overview(look(replace(STATE, ends={}, ends_ms={})))
    assert (seen["lag"], seen["end_age_s"], seen["partitions"][0]["lag"]) == (None, None, None)


def test_parked_keys_come_before_those_that_are_tried_again() -> None:
    tried = [FailingRecord(TPS[1], key, 7, key, 0, False, "ValueError", "no") for key in range(1, MOST + 1)]
    parked = FailingRecord(TPS[1], 99, 7, 1, 0, True, "KeyError", "no")
    seen = overview(look(STATE, *tried, parked))
    assert [row["attempts"] for row in seen["failing"]] == [1, *range(MOST, 1, -1)]
    assert seen["failing_keys"] == {"deferred": MOST, "parked": 1}
    assert {row["failing"] for row in seen["partitions"]} == {0}, "its partition is not among the worst"
