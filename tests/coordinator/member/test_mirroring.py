"""When stable offsets are committed to Kafka's own group."""

import pytest

from coordinator.member.decision import Decision
from coordinator.member.mirroring import mirror_if_due
from coordinator.member.requests import Mirror
from coordinator.member.state import Mirrored
from states import NOW, TP, call, decided, joined

MIRROR = Mirror((TP,), ("orders",))


@pytest.mark.parametrize(
    "mirrored",
    [
        pytest.param(Mirrored(NOW - 29_999), id="positions have not moved, and Kafka forgets no offset yet"),
        pytest.param(Mirrored(NOW - 9_999, behind=True), id="it is fresh"),
    ],
)
def test_not_due__do_nothing(mirrored: Mirrored) -> None:
    state = joined(mirrored=mirrored)
    assert decided(mirror_if_due, state, call()) == Decision(state)


@pytest.mark.parametrize("at_ms", [pytest.param(None, id="the first"), pytest.param(NOW - 10_000, id="ten seconds")])
def test_positions_have_moved__mirror(at_ms: int | None) -> None:
    state = joined(mirrored=Mirrored(at_ms, behind=True))
    decision = decided(mirror_if_due, state, call(), (MIRROR, True))
    assert decision == Decision(joined(mirrored=Mirrored(NOW)))


@pytest.mark.parametrize(
    "at_ms", [pytest.param(None, id="the first of this life"), pytest.param(NOW - 30_000, id="thirty seconds")]
)
def test_positions_have_not_moved_for_long__mirror_again(at_ms: int | None) -> None:
    decision = decided(mirror_if_due, joined(mirrored=Mirrored(at_ms)), call(), (MIRROR, True))
    assert decision == Decision(joined(mirrored=Mirrored(NOW)))


def test_mirror_has_failed__behind_and_not_tried_again_at_once() -> None:
    state = joined(mirrored=Mirrored(behind=True))
    decision = decided(mirror_if_due, state, call(), (MIRROR, None))
    assert decision == Decision(joined(mirrored=Mirrored(NOW, behind=True)))


def test_plain_consumers_live_in_the_group__never_again() -> None:
    decision = decided(mirror_if_due, joined(mirrored=Mirrored(behind=True)), call(), (MIRROR, False))
    assert decision == Decision(joined(mirrored=Mirrored(NOW, allowed=False)))


def test_not_allowed__ask_for_nothing() -> None:
    state = joined(mirrored=Mirrored(NOW - 10_000, allowed=False, behind=True))
    assert decided(mirror_if_due, state, call()) == Decision(joined(mirrored=Mirrored(NOW, allowed=False, behind=True)))
