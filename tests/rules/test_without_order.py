"""Members that share a partition by offsets (docs/protocol.md#without-order)."""

import pytest

from coordinator.progress.ownership import Fact
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE, offsets_of
from handed_slices import commit, hand_out, join, offset_of, slices
from store_world import SESSION, TP, WANTED, World

ON_EACH_SERVER = True


def test_one_ordering__it_changes_only_without_other_members_and_voids_all_epochs(world: World) -> None:
    """Rule: one-ordering. The ordering belongs to the group: `key`, `partition` or `none`."""
    world.found()
    by_key = world.joining("m-1", ordering="key", next_nonce="bb")
    world.store.positions.acquire(by_key, WANTED)
    with pytest.raises(verdicts.OtherOrdering) as refused:
        join(world, "m-2")
    assert (refused.value.theirs, refused.value.member) == ("key", "m-1")
    assert (refused.value.lease_end_ms, refused.value.now_ms) == (world.now + SESSION, world.now)
    world.lapse(SESSION + 1)
    assert join(world, "m-2").nonce == "bb"
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.acquire(by_key, WANTED)
    with pytest.raises(verdicts.OtherOrdering):
        join(world, "m-1", "i2", ordering="key")


def test_one_ordering__a_change_makes_slices_void(world: World) -> None:
    world.found()
    mine = hand_out(world, join(world, "m-1"), 10)
    join(world, "m-1", "i2", ordering="key", nonce="cc")
    again = join(world, "m-1", "i3", nonce="dd")
    assert world.store.positions.authorize(again, offset_of("m-1", mine)).value.owned == {TP: ()}
    assert slices(hand_out(world, again, 10)) == "0-9"


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("a", ""), ("", "b")])
def test_one_application__a_group_that_one_reads_alone_admits_no_other(world: World, first: str, second: str) -> None:
    """Rule: one-application. With `sharing=never`, one checkpoint reads the group."""
    world.found()
    world.joining("m-1", alone=first)
    with pytest.raises(verdicts.Alone) as refused:
        world.joining("m-2", alone=second)
    assert (refused.value.member, refused.value.theirs) == ("m-1", first)
    assert refused.value.lease_end_ms == world.now + SESSION
    world.lapse(SESSION + 1)
    assert world.joining("m-2", alone=second).nonce


@pytest.mark.parametrize("gone", [pytest.param(False, id="at work"), pytest.param(True, id="gone again")])
def test_one_application__a_life_that_read_alone_ends_once_another_has_read(world: World, gone: bool) -> None:
    """Its checkpoint lacks what the other one read, also if that one has gone."""
    world.found()
    slept = world.joining("m-1", alone="a")
    world.lapse(SESSION + 1)
    world.joining("m-2", alone="b")
    world.lapse(SESSION + 1 if gone else 0)
    with pytest.raises(verdicts.Missed):
        world.joining("m-1", before=slept.nonce, alone="a")


def test_hand_out__two_members_get_the_next_free_offsets(world: World) -> None:
    """Rule: hand-out. A member asks for offsets before each batch.

    [40-49]: the first member gets [40-44], the second [45-49], though offset 40 is the lowest that is not done.
    """
    world.found(p0=40)
    first, second = join(world, "m-1"), join(world, "m-2")
    one, two = hand_out(world, first, 5), hand_out(world, second, 5)
    assert (slices(one), slices(two)) == ("40-44", "45-49")
    assert one.positions[TP] == two.positions[TP] == 40
    assert commit(world, second, two) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "40"}, {str(WHOLE): "45-49"})  # one range, not five
    assert commit(world, first, one) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "50"}, {})
    assert slices(hand_out(world, second)) == ""


def test_hand_out__done_offsets_are_left_out(world: World) -> None:
    world.found(p0=40)
    world.set_ics({str(WHOLE): "43-45 48-49"})
    handed = hand_out(world, join(world, "m-1"), 5)
    assert slices(handed) == "40-42 46-47"
    assert commit(world, join(world, "m-1"), handed) == {}
    assert world.positions() == {str(WHOLE): "50"}


def test_hand_out__a_call_first_frees_what_its_caller_holds(world: World) -> None:
    """The same offsets come at a new lane epoch."""
    world.found()
    me, other = join(world, "m-1"), join(world, "m-2")
    before = hand_out(world, me, 10)
    again = hand_out(world, me, 10)
    assert (slices(before), slices(again)) == ("0-9", "0-9")
    assert before.epoch != again.epoch
    assert world.store.positions.authorize(me, offset_of("m-1", before)).value.owned == {TP: ()}
    assert commit(world, me, before) == {TP: (Fact(WHOLE, 0, before.epoch, offsets_of("0-9")),)}
    assert slices(hand_out(world, other, 10)) == "10-19"


def test_slice_end__another_member_gets_them_once_the_lease_has_ended(world: World) -> None:
    """Rule: slice-end. Another member may get a slice if the lease of its holder has ended."""
    world.found()
    dead, alive = join(world, "m-1"), join(world, "m-2")
    lost = hand_out(world, dead, 10)
    world.lapse(SESSION)
    world.store.members.heartbeat(alive)
    assert slices(hand_out(world, alive, 10)) == "10-19"
    world.lapse(1)
    assert slices(hand_out(world, alive, 10)) == "0-9"
    assert world.events("lost") == ["handed out again to m-2: no sign of life of its member"]
    assert commit(world, dead, lost) == {TP: (Fact(WHOLE, 0, lost.epoch, offsets_of("0-9")),)}
    assert world.positions() == {str(WHOLE): "0"}


def test_slice_end__its_member_keeps_them_until_another_one_asks(world: World) -> None:
    world.found()
    me = join(world, "m-1")
    mine = hand_out(world, me, 10)
    world.lapse(10 * SESSION)
    assert commit(world, me, mine) == {}
