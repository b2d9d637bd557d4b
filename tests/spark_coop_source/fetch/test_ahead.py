"""A thread makes what comes next while what came before is used: a little ahead, in order, no longer than wanted."""

import threading
from collections.abc import Callable, Generator, Iterator
from itertools import count, takewhile
from time import monotonic

import pytest

from log_fixtures import task, whole
from spark_coop_source.fetch.ahead import DEPTH, ahead
from spark_coop_source.fetch.several import SHORT
from spark_coop_source.task.read import read_slices
from topics import Kafka, Record

PATIENCE_S = 20


def numbers(until: int, made: list[int]) -> Callable[[Callable[[], bool]], Generator[int, None, None]]:
    """Makes the numbers, and notes each when it is made."""

    def making(stopped: Callable[[], bool]) -> Generator[int, None, None]:
        for number in range(until):
            made.append(number)
            yield number

    return making


def test_all_comes_in_order() -> None:
    assert list(ahead(numbers(100, []))) == [*range(100)]
    assert list(ahead(numbers(0, []))) == []


def test_the_next_item_is_made_while_the_last_one_is_used() -> None:
    made = threading.Event()

    def making(stopped: Callable[[], bool]) -> Generator[str, None, None]:
        yield "first"
        made.set()
        yield "second"

    items = ahead(making)
    assert next(items) == "first"
    assert made.wait(PATIENCE_S)
    assert list(items) == ["second"]


def test_no_more_is_made_than_a_little_ahead() -> None:
    made: list[int] = []
    most = [made[-1] - used for used in ahead(numbers(50, made))]
    assert max(most) <= DEPTH


def test_an_error_comes_after_all_that_was_made_before_it() -> None:
    def making(stopped: Callable[[], bool]) -> Generator[int, None, None]:
        yield from (1, 2)
        raise ValueError("third")

    items = ahead(making)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(items)


def test_closing_early_stops_the_producer_and_leaves_no_thread() -> None:
    ended = threading.Event()

    def making(stopped: Callable[[], bool]) -> Generator[int, None, None]:
        try:
            yield from takewhile(lambda _: not stopped(), count())
        finally:
            ended.set()

    before = threading.active_count()
    items = ahead(making)
    assert next(items) == 0
    closed(items)
    assert ended.is_set()
    assert threading.active_count() == before


def closed(items: Iterator[object]) -> None:
    items.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("closed_clients")
def test_a_task_that_spark_stops_does_not_wait_for_records_that_do_not_come(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(bytes(400))] * 2 * SHORT)
    waiting = task(kafka, [whole(topic, 0, 3 * SHORT)], poll_timeout_ms=120_000)
    batches = read_slices(waiting)
    assert len(next(batches))
    began = monotonic()
    closed(batches)
    assert (monotonic() - began) * 1_000 < waiting.poll_timeout_ms / 2
