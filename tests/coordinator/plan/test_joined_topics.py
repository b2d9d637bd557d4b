"""Units of joined topics: the work of all their partitions, cut once, with the same bounds in each."""

from collections.abc import Sequence
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import NotCopartitionedError
from coordinator.plan.joined_topics import grown_together, must_be_equal, of_unit, overlaid, shared_by_units, unit
from coordinator.plan.lane_bounds import Piece, shared
from coordinator.plan.planning import Cutting, OwnedRange, plan
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.subscription import Topic, TopicPartition

JOINED = ("orders", "payments")
ORDERS, PAYMENTS, CLICKS = (TopicPartition(topic, 3) for topic in ("orders", "payments", "clicks"))
LEFT, RIGHT = cuts(2)
THIRDS = cuts(3)


def test_partitions_of_joined_topics_with_one_number_are_a_unit() -> None:
    assert unit(PAYMENTS, JOINED) == unit(ORDERS, JOINED) == ORDERS
    assert unit(TopicPartition("payments", 2), JOINED) == TopicPartition("orders", 2)
    assert unit(CLICKS, JOINED) == CLICKS
    assert unit(PAYMENTS, ()) == PAYMENTS
    assert of_unit(PAYMENTS, JOINED) == (ORDERS, PAYMENTS)
    assert of_unit(CLICKS, JOINED) == (CLICKS,)


def of(**counts: int) -> dict[str, Topic]:
    return {name: Topic(name, f"id of {name}", tuple(range(count))) for name, count in counts.items()}


def pair(orders: int, payments: int) -> dict[str, int]:
    return {"orders": orders, "payments": payments}


@pytest.mark.parametrize(
    ("now", "before", "of_group", "read"),
    [
        pytest.param(pair(4, 2), pair(2, 2), pair(2, 2), (2, 2), id="one grew first"),
        pytest.param(pair(4, 3), pair(2, 2), pair(2, 2), (2, 2), id="both grew, not as far"),
        pytest.param(pair(4, 4), pair(2, 2), pair(2, 2), (4, 4), id="both have grown"),
        pytest.param(pair(4, 2), {}, pair(2, 2), (2, 2), id="a new process"),
        pytest.param(pair(4, 6), pair(2, 2), pair(4, 4), (4, 4), id="both grew unseen, and one again"),
        pytest.param(pair(4, 2), pair(4, 4), pair(4, 4), (4, 2), id="a broker does not know the last growth yet"),
        pytest.param(pair(4, 2), pair(2, 2), {}, (2, 2), id="Redis and the mirror are lost"),
    ],
)
def test_a_topic_that_grew_before_the_others_is_read_as_before(
    now: dict[str, int], before: dict[str, int], of_group: dict[str, int], read: tuple[int, int]
) -> None:
    found = grown_together(of(**now, clicks=9), now, before, of_group)
    assert tuple(found[t].count for t in JOINED) == read
    assert {t: found[t].count + found[t].waiting for t in JOINED} == now
    assert found["clicks"] == of(clicks=9)["clicks"]


