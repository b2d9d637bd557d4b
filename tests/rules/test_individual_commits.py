"""Positions and individual commits (ICs) in a real Redis: results of the scripts, also after a loss of ICs."""

import pytest

from coordinator.errors import StateFormatError
from coordinator.plan.planning import Cutting, plan, with_positions
from coordinator.progress.ownership import Fact, completed
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import BIG, NO_MEMBER, OTHER, SESSION, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True

LOWER, UPPER = cuts(2)


def owner_of(world: World, position: int, **ics: str) -> Caller:
    """A member that owns the partition at `position`, with those ICs."""
    world.found(p0=position)
    world.set_ics(ics)
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    return me


def planned(world: World, me: Caller, until: int) -> StreamOffset:
    """The offset of one lane that reads what is missing up to `until`."""
    acquired = world.store.positions.acquire(me, WANTED).value
    return offset(*plan(with_positions(acquired.ownership, acquired.progress), {TP: until}, Cutting(1))[TP])


def commit(world: World, me: Caller, end: StreamOffset) -> None:
    assert world.store.positions.commit(me, end, completed(end)).value.refused == {}


def test_commit_what_was_read__a_lane_leaves_out_individual_commits(world: World) -> None:
    """Rule: commit-what-was-read. A commit states exactly the offset ranges that the batch read."""
    me = owner_of(world, 41, **{str(WHOLE): "43-45 48-49"})
    end = planned(world, me, 51)
    assert str(end.lanes[TP][0]) == "aa.1@41-42,46-47,50-50"
    assert completed(end) == {TP: (Fact(WHOLE, 43, "aa.1", (OffsetRange(46, 48), OffsetRange(50, 51))),)}
    commit(world, me, end)
    assert (world.positions(), world.ics()) == ({str(WHOLE): "51"}, {})
    assert world.store.positions.stable(["orders"])[TP] == 51


def test_commit_what_was_read__what_was_deleted_between_plan_and_commit_is_read_again(world: World) -> None:
    me = owner_of(world, 41, **{str(WHOLE): "43-45 48-49"})
    end = planned(world, me, 51)
    world.delete_ics()
    commit(world, me, end)
    assert (world.positions(), world.ics()) == ({str(WHOLE): "43"}, {str(WHOLE): "46-47 50-50"})
    again = planned(world, me, 51)
    assert str(again.lanes[TP][0]) == "aa.1@43-45,48-49"
    commit(world, me, again)
    assert (world.positions(), world.ics()) == ({str(WHOLE): "51"}, {})


def test_ics_may_vanish__those_deleted_before_a_plan_are_read_again(world: World) -> None:
    """Rule: ics-may-vanish. Individual commits may be deleted at any time."""
    me = owner_of(world, 41, **{str(WHOLE): "43-45 48-49"})
    world.delete_ics()
    assert str(planned(world, me, 51).lanes[TP][0]) == "aa.1@41-50"


@pytest.mark.parametrize("text", ["45", "47-45", "a-b", "50-51 45-46", "45-47 46-48"])
def test_ics_may_vanish__damaged_ones_are_deleted_and_the_commit_goes_on(world: World, text: str) -> None:
    me = owner_of(world, 43)
    world.set_ics({str(LOWER): text, str(UPPER): "47-48"})
    commit(world, me, offset(lane("aa.1", 43, 44)))
    assert (world.positions(), world.ics()) == ({str(LOWER): "44", str(UPPER): "44"}, {str(UPPER): "47-48"})
    assert len(world.events("mend")) == 1


def test_ics_may_vanish__a_look_has_only_sound_ones(world: World) -> None:
    world.found(p0=43)
    world.set_ics({str(WHOLE): "45-46", "damaged": "50"})
    assert world.store.positions.progress([TP, OTHER]) == {TP: Progress((Segment(WHOLE, 43, (OffsetRange(45, 47),)),))}


@pytest.mark.parametrize(
    ("until", "position", "ics"),
    [
        pytest.param(44, "44", "45-47 50-50", id="below the first IC, it stops before it"),
        pytest.param(45, "48", "50-50", id="touching an IC, it moves through it"),
        pytest.param(46, "48", "50-50", id="inside an IC, it moves to its end"),
        pytest.param(60, "60", "", id="beyond all of them, none is left"),
    ],
)
def test_cumulative_commit__it_passes_what_is_done(world: World, until: int, position: str, ics: str) -> None:
    """Rule: cumulative-commit. A commit states positions, not differences."""
    me = owner_of(world, 43, **{str(WHOLE): "45-47 50-50"})
    commit(world, me, offset(lane("aa.1", 43, until)))
    assert world.positions() == {str(WHOLE): position}
    assert world.ics() == ({str(WHOLE): ics} if ics else {})
    assert world.store.positions.stable(["orders"])[TP] == int(position)


