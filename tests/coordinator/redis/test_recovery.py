"""A Redis that lost the group's state, or holds what is not ours. Transition tests are named by the arrow."""

import pytest

from coordinator.errors import StateFormatError, StateLostError
from coordinator.plan.poison import Strike
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller
from coordinator.values import verdicts
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from store_world import LOWER, NO_MEMBER, OTHER, SESSION, TOPICS, TP, UPPER, WANTED, World, lane, offset

ON_EACH_SERVER = True


@pytest.mark.parametrize("survivor", ["segments:orders:0", "stable:orders", "topics"])
def test_keys_without_meta_are_a_loss_never_a_new_group(world: World, survivor: str) -> None:
    world.found(p0=5)
    prefix = GroupKeys(world.group).meta.removesuffix("meta")
    for name in OperatorVerbs.of_group(world.client, world.group).names():
        if name != prefix + survivor:
            world.redis.delete(name)
    with pytest.raises(verdicts.Lost, match=f"meta is gone, and .*{survivor} is not"):
        world.store.positions.create("bb", TOPICS, {TP: 99})
    assert OperatorVerbs.of_group(world.client, world.group).names() == [prefix + survivor]


def test_epochs_of_partitions_that_the_recovering_member_does_not_read_are_void_too(world: World) -> None:
    world.found(p0=5, p1=5)
    me = world.join()
    world.store.positions.acquire(me, {OTHER: (WHOLE,)})
    end = StreamOffset("g", "m-1", 0, {"orders": "id-1"}, {OTHER: (lane("aa.1", 5, 10),)})
    world.restart()
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    world.lapse(SESSION + 1)
    me = world.join(before="aa")
    assert world.store.positions.authorize(me, end).value.owned == {OTHER: ()}
    assert world.store.positions.commit(me, end, completed(end)).value.refused == completed(end)


@pytest.mark.parametrize("seen", [pytest.param((0,), id="grown or assigned"), pytest.param((0, 1), id="all")])
def test_a_partition_that_the_recovering_member_does_not_see_is_recovered(world: World, seen: tuple[int, ...]) -> None:
    """Another member has assigned it, or saw the topic grow earlier."""
    topics = {"orders": Topic("orders", "id-1", seen)}
    world.store.positions.recover(NO_MEMBER, "bb", "gone", 0, topics, {TP: 5, OTHER: 7})
    assert world.store.positions.stable(["orders"]) == {TP: 5, OTHER: 7}
    assert world.redis.hget(GroupKeys(world.group).topics, "orders") == "id-1 2"


def test_proofs_of_a_newer_reset_replace_positions_and_those_of_an_older_one_are_ignored(world: World) -> None:
    world.found(p0=50, p1=60)
    world.store.positions.recover(NO_MEMBER, "bb", "a newer reset", 7, TOPICS, {TP: 5, OTHER: 70})
    assert world.store.positions.stable(["orders"]) == {TP: 5, OTHER: 70}
    assert world.store.positions.status().reset == world.store.positions.reset_epoch() == 7
    world.restart()
    world.store.positions.recover(NO_MEMBER, "cc", "an older reset", 6, TOPICS, {TP: 40, OTHER: 80})
    assert world.store.positions.stable(["orders"]) == {TP: 5, OTHER: 70}
    with pytest.raises(StateLostError, match="orders-1"):
        world.store.positions.recover(NO_MEMBER, "dd", "a newer reset", 8, TOPICS, {TP: 9, OTHER: None})


def test_a_recovery_does_not_record_partitions_that_it_does_not_place(world: World) -> None:
    """The topic grew while no member lived. A reset that only Kafka knows then makes two members recover."""
    store = world.store.positions
    store.create("aa", {"orders": Topic("orders", "id-1", (0,))}, {TP: 50}, grace_ms=1_000)
    for nonce in ("bb", "cc"):
        store.recover(NO_MEMBER, nonce, "a newer reset", 7, TOPICS, {TP: 5, OTHER: None})
        assert world.store.members.partition_counts() == {"orders": 1}
    assert store.create("", TOPICS, {TP: 1, OTHER: 2}, grace_ms=1_000, founding="aa").value == 1
    assert store.stable(["orders"]) == {TP: 5, OTHER: 2}
    assert [growth.field for growth in store.growths()] == ["orders 1 2"]


