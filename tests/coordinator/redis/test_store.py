"""Positions in a real Redis: founded, acquired, authorised, committed. Transition tests are named by the arrow."""

from dataclasses import replace

import pytest

from coordinator.progress.ends import Ends
from coordinator.progress.ownership import Fact, Facts, Owned, completed
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Authorized, Sealed
from coordinator.redis.snapshot import list_groups
from coordinator.values import verdicts
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from store_world import BIG, OTHER, SESSION, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True


def test_nothing_to_created_sets_first_positions_once(world: World) -> None:
    with pytest.raises(verdicts.Absent):
        world.store.positions.status()
    assert world.store.positions.create("aa", TOPICS, {TP: 5}).value == 1
    assert world.store.positions.create("bb", TOPICS, {TP: 9, OTHER: 7}).value == 1
    assert world.redis.hget(GroupKeys(world.group).meta, "nonce") == "aa"
    assert world.store.positions.stable(["orders"]) == {TP: 5, OTHER: 7}
    assert world.group in list_groups(world.client)


def test_a_call_that_only_places_partitions_creates_no_group(world: World) -> None:
    """If it comes late, it would create the group again after a loss of state (rule: create-once)."""
    with pytest.raises(verdicts.Absent):
        world.store.positions.create("", TOPICS, {TP: 5})
    assert not world.redis.exists(GroupKeys(world.group).meta)


def test_free_to_owned_sets_a_new_lane_epoch_and_owned_to_owned_keeps_it(world: World) -> None:
    world.found()
    me = world.join()
    first = world.store.positions.acquire(me, WANTED).value
    assert first.ownership == {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.positions.acquire(me, WANTED).value.ownership == first.ownership


def test_released_to_owned_takes_an_epoch_never_used_before(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    assert world.store.members.leave(me, {TP: ()}) == 0
    assert world.store.positions.acquire(world.join("m-1", "i2"), WANTED).value.ownership == {
        TP: (Owned(WHOLE, "aa.2"),)
    }


def test_commit_moves_positions_and_repeats_change_nothing(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.1", 0, 20, upper))
    for _ in range(2):
        assert world.store.positions.commit(me, end, completed(end)).value.refused == {}
        assert world.positions() == {str(lower): "10", str(upper): "20"}
        assert world.store.positions.stable(["orders"])[TP] == 10


def test_an_older_commit_never_moves_a_position_back(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    for until in (20, 10):
        end = offset(lane("aa.1", 0, until))
        world.store.positions.commit(me, end, completed(end))
    assert world.positions() == {str(WHOLE): "20"}


def test_a_commit_is_exact_only_if_all_is_done_exactly_up_to_its_end(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    lower, upper = cuts(2)

    def exactly(*lanes: Lane) -> bool:
        end = offset(*lanes)
        return world.store.positions.commit(me, end, completed(end)).value.exactly

    assert exactly(lane("aa.1", 0, 10, lower), lane("aa.1", 0, 20, upper))
    assert exactly(lane("aa.1", 0, 20)), "one segment again"
    assert not exactly(lane("aa.1", 0, 10)), "it was further already"
    assert not exactly(lane("aa.1", 0, 30, lower), lane("aa.9", 0, 30, upper)), "a part of it was refused"
    with_ics = Lane(lower, "aa.1", 30, (OffsetRange(30, 31), OffsetRange(35, 36)))
    assert not exactly(with_ics, lane("aa.1", 0, 31, upper)), "it left an individual commit"
    assert not exactly(lane("aa.1", 31, 32, upper)), "the partition still has one elsewhere"
    assert exactly(lane("aa.1", 31, 40)), "the position has passed it"


def test_equal_neighbours_become_one_segment_again(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    for n in (2, 7, 3):
        end = offset(*(lane("aa.1", 0, 10 * n, h) for h in cuts(n)))
        world.store.positions.commit(me, end, completed(end))
    assert world.positions() == {str(WHOLE): "70"}


def test_neighbours_of_two_owners_stay_two_segments_though_their_positions_are_equal(world: World) -> None:
    world.found()
    lower, upper = cuts(2)
    for caller, hashes, epoch in ((world.join(), lower, "aa.1"), (world.join("m-2", "i2"), upper, "aa.2")):
        world.store.positions.acquire(caller, {TP: (hashes,)})
        end = offset(lane(epoch, 0, 10, hashes))
        world.store.positions.commit(caller, end, completed(end))
    assert world.positions() == {str(lower): "10", str(upper): "10"}


def test_positions_too_large_for_a_double_are_compared_exactly(world: World) -> None:
    world.found(p0=BIG - 1)
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    end = offset(lane("aa.1", BIG - 1, BIG))
    world.store.positions.commit(me, end, completed(end))
    assert world.store.positions.stable(["orders"])[TP] == BIG
    world.store.positions.claim(end, {TP: (Fact(WHOLE, BIG - 1),)})
    assert world.store.positions.stable(["orders"])[TP] == BIG


def test_a_refused_lane_epoch_does_not_block_the_commit_of_owned_lanes(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.9", 0, 20, upper))
    assert world.store.positions.commit(me, end, completed(end)).value.refused == {TP: (Fact(upper, 20, "aa.9"),)}
    assert world.positions() == {str(lower): "10", str(upper): "0"}
    fence = last_events(world.client, world.group, 1)[0]
    why = "a commit left out ranges that have moved since, as after a restart; their owner reads them"
    assert (fence.kind, fence.member, fence.why, fence.ranges) == ("fence", "m-1", why, f"orders-0 {upper}")


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(offset(lane("aa.1", 0, 10), reset=8), id="of an older reset epoch"),
        pytest.param(offset(lane("aa.1", 0, 10), reset=9, topic_id="id-2"), id="of another topic id"),
    ],
)
def test_facts_of_another_world_are_refused_and_ignored(world: World, end: StreamOffset) -> None:
    world.found()
    world.redis.hset(GroupKeys(world.group).meta, "reset_epoch", "9")
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    assert world.store.positions.commit(me, end, completed(end)).value.refused == completed(end)
    world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),)})
    assert world.store.positions.authorize(me, end).value.owned == {TP: ()}
    assert world.positions() == {str(WHOLE): "0"}


def test_a_fact_of_a_newer_reset_epoch_than_redis_has_is_a_loss_of_state(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    end = offset(lane("aa.1", 0, 10), reset=1)
    for verb in (
        lambda: world.store.positions.commit(me, end, completed(end)),
        lambda: world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),)}),
        lambda: world.store.positions.authorize(me, end),
    ):
        with pytest.raises(verdicts.Lost, match="before a reset"):
            verb()
    assert world.positions() == {str(WHOLE): "0"}


