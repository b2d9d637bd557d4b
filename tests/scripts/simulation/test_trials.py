"""The simulation sees members that crawl over the slices of a lost one."""

import pytest

from coordinator.plan.poison import Strike
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from simulation.sink import Violation
from simulation.state import State
from simulation.trials import MOST_SMALL, Trials

TP = TopicPartition("orders", 0)


def reads_in_steps(count: int, step: int) -> None:
    trials, strike = Trials(), Strike(TP, WHOLE, OffsetRange(0, 6_400), count)
    for start in range(0, 6_400, step):
        lane = Lane(WHOLE, "a.1", start, (OffsetRange(start, start + step),))
        state = State(segments={TP: ((WHOLE, start),)})
        trials.planned(StreamOffset("g", lanes={TP: (lane,)}), [strike], state)


def test_few_pieces_are_no_crawl() -> None:
    reads_in_steps(count=1, step=6_400 // MOST_SMALL)
    reads_in_steps(count=2, step=200)


@pytest.mark.parametrize(("count", "step"), [(1, 200), (2, 100)])
def test_many_small_pieces_are_a_crawl(count: int, step: int) -> None:
    with pytest.raises(Violation, match="CRAWL"):
        reads_in_steps(count, step)
