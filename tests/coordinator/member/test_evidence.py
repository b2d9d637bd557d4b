"""What a process has seen of its offsets: what it may assert, and what it keeps when it leaves."""

from coordinator.key_hash import cuts
from coordinator.member.evidence import Evidence
from coordinator.progress.ownership import Fact, Owned
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.ranges import WHOLE, HashRange, OffsetRange
from coordinator.subscription import TopicPartition

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
    assert (evidence.known, evidence.facts, evidence.unconfirmed) == (StreamOffset(None), {}, {})
    assert evidence.authorised(BATCH) is None


def test_an_end_that_arrived_proves_only_where_it_begins() -> None:
    evidence = Evidence()
    evidence.arrived(BATCH)
    assert (evidence.known, evidence.facts) == (BATCH, {TP: (Fact(LOWER, 5), Fact(UPPER, 5))})


def test_a_start_that_this_process_authorised_proves_the_end_of_what_it_was_given() -> None:
    evidence, verdict = Evidence(), {TP: (Owned(LOWER, "a.1"), Owned(Q2, "a.1"))}
    evidence.arrived(BATCH)
    evidence.authorise(BATCH, verdict)
    assert evidence.returned(BATCH) == verdict
    assert evidence.facts == {TP: (Fact(LOWER, 9), Fact(Q2, 9), Fact(Q3, 5))}


def test_a_start_that_this_process_never_authorised_proves_only_where_it_begins() -> None:
    evidence = Evidence()
    assert evidence.returned(BATCH) is None
    assert evidence.facts == {TP: (Fact(LOWER, 5), Fact(UPPER, 5))}


def test_the_verdict_of_another_offset_proves_nothing_of_this_one() -> None:
    evidence = Evidence()
    evidence.authorise(BATCH, {TP: (Owned(WHOLE, "a.1"),)})
    later = offset(9, 12, LOWER, UPPER)
    assert evidence.returned(later) is None
    assert evidence.facts == {TP: (Fact(LOWER, 9), Fact(UPPER, 9))}


def test_only_the_last_verdict_is_remembered() -> None:
    evidence, later = Evidence(), offset(9, 12, WHOLE)
    evidence.authorise(BATCH, {TP: (Owned(WHOLE, "a.1"),)})
    evidence.authorise(later, {})
    assert (evidence.authorised(BATCH), evidence.authorised(later)) == (None, {})


def test_positions_that_were_moved_on_purpose_leave_nothing_to_assert_but_stay_unconfirmed() -> None:
    evidence = Evidence()
    evidence.arrived(BATCH)
    evidence.forget()
    assert (evidence.known, evidence.facts) == (StreamOffset(None), {})
    assert evidence.unconfirmed == {TP: (WHOLE,)}


def test_slices_stay_unconfirmed_over_batches_until_they_are_confirmed() -> None:
    evidence = Evidence()
    evidence.arrived(offset(5, 9, Q0))
    evidence.arrived(offset(5, 9, Q1, Q3))
    assert evidence.unconfirmed == {TP: (LOWER, Q3)}
    evidence.confirmed()
    assert evidence.unconfirmed == {}


def test_lanes_that_overlap_those_of_an_earlier_batch_are_kept_once() -> None:
    evidence = Evidence()
    evidence.arrived(offset(5, 9, LOWER))
    evidence.arrived(offset(9, 11, Q1, Q2))
    assert evidence.unconfirmed == {TP: (HashRange(LOWER.lo, Q2.hi),)}


def test_an_idle_lane_has_nothing_to_confirm() -> None:
    evidence = Evidence()
    evidence.add_unconfirmed(offset(5, 5, WHOLE))
    assert evidence.unconfirmed == {}


def test_a_start_that_comes_back_is_unconfirmed_until_it_is_committed() -> None:
    evidence = Evidence()
    evidence.returned(BATCH)
    assert evidence.unconfirmed == {TP: (WHOLE,)}
