"""Strikes bound the owned ranges; a batch leaves out struck and parked hashes (rule: parked-until-released)."""

from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import StateFormatError
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.plan.poison import MOST_SLICES, PARTS, Strike, forgiven, singly, tried, without_struck, working_text
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from store_world import LOWER, TP, UPPER

QUARTERS = cuts(4)


ENDS = {TP: 100}


ONCE = Strike(TP, LOWER, OffsetRange(10, 12), 1)


TWICE = replace(ONCE, count=2)


PARKED = replace(TWICE, parked=True)


WIDE = replace(ONCE, offsets=OffsetRange(10, 74))


def work(lower: int, upper: int) -> OwnedRanges:
    return {TP: (OwnedRange(LOWER, lower, "e.1"), OwnedRange(UPPER, upper, "e.1"))}


def reach(limited: OwnedRanges) -> list[int]:
    """The number of offsets that each piece may read."""
    return [p.reach(ENDS[TP]) - p.position for p in limited[TP]]


@pytest.mark.parametrize(
    ("strikes", "lower", "expected"),
    [
        pytest.param([], 10, [90, 80], id="without strikes all is read"),
        pytest.param([ONCE], 10, [2, 80], id="a struck lane is read to the end of its strike, the others go on"),
        pytest.param([TWICE], 10, [2, 80], id="... and no further if one record holds more offsets"),
        pytest.param([PARKED], 10, [0, 80], id="a parked lane is left alone, the others go on"),
        pytest.param([PARKED], 4, [6, 80], id="a lane that went back is read again, up to where it is parked"),
        pytest.param(
            [replace(PARKED, offsets=OffsetRange(30, 31)), ONCE],
            4,
            [8, 80],
            id="... but as a trial where it was struck below that",
        ),
        pytest.param(
            [replace(PARKED, offsets=OffsetRange(30, 31)), replace(PARKED, hashes=WHOLE)],
            4,
            [6, 80],
            id="where two are parked it is read up to the first",
        ),
        pytest.param([ONCE], 11, [1, 80], id="after a part of the struck offsets was read: the rest of them"),
        pytest.param([ONCE], 12, [88, 80], id="a strike at offsets that were read since limits no lane"),
        pytest.param([replace(WIDE, count=2)], 10, [7, 80], id="after two, about one record"),
        pytest.param(
            [replace(WIDE, count=3), ONCE], 10, [2, 80], id="of several strikes, the one with the nearest end"
        ),
        pytest.param([replace(WIDE, count=2)], 4, [6, 80], id="what lies before the struck offsets is read first"),
    ],
)
def test_strikes_bound_the_work(strikes: list[Strike], lower: int, expected: list[int]) -> None:
    limited, trials = tried(work(lower, 20), strikes, lambda lane: 7)
    assert reach(limited) == expected
    assert trials == ({(TP, LOWER): 7} if any(s.offsets.until > lower and not s.parked for s in strikes) else {})


def test_a_struck_lane_is_one_lane_so_that_its_next_strike_is_the_same() -> None:
    quarter = replace(ONCE, hashes=QUARTERS[1])
    limited, trials = tried(work(10, 20), [quarter], lambda lane: 7)
    assert [*trials] == [(TP, QUARTERS[1])]
    assert [p.hashes for p in limited[TP]] == [QUARTERS[0], QUARTERS[1], UPPER]


def test_all_struck_lanes_are_tried_at_once() -> None:
    both = [ONCE, replace(ONCE, hashes=UPPER, offsets=OffsetRange(20, 21))]
    limited, trials = tried(work(10, 20), both, lambda lane: 7)
    assert (reach(limited), [*trials]) == ([2, 1], [(TP, LOWER), (TP, UPPER)])


