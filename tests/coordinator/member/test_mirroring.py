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


def test_a_life_begins__its_first_move_is_mirrored_at_once_and_an_idle_group_after_20_s() -> None:
    begun = decided(mirror_if_due, joined(), call()).state
    assert decided(mirror_if_due, begun, call(), now_ms=NOW + 19_999).state == begun
    assert (
        decided(mirror_if_due, begun, call(), (MIRROR, True), now_ms=NOW + 20_000).state.mirrored.at_ms == NOW + 20_000
    )
    moved = joined(mirrored=Mirrored(begun.mirrored.at_ms, behind=True))
    assert decided(mirror_if_due, moved, call(), (MIRROR, True)) == Decision(joined(mirrored=Mirrored(NOW)))


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