@pytest.mark.parametrize(
    ("before", "of_group"),
    [
        pytest.param({}, {}, id="a new group"),
        pytest.param({}, {"orders": 2}, id="a new topic"),
        pytest.param({"orders": 2}, {"orders": 2}, id="a topic that is created while the query runs"),
        pytest.param({}, pair(2, 4), id="a group that has read them as they are"),
        pytest.param(pair(4, 4), pair(2, 4), id="one was created again"),
    ],
)
def test_topics_that_a_group_does_not_read_alike_have_equal_numbers_of_partitions(
    before: dict[str, int], of_group: dict[str, int]
) -> None:
    with pytest.raises(NotCopartitionedError, match="orders has 2, payments has 4") as refused:
        grown_together(of(orders=2, payments=4), pair(2, 4), before, of_group)
    assert "Remedy: give the topics equal numbers of partitions" in str(refused.value)
    must_be_equal(pair(2, 2))
    must_be_equal({})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([[Piece(LEFT, 6)]], [Piece(LEFT, 6)], id="one row stays as it is"),
        pytest.param(
            [[Piece(WHOLE, 8)], [Piece(LEFT, 2), Piece(RIGHT, 1)]],
            [Piece(LEFT, 6), Piece(RIGHT, 5)],
            id="the work of both, cut where either is cut",
        ),
        pytest.param(
            [[Piece(LEFT, 2)], [Piece(RIGHT, 1)]], [Piece(LEFT, 2), Piece(RIGHT, 1)], id="ranges of one topic only"
        ),
        pytest.param(
            [[Piece(THIRDS[0], 1)], [Piece(THIRDS[2], 2)]],
            [Piece(THIRDS[0], 1), Piece(THIRDS[2], 2)],
            id="no piece where no topic has one",
        ),
        pytest.param(
            [[Piece(WHOLE, 4)], [Piece(LEFT, 0, slow=True), Piece(RIGHT, 0)]],
            [Piece(LEFT, 2, slow=True), Piece(RIGHT, 2)],
            id="hashes that are slow in one topic are slow",
        ),
        pytest.param([[Piece(WHOLE, 0)], [Piece(WHOLE, 0)]], [Piece(WHOLE, 0)], id="no work at all"),
    ],
)
def test_overlaid(rows: Sequence[Sequence[Piece]], expected: Sequence[Piece]) -> None:
    assert list(overlaid(rows)) == expected


edges = st.sets(st.integers(1, 31), max_size=6).map(lambda at: sorted(i << 58 for i in at))
rows_of_pieces = st.tuples(edges, st.lists(st.floats(0, 1_000), min_size=8, max_size=8)).map(
    lambda row: [Piece(h, row[1][i]) for i, h in enumerate(WHOLE.cut(row[0]))]
)


def work_in(row: Sequence[Piece], hashes: HashRange) -> float:
    return sum(p.work * x.size / p.hashes.size for p in row if (x := p.hashes.intersection(hashes)))


@given(rows=st.lists(rows_of_pieces, min_size=1, max_size=3))
def test_overlaid_rows_keep_the_work_of_all_rows_at_every_hash(rows: list[list[Piece]]) -> None:
    row = overlaid(rows)
    assert [p.hashes.lo for p in row] == [0, *(p.hashes.hi + 1 for p in row[:-1])]
    assert row[-1].hashes.hi == HASH_MAX
    for hashes in cuts(32):
        assert isclose(work_in(row, hashes), sum(work_in(r, hashes) for r in rows), abs_tol=1e-6)


@given(orders=rows_of_pieces, payments=rows_of_pieces, clicks=rows_of_pieces, tasks=st.integers(1, 8))
def test_joined_topics_have_the_same_bounds_as_even_as_those_of_one_topic_with_their_work(
    orders: list[Piece], payments: list[Piece], clicks: list[Piece], tasks: int
) -> None:
    pieces = {CLICKS: clicks, ORDERS: orders, PAYMENTS: payments}
    bounds = shared_by_units(pieces, tasks, {}, JOINED, soon=False)
    assert bounds.get(ORDERS) == bounds.get(PAYMENTS)
    alone = shared({CLICKS: clicks, ORDERS: overlaid([orders, payments])}, tasks, {}, soon=False)
    assert {tp: b for tp, b in bounds.items() if tp != PAYMENTS} == alone
    assert shared_by_units(pieces, tasks, bounds, JOINED, soon=True) == bounds


@given(orders=st.integers(0, 500), payments=st.integers(1, 500), slots=st.integers(1, 8))
def test_a_plan_cuts_joined_topics_alike(orders: int, payments: int, slots: int) -> None:
    work = {tp: (OwnedRange(WHOLE, 0, "e"),) for tp in (ORDERS, PAYMENTS)}
    planned = plan(work, {ORDERS: orders, PAYMENTS: payments}, Cutting(slots, joined=JOINED))
    lanes = {tp: tuple(lane.hashes for lane in planned[tp] if lane.offsets) for tp in work}
    assert len(lanes[PAYMENTS]) == slots
    assert lanes[ORDERS] in ((), lanes[PAYMENTS])
