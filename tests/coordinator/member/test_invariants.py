"""Each invariant of a member's state: one state that breaks it, which `check` names."""

from dataclasses import replace

import pytest

from coordinator.member.batch import Batch
from coordinator.member.evidence import Evidence
from coordinator.member.invariants import BrokenInvariantError, check
from coordinator.member.requests import Commit
from coordinator.member.state import Commits, CommitUnderWay, Growing, Owning, Pacing, Shown, State, Strikes, Turn
from coordinator.plan.planning import OwnedRange
from coordinator.progress.growth import Sight
from coordinator.progress.ownership import Owned
from coordinator.progress.segments import Segment
from coordinator.values.ranges import WHOLE, HashRange
from progresses import starting_at
from states import (
    EPOCH,
    FIRST,
    FRESH,
    LEFT,
    LIFE,
    NEXT_EPOCH,
    RIGHT,
    TP,
    TP1,
    end_of,
    held,
    joined,
    owned,
    owning,
    owns,
    struck,
)

END = end_of(10, 20)
BEGUN = Batch(END, granted=owned(), readable=owned(), began_ms=1)
UNCONFIRMED = Evidence(END, None, (END,))
UNDER_WAY = CommitUnderWay(END, Commit(END, {}, ""))
MORE = {TP: starting_at(10), TP1: starting_at(10)}
HALVES = {TP: (Owned(LEFT, EPOCH), Owned(RIGHT, NEXT_EPOCH))}
SIGHT = Sight(0, {}, {})
SIGHTS = tuple(replace(SIGHT, number=i) for i in range(17))
TOUCHING = {TP: (Owned(HashRange(0, RIGHT.lo), EPOCH), Owned(RIGHT, NEXT_EPOCH))}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(joined(), id="joined"),
        pytest.param(joined(life=FRESH), id="new"),
        pytest.param(joined(life=LIFE.rejoining()), id="must join again"),
        pytest.param(owns(), id="owns"),
        pytest.param(joined(owning=owning(replace(held(), ownership=HALVES))), id="owns at two lane epochs"),
        pytest.param(joined(owning=Owning(held())), id="owns without a group"),
        pytest.param(joined(batch=Batch(END)), id="planned"),
        pytest.param(joined(batch=Batch(END, {(TP, WHOLE): 1})), id="a trial is planned"),
        pytest.param(joined(batch=Batch(END, granted=owned())), id="granted"),
        pytest.param(joined(batch=BEGUN, evidence=UNCONFIRMED), id="under way"),
        pytest.param(joined(batch=replace(BEGUN, ended=True)), id="in the sink"),
        pytest.param(joined(commits=Commits(None, None, FIRST)), id="before the first batch"),
        pytest.param(joined(batch=replace(BEGUN, readable={TP: ()}), evidence=UNCONFIRMED), id="nothing is readable"),
        pytest.param(joined(commits=Commits(UNDER_WAY), evidence=UNCONFIRMED), id="committing"),
        pytest.param(joined(commits=Commits(None, END, END), turn=Turn(committed=True, skipped=True)), id="committed"),
        pytest.param(joined(pace=Pacing(idle=({TP: (OwnedRange(WHOLE, 10, EPOCH),)}, {TP: 10}))), id="idle"),
        pytest.param(joined(strikes=Strikes((struck(), struck(hashes=LEFT)))), id="struck"),
        pytest.param(joined(growing=Growing((SIGHT, replace(SIGHT, number=3)), 4)), id="growing"),
        pytest.param(joined(growing=Growing(SIGHTS[:16], 16)), id="as many sights as are kept"),
    ],
)
def test_a_sound_state__nothing_is_broken(state: State) -> None:
    check(state)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        pytest.param(joined(life=replace(LIFE, member="")), "has no member id", id="member id"),
        pytest.param(joined(life=replace(LIFE, lease_end_ms=0)), "has no lease", id="lease"),
        pytest.param(joined(life=replace(LIFE, nonce_before="n-0")), "does not remember the nonce", id="nonce"),
        pytest.param(
            joined(batch=Batch(END, granted=owned(epoch=NEXT_EPOCH))),
            "not in the batch at their lane epoch",
            id="granted",
        ),
        pytest.param(
            joined(batch=Batch(END, granted=owned(LEFT), readable=owned())), "that Redis has not granted", id="readable"
        ),
        pytest.param(joined(batch=Batch(END, readable=owned())), "that Redis has not granted", id="never granted"),
        pytest.param(
            joined(batch=Batch(END, granted=owned(), began_ms=1), evidence=UNCONFIRMED),
            "was not authorized",
            id="begun",
        ),
        pytest.param(joined(batch=BEGUN), "under way are not unconfirmed", id="unconfirmed"),
        pytest.param(joined(batch=Batch(END, {(TP, LEFT): 1})), "together with other hashes", id="trial"),
        pytest.param(
            joined(commits=Commits(UNDER_WAY, END), evidence=UNCONFIRMED), "committed again", id="committed again"
        ),
        pytest.param(joined(commits=Commits(UNDER_WAY)), "of a commit under way are not unconfirmed", id="committing"),
        pytest.param(joined(commits=Commits(None, None, END)), "whole that was not confirmed", id="whole"),
        pytest.param(joined(turn=Turn(skipped=True)), "skipped before it was committed", id="skipped"),
        pytest.param(
            joined(owning=owning(replace(held(), progress={TP: starting_at(10, LEFT)}))),
            "not of exactly the owned ranges",
            id="positions of less",
        ),
        pytest.param(
            joined(owning=owning(replace(held(), progress=MORE))),
            "not of exactly the owned ranges",
            id="positions of more",
        ),
        pytest.param(
            joined(owning=owning(replace(held(), ownership={TP: (Owned(WHOLE, EPOCH), Owned(LEFT, NEXT_EPOCH))}))),
            "owned ranges overlap",
            id="overlap",
        ),
        pytest.param(
            joined(owning=owning(replace(held(), ownership=TOUCHING))), "owned ranges overlap", id="overlap of one hash"
        ),
        pytest.param(joined(owning=owning(ranges={TP: (LEFT,)})), "not those that were acquired", id="owned ranges"),
        pytest.param(joined(growing=Growing((SIGHT, SIGHT), 1)), "sights are out of order", id="sights"),
        pytest.param(joined(growing=Growing((SIGHT,), 0)), "sights are out of order", id="next sight"),
        pytest.param(
            joined(growing=Growing(SIGHTS, 17)),
            "sights are out of order",
            id="too many sights",
        ),
        pytest.param(
            joined(pace=Pacing(idle=({TP: (OwnedRange(WHOLE, 10, EPOCH),)}, {TP: 11}))), "something to read", id="idle"
        ),
        pytest.param(joined(strikes=Strikes((struck(), struck(count=2)))), "has two strikes", id="strikes"),
        pytest.param(joined(shown=Shown(slow_percent=101)), "101 % of the slots", id="slots"),
    ],
)
def test_a_broken_state__is_named(state: State, words: str) -> None:
    for before in (None, joined()):
        with pytest.raises(BrokenInvariantError, match=words):
            check(state, before)


def test_what_has_not_changed__is_not_checked_again() -> None:
    broken = joined(shown=Shown(slow_percent=101))
    check(replace(broken, life=FRESH), before=broken)


def test_several_are_broken__all_are_named() -> None:
    with pytest.raises(BrokenInvariantError, match=r"no member id; .*101 % of the slots"):
        check(joined(life=replace(LIFE, member=""), shown=Shown(slow_percent=101)))


def test_a_position_below_zero__cannot_be_made() -> None:
    with pytest.raises(Exception, match="is not within"):
        Segment(WHOLE, -1)
