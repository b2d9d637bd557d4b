"""Reports of the batch under way, which arrive on one thread and are taken on another."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread

from coordinator.member.inbox import Inbox
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import WHOLE, OffsetRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import SliceCost

SLICES = [Slice(TopicPartition("orders", p), WHOLE, OffsetRange(10, 20)) for p in range(3)]
BATCHES = [StreamOffset("g", reset=number) for number in range(2)]


def began(s: Slice) -> SliceCost:
    return SliceCost.nothing(s)


def ended(s: Slice) -> SliceCost:
    return replace(SliceCost.nothing(s), finished=True)


def test_begun_to_reported_what_has_not_ended_is_under_way() -> None:
    inbox = Inbox()
    inbox.begin(BATCHES[0], [SLICES])
    inbox.receive([began(SLICES[1]), began(SLICES[0]), ended(SLICES[2])])
    assert inbox.under_way() == (SLICES[0], SLICES[1])


def test_reported_to_ended_the_latest_report_of_each_slice_is_given_once() -> None:
    inbox = Inbox()
    inbox.begin(BATCHES[0], [SLICES])
    inbox.receive([began(SLICES[0])])
    inbox.receive([ended(SLICES[0])])
    assert inbox.end() == {SLICES[0]: ended(SLICES[0])}
    assert inbox.end() == {}


def test_ended_to_begun_a_late_report_says_nothing_of_the_next_batch() -> None:
    inbox = Inbox()
    inbox.begin(BATCHES[0], [SLICES])
    inbox.end()
    inbox.receive([began(SLICES[0])])
    assert inbox.under_way() == ()
    inbox.begin(BATCHES[1], [SLICES])
    assert inbox.under_way() == ()


def test_a_batch_that_ends_while_another_thread_receives_is_not_brought_back() -> None:
    inbox = Inbox()
    main = Thread(target=inbox.end)

    def reports() -> Iterator[SliceCost]:
        yield began(SLICES[0])
        main.start()
        main.join(0.2)  # it waits for the lock, or has come in between
        yield began(SLICES[1])

    inbox.begin(BATCHES[0], [SLICES])
    inbox.receive(reports())
    main.join()
    assert inbox.under_way() == ()


def test_begun_to_begun_a_late_report_of_the_batch_before_is_no_work_under_way() -> None:
    inbox = Inbox()
    inbox.begin(BATCHES[0], [SLICES[:1]])
    inbox.end()
    inbox.begin(BATCHES[1], [SLICES[1:]])
    inbox.receive([began(SLICES[0]), began(SLICES[1])])
    assert inbox.under_way() == (SLICES[1],)


def test_reports_that_come_between_two_batches_are_taken_and_dropped() -> None:
    inbox, come = Inbox(), iter([began(SLICES[0])])
    inbox.receive(come)
    assert next(come, None) is None
    inbox.begin(BATCHES[0], [SLICES])
    assert inbox.under_way() == ()


def test_reports_are_taken_in_turn_so_that_an_older_one_replaces_no_newer() -> None:
    inbox, waiting = Inbox(), [began(SLICES[0]), ended(SLICES[0])]
    main = Thread(target=lambda: inbox.receive(take()))

    def take() -> Iterator[SliceCost]:
        taken = waiting.pop(0)
        if waiting:
            main.start()
            main.join(0.2)  # it waits for the lock, or takes the newer report before this one is stored
        yield taken

    inbox.begin(BATCHES[0], [SLICES])
    inbox.receive(take())
    main.join()
    assert inbox.end() == {SLICES[0]: ended(SLICES[0])}
