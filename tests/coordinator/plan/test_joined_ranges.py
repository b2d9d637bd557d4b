"""A hash of joined topics is read only while it is owned in all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.joined_ranges import owned_in_all
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

TOPICS = ("orders", "payments")
ORDERS, PAYMENTS, CLICKS = (TopicPartition(topic, 0) for topic in (*TOPICS, "clicks"))
LEFT, RIGHT = cuts(2)
EIGHTHS = cuts(8)


def owned(*hashes: HashRange, position: int = 10, ceiling: int | None = None) -> tuple[OwnedRange, ...]:
    return tuple(OwnedRange(h, position, "e", ceiling) for h in hashes)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        pytest.param({ORDERS: owned(WHOLE), PAYMENTS: owned(LEFT, RIGHT)}, None, id="the same hashes, cut otherwise"),
        pytest.param(
            {ORDERS: owned(WHOLE), PAYMENTS: owned(LEFT)},
            {ORDERS: (*owned(LEFT), *owned(RIGHT, ceiling=0)), PAYMENTS: owned(LEFT)},
            id="hashes of one topic wait",
        ),
        pytest.param(
            {ORDERS: owned(LEFT, ceiling=20)}, {ORDERS: owned(LEFT, ceiling=0)}, id="a topic without its partner waits"
        ),
        pytest.param(
            {ORDERS: owned(RIGHT), PAYMENTS: owned(LEFT)},
            {ORDERS: owned(RIGHT, ceiling=0), PAYMENTS: owned(LEFT, ceiling=0)},
            id="no common hash",
        ),
        pytest.param(
            {ORDERS: owned(WHOLE), TopicPartition("payments", 1): owned(WHOLE)},
            {ORDERS: owned(WHOLE, ceiling=0), TopicPartition("payments", 1): owned(WHOLE, ceiling=0)},
            id="another partition is no partner",
        ),
        pytest.param({CLICKS: owned(LEFT)}, None, id="other topics wait for nothing"),
        pytest.param({}, None, id="nothing is owned"),
    ],
)
def test_owned_in_all(work: OwnedRanges, expected: OwnedRanges | None) -> None:
    assert owned_in_all(work, TOPICS, {}) == (work if expected is None else expected)


def test_a_member_that_reads_one_of_the_topics_waits_for_none() -> None:
    work = {ORDERS: owned(LEFT)}
    assert owned_in_all(work, ["orders"], {}) is work


def test_a_hash_that_waits_because_of_a_failing_key_holds_up_nothing_of_the_other_topic() -> None:
    work = {ORDERS: owned(LEFT), PAYMENTS: owned(WHOLE)}
    assert owned_in_all(work, TOPICS, {ORDERS: owned(RIGHT, ceiling=10)}) == work


some_eighths = st.sets(st.sampled_from(EIGHTHS)).map(lambda found: owned(*sorted(found)))


@given(orders=some_eighths, payments=some_eighths, returns=some_eighths)
def test_a_hash_can_be_read_if_and_only_if_it_is_owned_in_all_topics(
    orders: tuple[OwnedRange, ...], payments: tuple[OwnedRange, ...], returns: tuple[OwnedRange, ...]
) -> None:
    topics = {TopicPartition(t, 0): of for t, of in zip("abc", (orders, payments, returns), strict=True)}
    work = {tp: of for tp, of in topics.items() if of}
    limited = owned_in_all(work, "abc", {})
    for hashes in EIGHTHS:
        everywhere = all(any(hashes == p.hashes for p in of) for of in topics.values())
        for tp, parts in limited.items():
            readable = [p.waits(100) for p in parts if p.hashes.intersection(hashes)]
            assert readable == ([everywhere] if any(hashes == p.hashes for p in topics[tp]) else [])
