"""Lost records: the losses that a look finds, their errors, and the positions after them."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import DataLossError
from coordinator.progress.data_loss import (
    Aged,
    Cut,
    Deleted,
    Loss,
    Recreated,
    Truncated,
    error,
    losses,
    moved,
    recreated,
)
from coordinator.progress.segments import Progress, Segment
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Bounds, Topic, TopicPartition

TP, SECOND, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("bills", 0)
IDS = {"orders": "id-1", "bills": "id-2"}
TOPICS = {"orders": Topic("orders", "id-1", (0, 1)), "bills": Topic("bills", "id-2", (0,))}
AGAIN = Topic("orders", "id-9", (0, 1))
LOWER, UPPER = cuts(2)


def at(lower: int, upper: int) -> Progress:
    return Progress((Segment(LOWER, lower), Segment(UPPER, upper)))


@pytest.mark.parametrize(
    ("progress", "bounds", "topics", "expected"),
    [
        pytest.param({TP: at(5, 9)}, {TP: Bounds(0, 20)}, TOPICS, [], id="positions within the log lose nothing"),
        pytest.param({TP: at(5, 9)}, {TP: Bounds(5, 9)}, TOPICS, [], id="the very ends of the log are within it"),
        pytest.param(
            {TP: at(5, 9)}, {TP: Bounds(6, 20)}, TOPICS, [Aged(TP, 5, 6)], id="one hash behind the beginning is a loss"
        ),
        pytest.param(
            {TP: at(5, 9)}, {TP: Bounds(0, 8)}, TOPICS, [Truncated(TP, 9, 8)], id="one hash ahead of the end is a loss"
        ),
        pytest.param(
            {TP: Progress((Segment(WHOLE, 5, (OffsetRange(7, 9),)),))},
            {TP: Bounds(0, 8)},
            TOPICS,
            [Truncated(TP, 9, 8)],
            id="done offsets above a gap ahead of the end are a loss",
        ),
        pytest.param(
            {TP: at(1, 9)},
            {TP: Bounds(4, 4)},
            TOPICS,
            [Truncated(TP, 9, 4)],
            id="a position beyond the end comes first",
        ),
        pytest.param({TP: Progress(())}, {TP: Bounds(4, 4)}, TOPICS, [], id="a range of another member cannot be lost"),
        pytest.param(
            {TP: at(5, 5), SECOND: at(9, 9), OTHER: at(7, 7)},
            {TP: Bounds(0, 1), SECOND: Bounds(0, 1), OTHER: Bounds(8, 9)},
            TOPICS | {"orders": AGAIN},
            [Recreated("orders", "id-1", "id-9"), Aged(OTHER, 7, 8)],
            id="a re-created topic is one loss, and other topics are looked at all the same",
        ),
        pytest.param(
            {TP: at(0, 0)},
            {TP: Bounds(0, 9)},
            TOPICS | {"orders": AGAIN},
            [Recreated("orders", "id-1", "id-9")],
            id="a re-created topic is a loss even where every position is within the new log",
        ),
    ],
)
def test_losses(
    progress: Mapping[TopicPartition, Progress],
    bounds: Mapping[TopicPartition, Bounds],
    topics: Mapping[str, Topic],
    expected: list[Loss],
) -> None:
    assert list(losses(progress, bounds, IDS, topics, {})) == expected


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        pytest.param(TOPICS, [Cut(TP, 9, 3, 2)], id="a cut names more than the log end of now"),
        pytest.param(
            TOPICS | {"orders": AGAIN}, [Recreated("orders", "id-1", "id-9")], id="another topic's log was not cut"
        ),
    ],
)
def test_losses_of_a_log_that_was_cut(topics: Mapping[str, Topic], expected: list[Loss]) -> None:
    cut = {TP: Cut(TP, 9, 3, 2)}
    assert list(losses({TP: at(5, 9)}, {TP: Bounds(0, 4)}, IDS, topics, cut)) == expected


@pytest.mark.parametrize(
    ("recorded", "topics", "expected"),
    [
        pytest.param(IDS, TOPICS, [], id="the same ids"),
        pytest.param({}, TOPICS, [], id="a topic that was never recorded is new, not re-created"),
        pytest.param(IDS, {}, [], id="a topic that is gone is not re-created"),
        pytest.param(IDS, {"orders": AGAIN}, [Recreated("orders", "id-1", "id-9")], id="another id"),
    ],
)
def test_recreated(recorded: Mapping[str, str], topics: Mapping[str, Topic], expected: list[Recreated]) -> None:
    assert list(recreated(recorded, topics)) == expected


@pytest.mark.parametrize(
    ("loss", "bounds", "expected"),
    [
        pytest.param(
            Aged(TP, 5, 7), {TP: Bounds(7, 20)}, {TP: at(7, 9)}, id="a lane behind moves to the beginning, others stay"
        ),
        pytest.param(Truncated(TP, 9, 3), {TP: Bounds(0, 3)}, {TP: at(3, 3)}, id="a cut log is read from its end"),
        pytest.param(Truncated(TP, 9, 7), {TP: Bounds(0, 7)}, {TP: at(5, 7)}, id="a lane before the cut skips nothing"),
        pytest.param(
            Cut(TP, 9, 6, 3), {TP: Bounds(0, 20)}, {TP: at(5, 6)}, id="a log that was cut and grew is read from the cut"
        ),
        pytest.param(
            Recreated("orders", "id-1", "id-9"),
            {TP: Bounds(2, 3), SECOND: Bounds(0, 4), OTHER: Bounds(0, 9)},
            {TP: at(2, 2), SECOND: at(0, 0)},
            id="every partition of a re-created topic is read from its beginning, and no other topic's",
        ),
    ],
)
def test_moved(
    loss: Loss, bounds: Mapping[TopicPartition, Bounds], expected: Mapping[TopicPartition, Progress]
) -> None:
    assert moved(loss, {TP: at(5, 9), SECOND: at(8, 8), OTHER: at(6, 6)}, bounds) == expected


def test_individual_commits_above_a_lost_position_are_removed_with_it() -> None:
    progress = {TP: Progress((Segment(LOWER, 5, (OffsetRange(7, 9),)),))}
    assert moved(Truncated(TP, 9, 3), progress, {TP: Bounds(0, 3)}) == {TP: Progress((Segment(LOWER, 3),))}


positions = st.integers(0, 20)


@given(positions, positions, positions, positions, st.booleans())
def test_after_moving_on_nothing_is_lost(lower: int, upper: int, one: int, two: int, again: bool) -> None:
    bounds = {TP: Bounds(min(one, two), max(one, two))}
    progress, topics = {TP: at(lower, upper)}, TOPICS | ({"orders": AGAIN} if again else {})
    for loss in losses(progress, bounds, IDS, topics, {}):
        progress |= moved(loss, progress, bounds)
    assert list(losses(progress, bounds, {name: t.id for name, t in topics.items()}, topics, {})) == []


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        pytest.param(Aged(TP, 5, 8), ["orders-0", "5-7"], id="the records that aged out, both ends included"),
        pytest.param(Truncated(TP, 9, 3), ["orders-0", "ends at 3", "position 9"], id="end and position of a cut log"),
        pytest.param(Cut(TP, 9, 3, 2), ["orders-0", "3-8", "leader epoch 2"], id="read records of a log that was cut"),
        pytest.param(Recreated("orders", "id-1", "id-9"), ["'orders'", "id-1", "id-9"], id="both ids"),
        pytest.param(Deleted("orders"), ["'orders'", "deleted"], id="the deleted topic"),
    ],
)
def test_the_error_names_the_lost_records_and_the_remedy(loss: Loss | Deleted, words: list[str]) -> None:
    named = error(loss)
    assert isinstance(named, DataLossError)
    assert [w for w in ["DATA_LOSS", "failOnDataLoss=false", *words] if w not in str(named)] == []