def test_a_reset_removes_individual_commits_only_where_positions_move(world: World) -> None:
    world.found(p0=5, p1=7)
    keys = GroupKeys(world.group)
    for tp in (TP, OTHER):
        world.redis.hset(keys.ics(tp), str(WHOLE), "20-29")
        world.redis.hset(keys.reserved(tp), "40-44", "w held until 1")
    known = world.store.positions.status().topics
    OperatorVerbs.of_group(world.client, world.group).reset("bb", 9, 0, "why", known, {TP: 3, OTHER: None})
    assert world.store.positions.stable(["orders"]) == {TP: 3, OTHER: 7}
    assert (world.positions(TP), world.positions(OTHER)) == ({str(WHOLE): "3"}, {str(WHOLE): "7"})
    assert not world.redis.exists(keys.ics(TP), keys.reserved(TP))
    assert world.redis.exists(keys.ics(OTHER), keys.reserved(OTHER)) == 2


@pytest.mark.parametrize(
    ("stored", "proven", "kept"),
    [
        pytest.param("", {UPPER: 20}, False, id="Redis has none"),
        pytest.param("3@18 reset=0 topic=id-0", {}, False, id="Redis has that of another topic"),
        pytest.param("3@18 reset=0 topic=id-1", {LOWER: 15, UPPER: 20}, False, id="each position has its proof"),
        pytest.param("3@18 reset=0 topic=id-1", {LOWER: 14, UPPER: 20}, True, id="a position is above its proof"),
        pytest.param("3@18 reset=0 topic=id-1", {UPPER: 20}, True, id="the proof is of other hashes"),
        pytest.param("5@18 reset=0 topic=id-1", {WHOLE: 20}, True, id="Redis has a newer one"),
    ],
)
def test_a_recovery_stores_the_leader_epoch_of_its_proofs_with_the_positions(
    world: World, stored: str, proven: dict[HashRange, int], kept: bool
) -> None:
    """Rule: leader-epoch-facts. In one script: a process may die between two calls."""
    me, text, key = world.owner(p0=10), "4@20 reset=0 topic=id-1", GroupKeys(world.group).epoch("orders")
    world.commit(me, offset(lane("aa.1", 10, 15)))
    if stored:
        world.redis.hset(key, "0", stored)
    world.restart()
    extents = {TP: (text, tuple(Fact(h, at) for h, at in proven.items()))}
    world.store.positions.recover(me, "bb", "restarted", 0, TOPICS, {TP: None}, extents=extents)
    assert world.redis.hget(key, "0") == (stored if kept else text)


def test_individual_commits_beyond_a_proof_keep_the_leader_epoch_that_redis_has(world: World) -> None:
    me, key = world.owner({str(WHOLE): "30-39"}, p0=10), GroupKeys(world.group).epoch("orders")
    world.redis.hset(key, "0", stored := "3@50 reset=0 topic=id-1")
    world.restart()
    extents = {TP: ("4@20 reset=0 topic=id-1", (Fact(WHOLE, 20),))}
    world.store.positions.recover(me, "bb", "restarted", 0, TOPICS, {TP: 20}, extents=extents)
    assert world.redis.hget(key, "0") == stored


def test_a_damaged_leader_epoch_stops_the_recovery_before_it_writes(world: World) -> None:
    me = world.owner(p0=10)
    world.redis.hset(GroupKeys(world.group).epoch("orders"), "0", "4@x")
    world.restart()
    extents = {TP: ("4@20 reset=0 topic=id-1", (Fact(WHOLE, 20),))}
    with pytest.raises(StateFormatError, match=r"0 of .*epoch:orders"):
        world.store.positions.recover(me, "bb", "restarted", 0, TOPICS, {TP: 20}, extents=extents)
    assert world.positions() == {str(WHOLE): "10"}


def test_a_second_recovery_of_the_same_loss_does_nothing(world: World) -> None:
    world.found()
    me = world.join()
    world.restart()
    world.store.positions.recover(me, "bb", "restarted", 0, TOPICS, {TP: None})
    world.store.positions.recover(me, "cc", "restarted", 0, TOPICS, {TP: None})
    assert world.redis.hget(GroupKeys(world.group).meta, "nonce") == "bb"


