"""The age of unread records, from the log ends that were seen."""

import pytest

from coordinator.progress.end_history import MOST_LOOKS, EndHistory
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)


def seen(*looks: tuple[int, int]) -> EndHistory:
    """A history of looks: (ms, log end)."""
    history = EndHistory()
    for now_ms, end in looks:
        history.saw({TP: end}, now_ms)
    return history


@pytest.mark.parametrize(
    ("position", "behind"),
    [
        pytest.param(90, (20_000, True), id="before the first look: at least since then"),
        pytest.param(100, (12_000, False), id="at the end of the first look: since more came"),
        pytest.param(499, (12_000, False), id="within the records that came then"),
        pytest.param(1_000, (0, False), id="at the end nothing is old"),
    ],
)
def test_the_oldest_unread_record_is_as_old_as_the_look_that_saw_it_first(
    position: int, behind: tuple[int, bool]
) -> None:
    assert seen((0, 100), (8_000, 500), (19_000, 1_000)).behind_ms(TP, position, 20_000) == behind


def test_many_looks_are_stored_coarsely_and_no_age_is_too_small() -> None:
    looks = [(i * 1_000, 100 + i) for i in range(100 * MOST_LOOKS)]
    history, now = seen(*looks), looks[-1][0]
    for at, end in looks[1::97]:
        behind, at_least = history.behind_ms(TP, end - 1, now) or (0, True)
        assert now - at <= behind <= (now - at) * 7 / 6 + 1_000
        assert not at_least
    assert len(history._looks[TP].seen) <= MOST_LOOKS


def test_the_age_of_a_partition_without_a_look_is_unknown() -> None:
    assert EndHistory().behind_ms(TP, 5, 1_000) is None


@pytest.mark.parametrize(
    ("looks", "offsets_per_s"),
    [
        pytest.param([(0, 100)], 0, id="one look"),
        pytest.param(
            [(90_000, 100), (100_000, 400)], 30, id="since the first look, if that was less than a minute ago"
        ),
        pytest.param([(0, 100), (40_000, 700), (70_000, 1_000), (100_000, 1_300)], 10, id="in the last minute"),
        pytest.param([(0, 100), (39_000, 100), (99_000, 700)], 600 / 61, id="nothing came for long, then some"),
        pytest.param([(0, 100), (30_000, 700), (100_000, 700)], 0, id="nothing came in the last minute"),
        pytest.param([(99_900, 100), (100_000, 700)], 0, id="two looks that are close show nothing"),
        pytest.param([(-500_000, 100), (-200_000, 3_100), (100_000, 6_100)], 10, id="looks that are minutes apart"),
    ],
)
def test_arrivals_are_those_of_the_last_minute(looks: list[tuple[int, int]], offsets_per_s: float) -> None:
    assert 1_000 * seen(*looks).per_ms(TP, 100_000) == pytest.approx(offsets_per_s)
    assert not seen(*looks).per_ms(TopicPartition("orders", 1), 100_000)