@given(st.integers(0, 100_000), st.integers(1, 100_000), st.integers(1, 40))
def test_a_record_that_hangs_costs_few_members__and_healthy_ones_few_batches(hung: int, size: int, one: int) -> None:
    """The story of a slice of a batch function: each loss leaves one more strike, on the slice of that trial."""
    strike, position, quick = replace(ONCE, hashes=LOWER, offsets=OffsetRange(0, size)), 0, 0
    while position < size:
        (piece, _), trials = tried(work(position, 0), [strike], lambda lane: one)[0][TP], {(TP, LOWER): one}
        trial = Slice(TP, LOWER, OffsetRange(position, piece.reach(size)))
        if hung not in range(trial.offsets.start, trial.offsets.until):
            position, quick = trial.offsets.until, quick + 1
            if position >= strike.offsets.until:
                break
            continue
        assert quick <= PARTS
        text = working_text([trial], trials)
        if text.endswith(" one;") and strike.count > 1:
            break
        strike, quick = replace(strike, offsets=trial.offsets, count=strike.count + 1), 0
    assert quick <= PARTS
    assert strike.count <= 3 + log(max(size, PARTS), PARTS)
    if hung >= size:
        assert (strike.count, quick) == (1, 1), "a healthy slice is read in one batch"


def test_a_strike_is_forgiven_once_all_its_hashes_are_past_it() -> None:
    assert forgiven([ONCE], work(12, 0)) == (ONCE,)
    assert forgiven([ONCE], work(11, 50)) == ()
    assert forgiven([ONCE], {TP: (OwnedRange(QUARTERS[0], 50, "e.1"),)}) == (), "half of it is another member's"


def test_a_batch_planned_before_its_hashes_were_parked_or_struck_twice_leaves_them_out() -> None:
    lanes = (Lane(LOWER, "e.1", 10, (OffsetRange(10, 20),)), Lane(UPPER, "e.1", 10, (OffsetRange(10, 20),)))
    end = StreamOffset("g", "m", lanes={TP: lanes})
    owned = {TP: (Owned(WHOLE, "e.1"),)}
    for strike in (PARKED, TWICE):
        assert without_struck(owned, end, [strike], ()) == {TP: (Owned(UPPER, "e.1"),)}
    assert without_struck(owned, end, [ONCE], ()) == owned, "who was killed in a batch replays it, the same records"
    assert without_struck(owned, end, [TWICE], [TWICE]) == owned, "it was planned in spite of that, to be tried"
    assert without_struck(owned, end, [PARKED], [TWICE]) != owned
    beyond = replace(PARKED, offsets=OffsetRange(20, 21))
    assert without_struck(owned, end, [beyond], ()) == owned, "the batch does not reach it"


def test_slices_under_way__of_too_many_only_those_on_trial() -> None:
    many = [Slice(TopicPartition("t", 0), h, OffsetRange(0, 9)) for h in cuts(MOST_SLICES + 1)]
    assert working_text(many, {}) == ""
    assert working_text([], {}) == ""
    assert working_text(many, {many[3].lane: 8}) == working_text([many[3]], {}) == f"t 0 {many[3].hashes} 0-9;"
    assert working_text(many, {many[3].lane: 9}) == f"t 0 {many[3].hashes} 0-9 one;"


def test_one_record_of_a_key_on_trial__is_one() -> None:
    key = Slice(TP, HashRange(5, 5), OffsetRange(3, 4))
    assert working_text([key], {(TP, LOWER): 1}).endswith(" 3-4 one;")
    assert working_text([key], {(TP, UPPER): 1}).endswith(" 3-4;")


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        pytest.param(Slice(TP, LOWER, OffsetRange(0, 7)), True, id="about one record"),
        pytest.param(Slice(TP, LOWER, OffsetRange(0, 8)), False, id="more"),
        pytest.param(Slice(TP, HashRange(5, 5), OffsetRange(0, 8)), True, id="of one key"),
        pytest.param(Slice(TP, UPPER, OffsetRange(0, 7)), False, id="not on trial"),
    ],
)
def test_which_task_takes_records_one_by_one(of: Slice, expected: bool) -> None:
    assert singly([of], {(TP, LOWER): 7, (TP, HashRange(5, 5)): 7}) is expected


@pytest.mark.parametrize("value", ["", "1 2-3 4 m", "lost 1 2-3 4 m", "struck x 2-3 4 m", "struck 1 2 4 m"])
def test_a_damaged_strike_is_a_named_error(value: str) -> None:
    with pytest.raises(StateFormatError, match="strike"):
        Strike.parse(ONCE.field, value)