def test_assert_beginnings__an_assertion_moves_over_individual_commits_too(world: World) -> None:
    """Rule: assert-beginnings. The verb claim has no fence."""
    owner_of(world, 43, **{str(WHOLE): "45-47 50-50"})
    world.store.positions.claim(offset(), {TP: (Fact(LOWER, 45), Fact(UPPER, 43, "", (OffsetRange(48, 50),)))})
    assert world.positions() == {str(LOWER): "48", str(UPPER): "43"}
    assert world.ics() == {str(LOWER): "50-50", str(UPPER): "45-50"}


def test_cut_at_ownership__individual_commits_are_cut_where_ownership_changes(world: World) -> None:
    """Rule: cut-at-ownership. An acquisition cuts segments and individual commits at both ends of the range."""
    owner_of(world, 43, **{str(WHOLE): "45-47"})
    world.lapse(10 * SESSION)
    other = world.join("m-2", "i2")
    acquired = world.store.positions.acquire(other, {TP: (LOWER,)}).value
    assert world.ics() == {str(LOWER): "45-47", str(UPPER): "45-47"}
    assert [str(r) for s in acquired.progress[TP].segments for r in s.ics] == ["45-47"]
    commit(world, other, offset(Lane(LOWER, "aa.2", 43, (OffsetRange(43, 45),))))
    assert (world.positions(), world.ics()) == ({str(LOWER): "48", str(UPPER): "43"}, {str(UPPER): "45-47"})


def test_available_now__it_ends_where_individual_commits_reach_the_target(world: World) -> None:
    """Rule: available-now. Targets are the log ends at the start, raised to those of other AvailableNow members."""
    me = owner_of(world, 43, **{str(WHOLE): "45-50"})
    assert not world.store.members.finish(me, {TP: 51}).value
    world.set_ics({str(WHOLE): "43-50"})
    assert not world.store.members.finish(me, {TP: 52}).value
    assert world.store.members.finish(me, {TP: 51}).value


def test_recover_by_proof__individual_commits_that_redis_still_has_are_kept(world: World) -> None:
    """Rule: recover-by-proof. A recovery keeps the positions that Redis still has, and raises them to proven ones."""
    owner_of(world, 43, **{str(WHOLE): "45-47 50-50"})
    world.restart()
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: 45})
    assert (world.positions(), world.ics()) == ({str(WHOLE): "48"}, {str(WHOLE): "50-50"})


def test_first_positions__they_inherit_no_individual_commits(world: World) -> None:
    """Rule: first-positions.

    First positions come from Redis; else from Kafka's own group of that name; else from startingOffsets.
    """
    owner_of(world, 43, **{str(WHOLE): "45-47"})
    world.redis.delete(GroupKeys(world.group).segments(TP))
    world.found(p0=3)
    assert (world.positions(), world.ics()) == ({str(WHOLE): "3"}, {})


def test_numbers_as_text__individual_commits_too_large_for_a_double_are_joined_exactly(world: World) -> None:
    """Rule: numbers-as-text. Scripts compare offsets and hashes as text."""
    me = owner_of(world, BIG, **{str(WHOLE): f"{BIG + 2}-{BIG + 2} {BIG + 4}-9999999999999999"})
    commit(world, me, offset(lane("aa.1", BIG, BIG + 1)))
    assert world.positions() == {str(WHOLE): str(BIG + 1)}
    commit(world, me, offset(lane("aa.1", BIG, BIG + 2)))
    assert world.positions() == {str(WHOLE): str(BIG + 3)}
    commit(world, me, offset(lane("aa.1", BIG, BIG + 4)))
    assert (world.positions(), world.ics()) == ({str(WHOLE): "10000000000000000"}, {})


@pytest.mark.parametrize("first", range(BIG, BIG + 4), ids=["1", "2", "3", "4"])
def test_numbers_as_text__every_offset_too_large_for_a_double_is_counted_exactly(world: World, first: int) -> None:
    me = owner_of(world, first, **{str(WHOLE): f"{first + 2}-{first + 2}"})
    commit(world, me, offset(lane("aa.1", first, first + 2)))
    assert (world.positions(), world.ics()) == ({str(WHOLE): str(first + 3)}, {})


def test_check_then_write__a_key_of_another_type_is_a_named_error(world: World) -> None:
    """Rule: check-then-write.

    A script checks everything that it reads and everything that it was asked to write, and writes last.
    """
    me = owner_of(world, 43)
    world.redis.set(GroupKeys(world.group).ics(TP), "x")
    with pytest.raises(StateFormatError):
        commit(world, me, offset(lane("aa.1", 43, 44)))
    assert world.positions() == {str(WHOLE): "43"}
