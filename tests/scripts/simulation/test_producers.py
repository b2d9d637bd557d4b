"""The simulation holds the group to its words about growths."""

from random import Random

import pytest

from coordinator.values.subscription import TopicPartition
from simulation.kafka import HASHES, KEYS, TOPIC, Record, SimulatedKafka
from simulation.producers import KEPT, SECONDS_MS, UNLESS_TWICE, Producers
from simulation.sink import Sink, Violation, Visible

LATE = "seen late, so some keys may be out of order unless it was one step, or steps to multiples"


def grown(*steps: tuple[int, int]) -> Producers:
    """Producers by key of a topic of two partitions that grew at these times to these counts."""
    made = next(p for p in (Producers(SimulatedKafka(2), Random(seed)) for seed in range(9)) if p._by_key)
    for now_ms, count in steps:
        made.grow(count, now_ms)
    return made


def record(partition: int, known: int, number: int) -> Record:
    return Record(TopicPartition(TOPIC, partition), 0, HASHES[3], KEYS[3], "x", number, known)


FIRST, SECOND = record(1, 2, 1), record(0, 4, 2)
"""The key has moved between partitions that both are older than the growth."""


@pytest.mark.parametrize(
    ("steps", "said", "promised"),
    [
        pytest.param([(0, 4)], KEPT + UNLESS_TWICE, True, id="one step"),
        pytest.param([(0, 4)], LATE, False, id="one step that was seen late"),
        pytest.param([(0, 3), (SECONDS_MS, 4)], KEPT + UNLESS_TWICE, False, id="twice within seconds"),
        pytest.param([(0, 3), (SECONDS_MS + 1, 4)], LATE, False, id="twice, seen late"),
    ],
)
def test_a_growth_across_which_the_group_says_that_order_is_kept__keeps_it(
    steps: list[tuple[int, int]], said: str, *, promised: bool
) -> None:
    producers = grown(*steps)
    producers.hear(2, 4, said)
    assert producers.ordered(FIRST, SECOND) is promised
    sink = Sink(Visible.RECORD, lambda _: False, producers.ordered)
    sink.write(SECOND)
    if promised:
        with pytest.raises(Violation, match="GROWTH"):
            sink.write(FIRST)
    else:
        sink.write(FIRST)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        pytest.param([(0, 3), (SECONDS_MS + 1, 4)], KEPT + UNLESS_TWICE, id="twice, not within seconds"),
        pytest.param([(0, 3), (SECONDS_MS, 4)], KEPT, id="no reservation"),
    ],
)
def test_words_that_promise_order_across_steps_that_moved_keys__are_a_violation(
    steps: list[tuple[int, int]], said: str
) -> None:
    with pytest.raises(Violation, match="WORDS"):
        grown(*steps).hear(2, 4, said)


def test_steps_to_multiples_keep_their_promise() -> None:
    assert grown((0, 4), (2 * SECONDS_MS, 8)).hear(2, 8, KEPT + UNLESS_TWICE)


def test_pairs_of_growths_that_look_like_one_to_a_multiple() -> None:
    assert grown().in_steps(2, 5) == [(3, 4)]
    assert grown().in_steps(1, 4) == [(2, 3), (3, 4)]


def test_a_growth_of_which_the_group_says_nothing__leaves_no_promise() -> None:
    producers = grown((0, 4), (9, 8))
    producers.hear(2, 4, KEPT)
    assert not producers.ordered(FIRST, record(0, 8, 2))
    assert not producers.ordered(FIRST, record(0, 2, 2)), "no growth is between them"
