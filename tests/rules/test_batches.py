"""A batch: it is planned, authorised, read and committed (docs/protocol.md#batches)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen
from coordinator.member.state import State, Turn
from coordinator.plan.planning import Cutting, plan, with_positions
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.store import Store
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from states import call
from store_world import SESSION, TP, WANTED, World, lane, offset
from written_worlds import Script, turns

ON_EACH_SERVER = True
END = offset(lane("aa.1", 0, 10))
LATE = "an occasion that has passed"
RENEWING: dict[str, Callable[[Store, Caller, str], object]] = {
    "heartbeat": lambda store, me, _: store.members.heartbeat(me),
    "look": lambda store, me, _: store.members.look(me),
    "assign": lambda store, me, occasion: store.members.assign(me, occasion, "test 1", {"m-1": WANTED}),
    "assign, too late": lambda store, me, _: store.members.assign(me, LATE, "test 1", {"m-1": WANTED}),
    "acquire": lambda store, me, _: store.positions.acquire(me, WANTED),
    "release": lambda store, me, _: store.members.release(me, WANTED),
    "finish": lambda store, me, _: store.members.finish(me, {TP: 0}),
    "finish, not yet": lambda store, me, _: store.members.finish(me, {TP: 5}),
    "abandon": lambda store, me, _: store.poison.abandon(me, {TP: (Owned(WHOLE, "aa.1"),)}),
    "authorize": lambda store, me, _: store.positions.authorize(me, END),
    "commit": lambda store, me, _: store.positions.commit(me, END, completed(END)),
    "working": lambda store, me, _: store.poison.working(me, ""),
    "forget": lambda store, me, _: store.members.forget(me, ("payments",)),
}
ACQUIRED = Turn(fresh=True, acquired=True)


@pytest.mark.parametrize("call", RENEWING.values(), ids=RENEWING)
def test_plan_within_lease__each_answer_that_a_member_plans_by_renews_the_lease(
    world: World, call: Callable[[Store, Caller, str], object]
) -> None:
    """Rule: plan-within-lease.

    A member plans only within its last acknowledged lease, by the boot clock of its own host.
    """
    me = world.owner()
    occasion = world.store.members.look(me).value.occasion
    world.lapse(SESSION - 1)
    call(world.store, me, occasion)
    assert world.redis.zscore(GroupKeys(world.group).leases, "m-1") == world.now + SESSION


@pytest.mark.parametrize(("wait_ms", "fresh"), [(0, True), (250, False)])
def test_fresh_positions__after_a_wait_those_of_before_are_not(wait_ms: int, *, fresh: bool) -> None:
    """Rule: fresh-positions.

    A plan uses positions that the member read in the same call, or that its own commit has just set. Another member
    may assert positions meanwhile.
    """
    looks = iter((LookAgain(wait_ms), Return(None)))

    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state if state.turn.acquired else replace(state, turn=ACQUIRED), (), next(looks))

    member = turns(Script())
    member.run([step], call())
    assert member.state.turn == replace(ACQUIRED, fresh=fresh)


def test_batch_clock__a_batch_beyond_the_longest_makes_ranges_takeable_though_the_heart_beats(world: World) -> None:
    """Rule: batch-clock.

    The clock of a batch runs from its authorisation until all its tasks have ended and have told their ends to the
    reader process.
    """
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    world.store.positions.acquire(one, WANTED)
    end = offset(lane("aa.1", 0, 10))
    world.store.positions.authorize(one, end)
    for _ in range(6):
        world.lapse(SESSION - 1)
        world.store.members.heartbeat(one, reading=True)
        world.store.members.heartbeat(two)
    assert world.store.members.look(two).value.members == ("m-2",), "the assignor passes over a hung member"
    assert world.store.positions.acquire(two, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    assert world.commit(one, end) == completed(end)


def planned(world: World, me: Caller, until: int) -> StreamOffset:
    """The offset of one lane that reads what is missing up to `until`."""
    acquired = world.store.positions.acquire(me, WANTED).value
    return offset(*plan(with_positions(acquired.ownership, acquired.progress), {TP: until}, Cutting(1))[TP])


def test_commit_what_was_read__a_lane_leaves_out_individual_commits(world: World) -> None:
    """Rule: commit-what-was-read. A commit states exactly the offset ranges that the batch read."""
    me = world.owner({str(WHOLE): "43-45 48-49"}, p0=41)
    end = planned(world, me, 51)
    assert str(end.lanes[TP][0]) == "aa.1@41-42,46-47,50-50"
    assert completed(end) == {TP: (Fact(WHOLE, 43, "aa.1", (OffsetRange(46, 48), OffsetRange(50, 51))),)}
    assert world.commit(me, end) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "51"}, {})
    assert world.store.positions.stable(["orders"])[TP] == 51


def test_commit_what_was_read__what_was_deleted_between_plan_and_commit_is_read_again(world: World) -> None:
    me = world.owner({str(WHOLE): "43-45 48-49"}, p0=41)
    end = planned(world, me, 51)
    world.delete_ics()
    assert world.commit(me, end) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "43"}, {str(WHOLE): "46-47 50-50"})
    again = planned(world, me, 51)
    assert str(again.lanes[TP][0]) == "aa.1@43-45,48-49"
    assert world.commit(me, again) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "51"}, {})


def test_cumulative_commit__a_repeat_changes_nothing(world: World) -> None:
    """Rule: cumulative-commit. A commit states positions, not differences."""
    me = world.owner()
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.1", 0, 20, upper))
    for _ in range(2):
        assert world.commit(me, end) == {}
        assert world.positions() == {str(lower): "10", str(upper): "20"}
        assert world.store.positions.stable(["orders"])[TP] == 10


def test_cumulative_commit__an_older_one_moves_no_position_back(world: World) -> None:
    me = world.owner()
    for until in (20, 10):
        end = offset(lane("aa.1", 0, until))
        world.commit(me, end)
    assert world.positions() == {str(WHOLE): "20"}


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
    """A commit states positions, not differences."""
    me = world.owner({str(WHOLE): "45-47 50-50"}, p0=43)
    assert world.commit(me, offset(lane("aa.1", 43, until))) == {}
    assert world.positions() == {str(WHOLE): position}
    assert world.ics() == ({str(WHOLE): ics} if ics else {})
    assert world.store.positions.stable(["orders"])[TP] == int(position)