def stored(world: World) -> str | None:
    text = world.redis.hget(GroupKeys(world.group).epoch("orders"), "0")
    return str(text) if text is not None else None


@pytest.mark.parametrize(
    ("text", "epoch", "position"),
    [
        pytest.param("4@90 reset=0 topic=id-1", 3, 5, id="an older one: ignored"),
        pytest.param("4@90 reset=0 topic=id-1", 4, 10, id="the same"),
        pytest.param("9@90 reset=0 topic=id-1", 10, 10, id="a newer one"),
        pytest.param("4@90 reset=0 topic=id-1", None, 10, id="unknown"),
        pytest.param(None, 3, 10, id="Redis knows none"),
        pytest.param("4@90 reset=7 topic=id-1", 3, 10, id="Redis knows that of another reset epoch"),
        pytest.param("4@90 reset=0 topic=id-2", 3, 10, id="Redis knows that of another topic id"),
    ],
)
def test_an_assertion_of_an_older_leader_epoch_is_ignored(
    world: World, text: str | None, epoch: int | None, position: int
) -> None:
    world.found(p0=5, p1=5)
    if text:
        world.store.positions.report_ends({}, {TP: text})
    facts: Facts = {OTHER: (Fact(WHOLE, 10),), TP: (Fact(WHOLE, 10),)}
    world.store.positions.claim(replace(offset(), leader_epochs={} if epoch is None else {TP: epoch}), facts)
    assert world.store.positions.stable(["orders"]) == {TP: position, OTHER: 10}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("3@99 reset=0 topic=id-1", "4@90 reset=0 topic=id-1", id="an older one: by a late look"),
        pytest.param("4@99 reset=0 topic=id-1", "4@99 reset=0 topic=id-1", id="the same"),
        pytest.param("10@99 reset=0 topic=id-1", "10@99 reset=0 topic=id-1", id="a newer one"),
        pytest.param("0@9 reset=7 topic=id-1", "0@9 reset=7 topic=id-1", id="of another reset epoch"),
        pytest.param("0@9 reset=0 topic=id-2", "0@9 reset=0 topic=id-2", id="of another topic id"),
    ],
)
def test_a_stored_leader_epoch_stays_unless_a_newer_one_is_stored(world: World, text: str, left: str) -> None:
    world.found(p0=5)
    for cut in (False, True):
        world.redis.hset(GroupKeys(world.group).epoch("orders"), "0", "4@90 reset=0 topic=id-1")
        if cut:
            world.store.positions.recreate(TOPICS, {TP: 5}, {TP: text})
        else:
            world.store.positions.report_ends({TP: 99}, {TP: text})
        assert stored(world) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("4@9 reset=0 topic=id-1", "4@90 reset=0 topic=id-1", id="a lower end: an open transaction"),
        pytest.param("3@100 reset=0 topic=id-1", "4@90 reset=0 topic=id-1", id="of an older leader epoch"),
        pytest.param("4@100 reset=0 topic=id-1", "4@100 reset=0 topic=id-1", id="a larger end"),
    ],
)
def test_a_larger_end_of_the_same_leader_epoch_stays(world: World, text: str, left: str) -> None:
    world.found(p0=5)
    world.redis.hset(GroupKeys(world.group).epoch("orders"), "0", "4@90 reset=0 topic=id-1")
    world.store.positions.report_ends({TP: 99}, {TP: text})
    assert stored(world) == left


