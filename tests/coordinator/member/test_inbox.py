"""The inbox: reports of the tasks of the batch under way, which come on one thread and are taken on another."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread

import pytest

from coordinator.member.inbox import STALE_MS, Inbox, Reach, TaskEnded
from coordinator.plan.cost.telemetry import MOST_AT, KeyAt, SliceCost
from coordinator.plan.poison import MOST_SLICES
from coordinator.progress.failing import NO_FAILURES, FailingRecord, Failures
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from states import LEFT, NOW, RIGHT, TP, end_of

ONE, OTHER = (Slice(TP, hashes, OffsetRange(10, 20)) for hashes in (LEFT, RIGHT))


END, TASKS = end_of(10, 20), ((ONE,), (OTHER,))


def began(of: Slice) -> SliceCost:
    return SliceCost.nothing(of)


def ended(of: Slice) -> SliceCost:
    return replace(began(of), finished=True)


def under_way(end: StreamOffset) -> Inbox:
    begun = Inbox()
    begun.begin(end, TASKS)
    return begun


@pytest.fixture
def inbox() -> Inbox:
    """An inbox with a batch of two slices under way."""
    return under_way(END)


def test_begun__under_way_in_order(inbox: Inbox) -> None:
    inbox.receive([began(OTHER), began(ONE)], NOW)
    assert inbox.under_way(NOW) == (ONE, OTHER)


def test_begun_on_one_key__only_its_record_is_under_way(inbox: Inbox) -> None:
    inbox.receive([replace(began(ONE), at=(KeyAt(7, 12, 15),))], NOW)
    assert inbox.under_way(NOW) == (Slice(TP, HashRange(7, 7), OffsetRange(12, 15)),)


def test_no_sign_of_life__the_task_may_be_at_another_key_by_now(inbox: Inbox) -> None:
    inbox.receive([replace(began(ONE), at=(KeyAt(7, 12, 15),))], NOW)
    assert [len(inbox.under_way(NOW + ms)[0].offsets) for ms in (STALE_MS - 1, STALE_MS)] == [3, 10]


def test_many_calls__their_slices_are_under_way(inbox: Inbox) -> None:
    calls = [tuple(KeyAt(of.hashes.lo + i, 12, 13) for i in range(MOST_AT)) for of in (ONE, OTHER)]
    inbox.receive([replace(began(of), at=at) for of, at in zip((ONE, OTHER), calls, strict=True)], NOW)
    assert len(inbox.under_way(NOW)) == MOST_SLICES
    inbox.receive([replace(began(ONE), at=(*calls[0], KeyAt(7, 12, 13)))], NOW)
    assert inbox.under_way(NOW) == (ONE, OTHER)


def test_ended__under_way_no_more(inbox: Inbox) -> None:
    inbox.receive([began(ONE), began(OTHER)], NOW)
    inbox.receive([ended(ONE)], NOW)
    assert inbox.under_way(NOW) == (OTHER,)


def test_a_slice_of_another_batch__is_no_work_under_way(inbox: Inbox) -> None:
    inbox.receive([began(ONE._replace(offsets=OffsetRange(0, 10)))], NOW)
    assert inbox.under_way(NOW) == ()


def test_handed_out_again__reports_stay(inbox: Inbox) -> None:
    inbox.receive([began(ONE)], NOW)
    inbox.begin(END, TASKS)
    assert inbox.under_way(NOW) == (ONE,)


def test_the_next_batch_is_handed_out__older_reports_are_dropped(inbox: Inbox) -> None:
    inbox.receive([began(ONE)], NOW)
    inbox.begin(end_of(20, 30), TASKS)
    assert inbox.under_way(NOW) == ()


def test_in_the_sink__the_latest_report_of_each_slice_once(inbox: Inbox) -> None:
    inbox.receive([began(ONE), began(OTHER)], NOW)
    inbox.receive([ended(ONE)], NOW)
    assert inbox.end() == {ONE: ended(ONE), OTHER: began(OTHER)}
    assert inbox.end() == {}


def test_no_batch__reports_are_taken_and_dropped() -> None:
    inbox, come = Inbox(), iter([began(ONE)])
    inbox.receive(come, NOW)
    assert next(come, None) is None
    inbox.begin(END, TASKS)
    assert (inbox.under_way(NOW), inbox.end()) == ((), {})


def test_the_batch_ends_while_another_thread_receives__it_is_not_brought_back(inbox: Inbox) -> None:
    main = Thread(target=inbox.end)

    def reports() -> Iterator[SliceCost]:
        yield began(ONE)
        main.start()
        main.join(0.05)  # it waits for the lock, or has come in between
        yield began(OTHER)

    inbox.receive(reports(), NOW)
    main.join()
    assert inbox.under_way(NOW) == ()


def test_the_batch_is_in_the_sink__a_late_report_counts_for_nothing(inbox: Inbox) -> None:
    inbox.end()
    inbox.receive([began(ONE)], NOW)
    assert inbox.under_way(NOW) == ()
    inbox.begin(end_of(20, 30), TASKS)
    assert inbox.under_way(NOW) == ()


def test_the_next_batch_has_begun__a_late_report_of_the_last_one_is_dropped(inbox: Inbox) -> None:
    inbox.end()
    inbox.begin(end_of(20, 30), ((OTHER,),))
    inbox.receive([began(ONE), began(OTHER)], NOW)
    assert inbox.under_way(NOW) == (OTHER,)


EARLY = end_of(10, 20, early=1)
TO_12, TO_15 = ({TP: HashMap.of(WHOLE, end)} for end in (12, 15))


@pytest.fixture
def early() -> Inbox:
    """An inbox with a batch of two tasks that may end early."""
    return under_way(EARLY)


def test_the_last_task_ends__the_ends_of_the_batch_are_known(early: Inbox) -> None:
    early.agree(EARLY.digest, 1, {})
    whole = {TP: HashMap.of(LEFT, 15)}
    assert early.agree(EARLY.digest, 0, TO_15) == TaskEnded(TO_15, whole, whole)
    assert early.agree(EARLY.digest, 1, TO_12) == TaskEnded({}, {}, whole), "a late attempt must wait too"
    early.end()
    assert early.ends(EARLY) == whole


def test_failures_of_a_task__those_of_its_first_attempt_count(early: Inbox) -> None:
    record = FailingRecord(TP, 5, 12, 1, 0)
    first, other = Failures((record,), 1, 2), Failures((), 3, 0)
    assert early.agree(EARLY.digest, 0, TO_15, first).failures == first
    assert early.agree(EARLY.digest, 0, TO_15).failures == first
    last = early.agree(EARLY.digest, 1, {}, other)
    assert (last.failures, last.all_failures) == (other, Failures((record,), 4, 2))
    assert early.failures(EARLY) == Failures((record,), 4, 2)
    assert early.failures(replace(EARLY, early=2)) == NO_FAILURES


def test_all_tasks_of_a_batch_have_ended__tasks_are_known_to_reach_this_process(early: Inbox) -> None:
    early.agree(EARLY.digest, 1, {})
    reached = [early.reach]
    early.agree(EARLY.digest, 0, TO_15)
    assert [*reached, early.reach] == [Reach.UNKNOWN, Reach.ALL]


def test_no_task_connects__it_is_known_from_then_on(early: Inbox) -> None:
    early.no_task_connects()
    assert early.reach is Reach.NONE


def test_a_task_that_never_ran__was_not_needed_and_counts_as_read(early: Inbox) -> None:
    early.agree(EARLY.digest, 0, TO_15)
    early.end()
    assert early.ends(EARLY) == {TP: HashMap.of(LEFT, 15)}


def test_a_batch_that_is_not_under_way__its_tasks_are_refused(early: Inbox) -> None:
    with pytest.raises(KeyError):
        early.agreed(end_of(20, 30, early=1).digest, 0)
    early.end()
    with pytest.raises(KeyError):
        early.agree(EARLY.digest, 0, TO_15)


def test_a_batch_of_another_process__its_ends_are_not_known_here(early: Inbox) -> None:
    assert early.ends(end_of(20, 30, early=1)) is None


def test_two_threads_receive__an_older_report_never_replaces_a_newer_one(inbox: Inbox) -> None:
    waiting = [began(ONE), ended(ONE)]
    main = Thread(target=lambda: inbox.receive(take(), NOW))

    def take() -> Iterator[SliceCost]:
        taken = waiting.pop(0)
        if waiting:
            main.start()
            main.join(0.2)  # it waits for the lock, or takes the newer report before this one is stored
        yield taken

    inbox.receive(take(), NOW)
    main.join()
    assert inbox.end() == {ONE: ended(ONE)}
