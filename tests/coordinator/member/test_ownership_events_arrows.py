"""What the user's ownership listener is called with."""

import pytest

from coordinator.assignment.assignment_text import Ranges
from coordinator.member.ownership_events import left, notified
from coordinator.member.requests import Notify
from coordinator.progress.ownership import Owned, Ownership
from coordinator.ranges import WHOLE
from states import EPOCH, LEFT, NEXT_EPOCH, RIGHT, TP, owned

NOTHING: Ownership = {}


@pytest.mark.parametrize(
    ("before", "now", "released", "notices"),
    [
        pytest.param(NOTHING, NOTHING, None, (), id="nothing__nothing"),
        pytest.param(owned(), owned(), None, (), id="owned__owned"),
        pytest.param(NOTHING, owned(), None, (Notify({}, {}, {TP: (WHOLE,)}),), id="not_owned__assigned"),
        pytest.param(owned(), NOTHING, None, (Notify({}, {TP: (WHOLE,)}, {}),), id="owned__lost"),
        pytest.param(owned(), NOTHING, {TP: (WHOLE,)}, (Notify({TP: (WHOLE,)}, {}, {}),), id="released__revoked"),
        pytest.param(
            owned(),
            owned(epoch=NEXT_EPOCH),
            None,
            (Notify({}, {TP: (WHOLE,)}, {TP: (WHOLE,)}),),
            id="another_had_it_in_between__lost_and_assigned",
        ),
        pytest.param(owned(), owned(LEFT), {TP: (RIGHT,)}, (Notify({TP: (RIGHT,)}, {}, {}),), id="part__revoked"),
        pytest.param(
            owned(),
            NOTHING,
            {TP: (RIGHT,)},
            (Notify({TP: (RIGHT,)}, {TP: (LEFT,)}, {}),),
            id="part_released__the_rest_is_lost",
        ),
        pytest.param(
            owned(),
            {TP: (Owned(LEFT, EPOCH), Owned(RIGHT, EPOCH))},
            None,
            (),
            id="the_same_hashes_cut_differently__nothing",
        ),
    ],
)
def test_owned__notified(before: Ownership, now: Ownership, released: Ranges | None, notices: object) -> None:
    assert notified(before, now, released) == (notices, now)


def test_left__what_is_half_written_is_lost_and_the_rest_revoked() -> None:
    assert left(owned(), {TP: (LEFT,)}) == (Notify({TP: (RIGHT,)}, {TP: (LEFT,)}, {}),)


def test_left_without_ranges__nothing() -> None:
    assert left(NOTHING, {}) == ()
