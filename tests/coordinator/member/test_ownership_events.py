"""Every change of ownership is an event, in the stream and for a user's listener (rule: ownership-events)."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.assignors.assignor import Assignment
from coordinator.assignment.ownership_listener import METHODS, KeyRanges, listener
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import InvalidOptionError
from coordinator.member.owning import left, notified
from coordinator.member.requests import Notify
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.events import last_events
from coordinator.redis.group_state import GroupEvent
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from coordinator.values.verdicts import Lost
from group_services import Group, batches, subscribed
from recording_listener import RecordingListener
from states import EPOCH, LEFT, NEXT_EPOCH, RIGHT, owned
from store_world import LONGEST, LOWER, NO_MEMBER, OTHER, SESSION, TOPICS, TP, UPPER, WANTED, World, lane, offset

ON_EACH_SERVER = True


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
        pytest.param(owned(), owned(), {TP: (WHOLE,)}, (), id="to_be_released_and_was_not__nothing"),
        pytest.param(
            {TP: (Owned(LEFT, EPOCH), Owned(RIGHT, NEXT_EPOCH)), OTHER: (Owned(WHOLE, EPOCH),)},
            NOTHING,
            {OTHER: (LEFT,)},
            (Notify({OTHER: (LEFT,)}, {TP: (WHOLE,), OTHER: (RIGHT,)}, {}),),
            id="two_that_touch_are_gone__lost_as_one",
        ),
    ],
)
def test_owned__notified(before: Ownership, now: Ownership, released: Ranges | None, notices: object) -> None:
    assert notified(before, now, released) == notices


def test_left__half_written_ranges_are_lost_and_the_others_revoked() -> None:
    both = {**owned(), OTHER: (Owned(WHOLE, NEXT_EPOCH),)}
    assert left(both, {TP: (LEFT,)}) == (Notify({TP: (RIGHT,), OTHER: (WHOLE,)}, {TP: (LEFT,)}, {}),)


def test_left_without_ranges__nothing() -> None:
    assert left(NOTHING, {}) == ()


# -- the listener ----------------------------------------------------------------------------------


def test_an_error_of_a_listener_is_logged_and_its_other_methods_are_called(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(RecordingListener):
        def on_assigned(self, ranges: KeyRanges) -> None:
            raise RuntimeError(f"my cache is full: {len(ranges)}")

    recording = Broken()
    settings = GroupSettings(members.name, session_ms=500, listener=recording)
    service = members.started(subscribed(tp), settings=settings)
    with caplog.at_level(logging.ERROR):
        list(batches(service, StreamOffset(members.name)))
    service.leave()
    assert [kind for kind, _ in recording.calls] == ["revoked"]
    assert "my cache is full: 1" in caplog.text


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "my_listeners.py").write_text(
        "from coordinator.assignment.ownership_listener import OwnershipListener\n"
        "class Mine(OwnershipListener): pass\n"
        "class Deaf: pass\n"
        "class Needy(OwnershipListener):\n    def __init__(self, what): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_listeners"
    sys.modules.pop("my_listeners", None)


def test_a_users_listener_is_made_by_name(own_module: str) -> None:
    made = listener(f"{own_module}:Mine")
    assert type(made).__name__ == "Mine"
    assert all(callable(getattr(made, method)) for method in METHODS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("Mine", "module:Class", id="no module"),
        pytest.param("no_such_module:Mine", "ModuleNotFoundError", id="no such module"),
        pytest.param("my_listeners:Yours", "AttributeError", id="no such class"),
        pytest.param("my_listeners:Deaf", "no method on_assigned", id="a class without the methods"),
        pytest.param("my_listeners:Needy", "TypeError", id="a class that needs arguments"),
    ],
)
def test_a_name_that_is_no_listener_is_refused(own_module: str, name: str, words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        listener(name)


# -- the events stream -----------------------------------------------------------------------------


def events(world: World) -> list[tuple[str, str, str]]:
    """Kind, member and key ranges of everything that happened."""
    return [(e.kind, e.member, e.ranges) for e in _events(world)]


def _events(world: World) -> list[GroupEvent]:
    return last_events(world.client, world.group, 1000)


def assign(world: World, caller: Caller, assignment: Assignment) -> None:
    world.store.members.assign(caller, world.store.members.look(caller).value.occasion, "test 1", assignment)


def test_half_written_ranges_of_a_leaving_member_are_not_revoked(world: World) -> None:
    me = world.owner()
    world.store.members.leave(me, {TP: (UPPER,)})
    assert events(world)[-2:] == [("revoked", "m-1", f"orders-0 {LOWER}"), ("leave", "m-1", "")]


@pytest.mark.parametrize(
    ("hangs", "why"), [(False, "lease has ended"), (True, "batch takes longer")], ids=["a dead member", "a hung batch"]
)
def test_an_expired_member_is_one_event_and_ranges_taken_from_it_are_lost(world: World, hangs: bool, why: str) -> None:
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    assign(world, one, {"m-1": WANTED, "m-2": {}})
    world.store.positions.acquire(one, WANTED)
    world.store.positions.authorize(one, offset(lane("aa.1", 0, 10)))
    for _ in range(LONGEST // (SESSION - 1) + 1 if hangs else 2):
        world.lapse(SESSION - 1)
        world.store.members.heartbeat(two)
        if hangs:
            world.store.members.heartbeat(one, reading=True)
    assign(world, two, {"m-2": WANTED})
    world.store.positions.acquire(two, WANTED)
    world.join("m-3", "i3")
    assign(world, two, {"m-2": WANTED, "m-3": {}})

    assert events(world)[-7:] == [
        ("assigned", "m-1", "orders-0 whole"),
        ("expire", "m-1", ""),
        ("plan", "m-2", ""),
        ("lost", "m-1", "orders-0 whole"),
        ("assigned", "m-2", "orders-0 whole"),
        ("join", "m-3", ""),
        ("plan", "m-2", ""),
    ]
    assert [why in e.why for e in _events(world) if e.kind == "expire"] == [True]


@pytest.mark.parametrize("how", ["recover", "reset", "recreate"])
def test_ranges_whose_lane_epochs_become_void_are_lost(world: World, how: str) -> None:
    world.found(p0=0, p1=0)
    one, two = world.join(), world.join("m-2", "i2")
    world.store.positions.acquire(one, {TP: (LOWER,)})
    world.store.positions.acquire(two, {TP: (UPPER,), OTHER: (WHOLE,)})
    if how == "recover":
        world.restart()
        world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None, OTHER: None})
    elif how == "recreate":
        again = {"orders": Topic("orders", "id-2", (0, 1))}
        world.store.positions.recreate(again, {TP: 3, OTHER: 3})
    else:
        world.redis.delete(GroupKeys(world.group).leases)
        known = world.store.positions.status().topics
        OperatorVerbs.of_group(world.client, world.group).reset("bb", 1, 0, "why", known, {TP: 3, OTHER: None})

    lost = [("lost", "m-1", f"orders-0 {LOWER}"), ("lost", "m-2", f"orders-0 {UPPER}, orders-1 whole")]
    assert events(world)[-2:] == lost
    assert [e.why for e in _events(world) if e.kind == "reset"] == (["why"] if how == "reset" else [])


def test_an_acquisition_without_positions_is_a_loss_of_state_and_no_event(world: World) -> None:
    world.found()
    me = world.join()
    with pytest.raises(Lost, match="segments:orders:1 is gone"):
        world.store.positions.acquire(me, {OTHER: (WHOLE,)})
    assert [kind for kind, _, _ in events(world)] == ["found", "join"]