def test_a_log_that_was_cut_under_the_same_leader_epoch_has_a_lower_end(world: World) -> None:
    """As where brokers restore a copy of their disk."""
    world.found(p0=5)
    world.redis.hset(GroupKeys(world.group).epoch("orders"), "0", "4@90 reset=0 topic=id-1")
    world.store.positions.recreate(TOPICS, {TP: 5}, {TP: "4@9 reset=0 topic=id-1"})
    assert stored(world) == "4@9 reset=0 topic=id-1"


def test_positions_of_a_cut_log_and_its_leader_epoch_change_together(world: World) -> None:
    world.found(p0=5, p1=5)
    world.store.positions.recreate(TOPICS, {OTHER: 4, TP: 3}, {TP: "4@90 reset=0 topic=id-1"})
    assert (world.store.positions.stable(["orders"]), stored(world)) == ({TP: 3, OTHER: 4}, "4@90 reset=0 topic=id-1")
    end = replace(offset(lane("aa.1", 5, 10)), leader_epochs={TP: 3, OTHER: 3})
    world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),), OTHER: (Fact(WHOLE, 10),)})
    assert world.store.positions.stable(["orders"]) == {TP: 3, OTHER: 10}


def test_authorisation_names_the_parts_still_owned(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.7", 0, 10, upper))
    assert world.store.positions.authorize(me, end).value.owned == {TP: (Owned(lower, "aa.1"),)}


EARLY = replace(offset(lane("aa.1", 0, 10)), early=1)
TO_7: Ends = {TP: HashMap.of(WHOLE, 7)}


def test_a_sealed_batch_is_authorised_with_its_ends_in_each_later_life(world: World) -> None:
    """Rule: replay-fixed."""
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    owned = {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.positions.authorize(me, EARLY).value == Authorized(owned)
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(None)
    assert world.store.positions.seal(me, EARLY.digest, TO_7).value
    for life in ("i2", "i3"):
        me = world.join("m-1", life)
        assert world.store.positions.authorize(me, EARLY, replayed=True).value == Authorized(owned, TO_7)
        assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(TO_7)


def test_the_next_batch_has_no_seal_and_a_late_seal_is_refused(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.store.positions.authorize(me, EARLY)
    world.store.positions.seal(me, EARLY.digest, {})
    following = replace(EARLY, early=2)
    assert world.store.positions.authorize(me, following).value.ends is None
    assert not world.store.positions.seal(me, EARLY.digest, TO_7).value
    assert world.store.positions.seal_of("m-1", following.digest) == Sealed(None)
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(unread=True)


def test_a_batch_is_sealed_as_planned__each_early_end_is_added_once(world: World) -> None:
    world.found()
    me, (lower, upper) = world.join(), cuts(2)
    world.store.positions.acquire(me, WANTED)
    for _ in range(2):  # the first answer may be lost
        assert world.store.positions.authorize(me, EARLY, as_planned=True).value.as_planned
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed({})
    for hashes, end in ((upper, 7), (lower, 5), (upper, 7)):
        assert world.store.positions.seal(me, EARLY.digest, {TP: HashMap.of(hashes, end)}).value
    later = world.join("m-1", "i2")
    ends = world.store.positions.authorize(later, EARLY, replayed=True, as_planned=True).value.ends
    assert ends == {TP: ((lower, 5), (upper, 7))}


def test_a_batch_that_an_earlier_life_authorised_unsealed_is_not_sealed_as_planned(world: World) -> None:
    """Its plan may be long, because its tasks could end early. Each later life begins it anew."""
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    assert not world.store.positions.authorize(me, EARLY).value.as_planned
    later = world.join("m-1", "i2")
    for _ in range(2):  # the first answer may be lost
        answer = world.store.positions.authorize(later, EARLY, replayed=True, as_planned=True).value
        assert (answer.ends, answer.as_planned) == (None, False)


def test_a_seal_is_not_taken_for_one_of_a_topic_with_a_longer_name(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.store.positions.authorize(me, EARLY, as_planned=True)
    ends = {TopicPartition(topic, 0): HashMap.of(WHOLE, 7) for topic in ("orders", "rs")}
    for tp, of_tp in ends.items():
        world.store.positions.seal(me, EARLY.digest, {tp: of_tp})
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(ends)


def test_another_life_seals_no_batch(world: World) -> None:
    world.found()
    old = world.join()
    world.store.positions.acquire(old, WANTED)
    world.store.positions.authorize(old, EARLY)
    world.join("m-1", "i2")
    with pytest.raises(verdicts.Fenced):
        world.store.positions.seal(old, EARLY.digest, TO_7)


def test_a_replay_after_the_entry_of_its_member_was_lost_has_unknown_ends(world: World) -> None:
    """Rule: unknown-is-beginning. They stay unknown for each later life."""
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.store.positions.authorize(me, EARLY)
    world.store.positions.seal(me, EARLY.digest, TO_7)
    world.redis.delete(GroupKeys(world.group).member("m-1"))
    for life in ("i2", "i3"):
        me = world.join("m-1", life)
        assert world.store.positions.authorize(me, EARLY, replayed=True).value.unknown
        assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(None)


def test_live_to_takeable_keeps_the_owner_until_another_member_acquires(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.lapse(10 * SESSION)
    end = offset(lane("aa.1", 0, 10))
    assert world.store.positions.authorize(me, end).value.owned == {TP: (Owned(WHOLE, "aa.1"),)}
    world.lapse(10 * SESSION)
    assert world.store.positions.commit(me, end, completed(end)).value.refused == {}


def test_others_are_heard_until_the_lease_ends__it_ends_at_its_time(world: World) -> None:
    """No silence, so no grace (rule: outage-grace)."""
    world.found()
    one, two = world.join("m-1"), world.join("m-2")
    world.store.positions.acquire(one, WANTED)
    for ms in (SESSION // 2 - 10, 20, SESSION // 4, SESSION // 4 - 10):
        world.now += ms
        assert world.store.positions.acquire(two, WANTED).value.ownership == {TP: ()}
    world.now += 1
    assert world.store.positions.acquire(two, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}


def test_takeable_to_taken_fences_the_old_owner(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.lapse(10 * SESSION)
    other = world.join("m-2", "i2")
    assert world.store.positions.acquire(other, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    end = offset(lane("aa.1", 0, 10))
    assert world.store.positions.authorize(me, end).value.owned == {TP: ()}
    assert world.store.positions.commit(me, end, completed(end)).value.refused == completed(end)
    assert world.positions() == {str(WHOLE): "0"}