def test_a_partition_that_nothing_proves_stops_the_recovery_before_it_writes(world: World) -> None:
    with pytest.raises(StateLostError, match="orders-1"):
        world.store.positions.recover(Caller("m", "i", "aa", "9"), "bb", "gone", 0, TOPICS, {TP: 5, OTHER: None})
    with pytest.raises(verdicts.Absent):
        world.store.positions.status()


def test_a_recreated_topic_gets_new_positions_and_void_epochs(world: World) -> None:
    me = world.owner(p0=50)
    again = {"orders": Topic("orders", "id-2", (0,))}
    world.store.positions.recreate(again, {TP: 3})
    end = offset(lane("aa.1", 50, 60))
    assert world.store.positions.commit(me, end, completed(end)).value.refused == completed(end)
    assert world.store.positions.acquire(me, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    assert world.store.positions.stable(["orders"])[TP] == 3


@pytest.mark.parametrize(
    ("topic_id", "stable"),
    [
        pytest.param("id-1", 50, id="of a log that was cut never rise"),
        pytest.param("id-2", 80, id="of another topic do"),
    ],
)
def test_recreated_positions(world: World, topic_id: str, stable: int) -> None:
    world.found(p0=50, p1=90)
    world.store.positions.recreate({"orders": Topic("orders", topic_id, (0, 1))}, {TP: 80, OTHER: 80})
    assert world.store.positions.stable(["orders"]) == {TP: stable, OTHER: 80}


def test_only_positions_above_a_cut_move(world: World) -> None:
    world.found(p0=5)
    me = world.join()
    world.store.positions.acquire(me, {TP: cuts(2)})
    end = offset(lane("aa.1", 5, 90, cuts(2)[1]))
    world.store.positions.commit(me, end, completed(end))
    world.store.positions.recreate(TOPICS, {TP: 80})
    assert list(world.positions().values()) == ["5", "80"]
    assert world.store.positions.stable(["orders"]) == {TP: 5}


@pytest.mark.parametrize(
    ("topic_id", "by_hand", "left"),
    [
        pytest.param(
            "id-2", False, ["payments"], id="a topic that was created again: other records have these offsets"
        ),
        pytest.param("id-1", False, ["orders", "payments"], id="a log that was cut"),
        pytest.param("id-2", True, ["payments"], id="an operator moves positions of a topic that was created again"),
        pytest.param(
            "id-1", True, ["orders", "payments"], id="an operator moves positions: he releases nothing by that"
        ),
    ],
)
def test_strikes_outlive_positions_that_move_and_no_topic(
    world: World, topic_id: str, by_hand: bool, left: list[str]
) -> None:
    world.found(p0=50)
    for topic in ("orders", "payments"):
        parked = Strike(TopicPartition(topic, 0), WHOLE, OffsetRange(60, 61), 2, parked=True)
        world.redis.hset(GroupKeys(world.group).strikes, parked.field, parked.text)
    if by_hand:
        moved = {"orders": KnownTopic(topic_id, 1)}
        OperatorVerbs.of_group(world.client, world.group).reset("bb", 9, 0, "why", moved, {TP: 3})
    else:
        world.store.positions.recreate({"orders": Topic("orders", topic_id, (0,))}, {TP: 3})
    assert [s.tp.topic for s in world.store.poison.strikes()] == left
    assert world.events("release") == [f"orders 0 {WHOLE}: its topic was created again"] * (2 - len(left))


def test_a_look_of_before_a_recovery_shows_no_leader_epoch(world: World) -> None:
    """Rule: leader-epoch-facts. The old epoch shows that the higher position may be from before a cut."""
    me, key = world.owner(p0=100), GroupKeys(world.group).epoch("orders")
    world.redis.hset(key, "0", "3@100 reset=0 topic=id-1")
    world.restart()
    proof = {TP: ("4@60 reset=0 topic=id-1", (Fact(LOWER, 60),))}
    world.store.positions.recover(me, "bb", "restarted", 0, TOPICS, {TP: None}, extents=proof)
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.report_ends({TP: 200}, {TP: "4@200 reset=0 topic=id-1"}, 0, me)
    assert world.redis.hget(key, "0") == "3@100 reset=0 topic=id-1"


def test_a_key_of_another_type_is_refused_by_name(world: World) -> None:
    world.redis.set(GroupKeys(world.group).meta, "somebody else's")
    with pytest.raises(StateFormatError, match="did not write"):
        world.store.positions.status()
