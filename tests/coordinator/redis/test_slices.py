"""Slices of a group without order, in a real Redis: handed out, committed, handed out again (rule: hand-out)."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.progress.ownership import Fact, Owned
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import HandedOut
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE, HashRange, Offsets, offsets_of
from handed_slices import commit, hand_out, join, offset_of, slices
from store_world import BIG, LONGEST, OTHER, SESSION, TOPICS, TP, StoreServer, World

ON_EACH_SERVER = True


def test_a_look_hands_out_nothing(world: World) -> None:
    world.found(p0=7)
    looked = hand_out(world, join(world, "m-1"), 0)
    assert (looked.positions, looked.slices, looked.epoch) == ({TP: 7}, {}, "")
    assert looked.topic_ids == {"orders": "id-1"}


@pytest.mark.parametrize("session", [SESSION // 2, 4 * SESSION])
def test_the_lease_of_the_holder_counts_not_the_session_of_the_caller(world: World, session: int) -> None:
    world.found()
    hand_out(world, join(world, "m-1"), 10)
    world.store = world.store_with(session_ms=session)
    other = join(world, "m-2")
    world.lapse(SESSION)
    world.store.members.heartbeat(other)
    assert slices(hand_out(world, other, 10)) == "10-19"
    world.lapse(1)
    assert slices(hand_out(world, other, 10)) == "0-9"


def test_a_call_that_was_sent_twice_gets_its_slices_again(world: World) -> None:
    world.found()
    me = join(world, "m-1")
    numbered = replace(me, number="7")
    first, second = hand_out(world, numbered, 10), hand_out(world, numbered, 10)
    assert first == second
    assert slices(first) == "0-9"
    assert world.store.positions.authorize(me, offset_of("m-1", first)).value.owned[TP]


def test_the_answer_names_the_last_offset_that_is_done(world: World) -> None:
    world.found()
    slow, other = join(world, "m-1"), join(world, "m-2")
    hand_out(world, slow, 10)
    commit(world, other, hand_out(world, other, 10))
    looked = hand_out(world, other, 0)
    assert (looked.positions, looked.reach) == ({TP: 0}, {TP: 20})


def test_a_hung_batch_gives_its_slices_away(world: World) -> None:
    world.found()
    hung, other = join(world, "m-1"), join(world, "m-2")
    mine = hand_out(world, hung, 10)
    world.store.positions.authorize(hung, offset_of("m-1", mine))
    world.lapse(LONGEST + 1)
    for member in (hung, other):
        world.store.members.heartbeat(member, reading=member is hung)
    assert slices(hand_out(world, other, 10)) == "0-9"


def test_authorised_are_the_offsets_that_the_member_still_holds(world: World) -> None:
    world.found()
    me = join(world, "m-1")
    mine = hand_out(world, me, 10)
    end = offset_of("m-1", mine)
    whole = {TP: (Owned(WHOLE, mine.epoch, offsets_of("0-9")),)}
    assert world.store.positions.authorize(me, end).value.owned == whole
    longer = StreamOffset(
        "g", "m-1", 0, {"orders": "id-1"}, {TP: (Lane(WHOLE, mine.epoch, 5, offsets_of("5-20")),)}, by_key=False
    )
    assert world.store.positions.authorize(me, longer).value.owned == {
        TP: (Owned(WHOLE, mine.epoch, offsets_of("5-9")),)
    }


def test_another_life_replays_the_slices_of_the_earlier_one(world: World) -> None:
    world.found()
    mine = hand_out(world, join(world, "m-1"), 10)
    again = join(world, "m-1", "i2")
    whole = {TP: (Owned(WHOLE, mine.epoch, offsets_of("0-9")),)}
    assert world.store.positions.authorize(again, offset_of("m-1", mine)).value.owned == whole


def test_an_earlier_life_gets_and_commits_nothing(world: World) -> None:
    world.found()
    before = join(world, "m-1")
    mine = hand_out(world, before, 10)
    join(world, "m-1", "i2")
    with pytest.raises(verdicts.Fenced):
        hand_out(world, before)
    with pytest.raises(verdicts.Fenced):
        commit(world, before, mine)


def test_a_member_that_leaves_drops_its_slices_but_for_unconfirmed_ones(world: World) -> None:
    world.found(p0=0, p1=0)
    me = join(world, "m-1")
    mine = world.store.positions.hand_out(me, {TP: 10, OTHER: 10}, 20, 10).value
    end = offset_of("m-1", mine)
    assert world.store.members.leave(me, {TP: (), OTHER: (WHOLE,)}) == 1
    again = join(world, "m-1", "i2")
    owned = world.store.positions.authorize(again, end).value.owned
    assert owned == {TP: (), OTHER: (Owned(WHOLE, mine.epoch, offsets_of("0-9")),)}


def test_a_member_may_not_use_the_lane_epoch_of_another_one(world: World) -> None:
    world.found()
    mine = hand_out(world, join(world, "m-1"), 10)
    forger = join(world, "m-2")
    assert world.store.positions.authorize(forger, offset_of("m-2", mine)).value.owned == {TP: ()}
    assert commit(world, forger, mine) == {TP: (Fact(WHOLE, 0, mine.epoch, offsets_of("0-9")),)}


def test_after_order_offsets_count_as_done_once_they_are_done_in_all_hashes(world: World) -> None:
    world.found()
    lower, upper = HashRange(0, 2**62 - 1), HashRange(2**62, 2**63 - 1)
    world.redis.delete(GroupKeys(world.group).segments(TP))
    world.redis.hset(GroupKeys(world.group).segments(TP), mapping={str(lower): "30", str(upper): "10"})
    world.set_ics({str(upper): "20-39"})
    handed = hand_out(world, join(world, "m-1"))
    assert (handed.positions, slices(handed)) == ({TP: 10}, "10-19 30-49")


def test_partitions_take_turns_and_the_furthest_behind_is_first(world: World) -> None:
    world.found(p0=0, p1=90)
    me = join(world, "m-1")
    handed = world.store.positions.hand_out(me, {OTHER: 92, TP: 92}, 24, 20).value
    assert {tp: " ".join(map(str, o)) for tp, o in handed.slices.items()} == {OTHER: "90-91", TP: "0-21"}


def test_large_offsets_are_exact(world: World) -> None:
    world.found(p0=BIG)
    me = join(world, "m-1")
    one = hand_out(world, me, 3, end=BIG + 4)
    assert slices(one) == f"{BIG}-{BIG + 2}"
    assert commit(world, me, one) == {}
    assert slices(hand_out(world, me, 3, end=BIG + 4)) == f"{BIG + 3}-{BIG + 3}"


def test_slices_of_a_log_that_was_cut_are_void(world: World) -> None:
    world.found()
    me = join(world, "m-1")
    mine = hand_out(world, me, 10)
    world.store.positions.recreate(TOPICS, {TP: 0})
    assert commit(world, me, mine) == {TP: (Fact(WHOLE, 0, mine.epoch, offsets_of("0-9")),)}
    assert slices(hand_out(world, me, 10)) == "0-9"


def test_slices_expire_with_their_group(world: World) -> None:
    world.found()
    hand_out(world, join(world, "m-1"), 10)
    assert world.kept_for_ever() == []


def test_without_positions_the_group_has_lost_them(world: World) -> None:
    world.found()
    me = join(world, "m-1")
    world.redis.delete(GroupKeys(world.group).segments(TP))
    with pytest.raises(verdicts.Lost):
        hand_out(world, me)


class Model:
    """The same group as sets of single offsets, without Redis: the oracle."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        self.held: dict[int, tuple[str, int]] = {}  # offset -> member, and the number of its batch
        self.ends: dict[str, int] = {}  # member -> the end of its lease
        self.heard_at = 0

    def sign(self, member: str, now: int) -> None:
        """A sign of life. The first one after a silence is one of all that lived before (rule: outage-grace)."""
        half = SESSION // 2
        if now - self.heard_at > SESSION / 3:
            alive = (m for m, end in self.ends.items() if self.heard_at + half < end < now + half)
            self.ends |= dict.fromkeys(list(alive), now + half)
        self.ends[member], self.heard_at = now + SESSION, now

    def hand_out(self, member: str, most: int, end: int, number: int, now: int) -> list[int]:
        """The offsets that a member gets."""
        self.sign(member, now)
        self.held = {o: h for o, h in self.held.items() if h[0] != member and o not in self.done}
        living = {o for o, (m, _) in self.held.items() if now <= self.ends[m]}
        got = [o for o in range(end) if o not in self.done and o not in living][:most]
        self.held |= dict.fromkeys(got, (member, number))
        return got

    def commit(self, member: str, number: int, offsets: list[int], now: int) -> list[int]:
        """The offsets that are refused."""
        self.sign(member, now)
        mine = {o for o in offsets if self.held.get(o) == (member, number)}
        refused = [o for o in offsets if o not in mine and o not in self.done]
        self.done |= mine
        return refused


