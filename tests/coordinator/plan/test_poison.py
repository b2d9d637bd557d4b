"""Strikes bound the owned ranges; a batch leaves out struck and parked hashes (rule: parked-until-released)."""

from dataclasses import replace

import pytest

from coordinator.errors import StateFormatError
from coordinator.key_hash import cuts
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.plan.poison import MOST_SLICES, Strike, forgiven, quarantined, without_struck, working_text
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.ranges import WHOLE, OffsetRange
from coordinator.subscription import TopicPartition
from store_world import TP

LOWER, UPPER = cuts(2)


QUARTERS = cuts(4)


ENDS = {TP: 100}


ONCE = Strike(TP, LOWER, OffsetRange(10, 12), 1)


TWICE = replace(ONCE, count=2)


PARKED = replace(TWICE, parked=True)


def work(lower: int, upper: int) -> OwnedRanges:
    return {TP: (OwnedRange(LOWER, lower, "e.1"), OwnedRange(UPPER, upper, "e.1"))}


def reach(limited: OwnedRanges) -> list[int]:
    """The number of offsets that each piece may read."""
    return [p.reach(ENDS[TP]) - p.position for p in limited[TP]]


@pytest.mark.parametrize(
    ("strikes", "lower", "expected"),
    [
        pytest.param([], 10, [90, 80], id="without strikes all is read"),
        pytest.param([ONCE], 10, [7, 0], id="a struck lane is planned alone, with about one record"),
        pytest.param([PARKED], 10, [0, 80], id="a parked lane is left alone, the others go on"),
        pytest.param([PARKED], 4, [6, 80], id="a lane that went back is read again, up to where it is parked"),
        pytest.param(
            [replace(PARKED, offsets=OffsetRange(30, 31)), ONCE],
            4,
            [7, 0],
            id="... but alone where it was struck below that",
        ),
        pytest.param(
            [replace(PARKED, offsets=OffsetRange(30, 31)), replace(PARKED, hashes=WHOLE)],
            4,
            [6, 80],
            id="where two are parked it is read up to the first",
        ),
        pytest.param(
            [ONCE], 11, [7, 0], id="also after a part of the struck offsets was read: the record may still come"
        ),
        pytest.param([ONCE], 12, [88, 80], id="a strike at offsets that were read since limits no lane"),
        pytest.param([ONCE], 4, [7, 0], id="a lane that went back before it is struck still"),
        pytest.param(
            [replace(ONCE, hashes=UPPER, offsets=OffsetRange(20, 21))], 10, [0, 7], id="any lane may be the one"
        ),
    ],
)
def test_strikes_bound_the_work(strikes: list[Strike], lower: int, expected: list[int]) -> None:
    limited, alone = quarantined(work(lower, 20), ENDS, strikes, lambda lane: 7)
    assert reach(limited) == expected
    assert (alone is not None) == (7 in expected)


def test_a_struck_lane_is_one_lane_so_that_its_next_strike_is_the_same() -> None:
    quarter = replace(ONCE, hashes=QUARTERS[1])
    limited, alone = quarantined(work(10, 20), ENDS, [quarter], lambda lane: 7)
    assert alone == (TP, QUARTERS[1])
    assert [p.hashes for p in limited[TP]] == [QUARTERS[0], QUARTERS[1], UPPER]


def test_after_a_trial_the_lanes_without_a_strike_have_their_turn() -> None:
    limited, alone = quarantined(work(10, 20), ENDS, [ONCE], lambda lane: 7, others=True)
    assert (reach(limited), alone) == ([0, 80], None)
    limited, alone = quarantined(work(10, 100), ENDS, [ONCE], lambda lane: 7, others=True)
    assert (reach(limited), alone) == ([7, 0], (TP, LOWER)), "there is nothing else to read"


def test_only_one_struck_lane_is_tried_at_a_time() -> None:
    both = [ONCE, replace(ONCE, hashes=UPPER, offsets=OffsetRange(20, 21))]
    limited, alone = quarantined(work(10, 20), ENDS, both, lambda lane: 7)
    assert (reach(limited), alone) == ([7, 0], (TP, LOWER))


def test_a_strike_is_forgiven_once_all_its_hashes_are_past_it() -> None:
    assert forgiven([ONCE], work(12, 0)) == (ONCE,)
    assert forgiven([ONCE], work(11, 50)) == ()
    assert forgiven([ONCE], {TP: (OwnedRange(QUARTERS[0], 50, "e.1"),)}) == (), "half of it is another member's"


def test_a_batch_planned_before_its_hashes_were_parked_or_struck_twice_leaves_them_out() -> None:
    lanes = (Lane(LOWER, "e.1", 10, (OffsetRange(10, 20),)), Lane(UPPER, "e.1", 10, (OffsetRange(10, 20),)))
    end = StreamOffset("g", "m", lanes={TP: lanes})
    owned = {TP: (Owned(WHOLE, "e.1"),)}
    for strike in (PARKED, TWICE):
        assert without_struck(owned, end, [strike]) == {TP: (Owned(UPPER, "e.1"),)}
    assert without_struck(owned, end, [ONCE]) == owned, "who was killed in a batch replays it, the same records"
    assert without_struck(owned, end, [TWICE], [TWICE]) == owned, "it was planned in spite of that, to be tried"
    assert without_struck(owned, end, [PARKED], [TWICE]) != owned
    beyond = replace(PARKED, offsets=OffsetRange(20, 21))
    assert without_struck(owned, end, [beyond]) == owned, "the batch does not reach it"


def test_a_member_with_too_many_begun_slices_reports_none() -> None:
    many = [Slice(TopicPartition("t", 0), h, OffsetRange(0, 9)) for h in cuts(MOST_SLICES + 1)]
    assert working_text(many) == ""
    assert working_text(many[:1]) == f"t 0 {many[0].hashes} 0-9;"
    assert working_text(many[:1], alone=True) == f"alone; t 0 {many[0].hashes} 0-9;"
    assert working_text([], alone=True) == ""


@pytest.mark.parametrize("value", ["", "1 2-3 4 m", "lost 1 2-3 4 m", "struck x 2-3 4 m", "struck 1 2 4 m"])
def test_a_damaged_strike_is_a_named_error(value: str) -> None:
    with pytest.raises(StateFormatError, match="strike"):
        Strike.parse(ONCE.field, value)
