"""The offsets that a process has seen: those it may assert, and those it keeps when it leaves."""

from coordinator.member.evidence import Evidence
from coordinator.progress.ownership import Fact, Owned
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)
LOWER, UPPER = cuts(2)
Q0, Q1, Q2, Q3 = cuts(4)


def offset(start: int, until: int, *ranges: HashRange) -> StreamOffset:
    reads = (OffsetRange(start, until),) if until > start else ()
    return StreamOffset(
        "g", "m", topic_ids={"orders": "id"}, lanes={TP: tuple(Lane(h, "a.1", start, reads) for h in ranges)}
    )


BATCH = offset(5, 9, LOWER, UPPER)


def test_a_process_that_saw_nothing_proves_nothing() -> None:
    evidence = Evidence()
    assert (evidence.known, evidence.facts, evidence.unconfirmed_ranges) == (StreamOffset(None), {}, {})


def test_an_end_that_arrived_proves_only_where_it_begins() -> None:
    evidence = Evidence().seen(BATCH)
    assert (evidence.known, evidence.facts) == (BATCH, {TP: (Fact(WHOLE, 5),)})


def test_a_start_that_this_process_has_read_proves_the_end_of_the_ranges_that_it_read() -> None:
    evidence = Evidence().seen(BATCH).seen(BATCH, {TP: (Owned(LOWER, "a.1"), Owned(Q2, "a.1"))})
    assert evidence.facts == {TP: (Fact(LOWER, 9), Fact(Q2, 9), Fact(Q3, 5))}


def test_positions_that_were_moved_on_purpose_leave_nothing_to_assert_but_stay_unconfirmed() -> None:
    evidence = Evidence().seen(BATCH).forgotten()
    assert (evidence.known, evidence.facts) == (StreamOffset(None), {})
    assert evidence.unconfirmed_ranges == {TP: (WHOLE,)}


def test_slices_stay_unconfirmed_over_batches_until_they_are_confirmed() -> None:
    evidence = Evidence().seen(offset(5, 9, Q0)).seen(offset(5, 9, Q1, Q3))
    assert evidence.unconfirmed_ranges == {TP: (LOWER, Q3)}
    assert evidence.confirmed().unconfirmed_ranges == {}


def test_lanes_that_overlap_those_of_an_earlier_batch_are_kept_once() -> None:
    evidence = Evidence().seen(offset(5, 9, LOWER)).seen(offset(9, 11, Q1, Q2))
    assert evidence.unconfirmed_ranges == {TP: (HashRange(LOWER.lo, Q2.hi),)}


def test_an_idle_lane_has_nothing_to_confirm() -> None:
    assert Evidence().with_unconfirmed(offset(5, 5, WHOLE)).unconfirmed_ranges == {}


def test_an_offset_that_comes_twice_is_unconfirmed_once() -> None:
    assert Evidence().seen(BATCH).seen(offset(5, 9, LOWER, UPPER)).unconfirmed == (BATCH,)