STEPS = st.lists(
    st.tuples(st.sampled_from(["hand_out", "commit", "commit again", "time"]), st.integers(0, 2), st.integers(1, 9)),
    max_size=25,
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_slices_are_those_of_a_model_of_single_offsets(world: World, steps: list[tuple[str, int, int]]) -> None:
    world = World(StoreServer(world.url, world.client))
    world.found()
    callers, model = [join(world, f"m-{i}") for i in range(3)], Model()
    model.ends, model.heard_at = {c.member: world.now + SESSION for c in callers}, world.now
    batches: dict[int, tuple[int, HandedOut]] = {}
    for number, (step, who, much) in enumerate(steps):
        caller = callers[who]
        if step == "time":
            world.now += much * SESSION // 4
        elif step == "hand_out":
            handed = hand_out(world, caller, much, end=40)
            assert offsets_in(handed.slices.get(TP, ())) == model.hand_out(caller.member, much, 40, number, world.now)
            batches[who] = number, handed
        elif who in batches:
            number_of, handed = batches[who]
            read = offsets_in(handed.slices.get(TP, ()))
            refused = commit(world, caller, handed).get(TP, ())
            expected = model.commit(caller.member, number_of, read, world.now)
            assert [o for fact in refused for o in offsets_in(fact.offsets)] == expected
    progress = Progress.parse(world.positions(), world.ics())
    assert {o for s in progress.segments for o in (*range(s.position), *offsets_in(s.ics))} == model.done


def offsets_in(ranges: Offsets) -> list[int]:
    return [o for r in ranges for o in range(r.start, r.until)]
