"""Requests that no script carries out: each is refused by name, and the group does not change.

An offset is checked when it is parsed (`test_hostile_checkpoints`); the scripts do not rely on that.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from coordinator.errors import CheckpointMismatchError
from coordinator.progress.ownership import Fact, Facts
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.values.ranges import OFFSET_MAX, WHOLE, OffsetRange
from coordinator.values.subscription import Topic
from group_dump import dump
from store_world import TOPICS, TP, WANTED, World

Ask = Callable[[World, Caller], object]
OWNED = StreamOffset("g", "m-1", 0, {"orders": "id-1"}, {TP: (Lane(WHOLE, "aa.1", 5, (OffsetRange(5, 9),)),)})
LAST: Facts = {TP: (Fact(WHOLE, OFFSET_MAX, "aa.1"),)}
SPACED = {"orders": Topic("orders", "id-1 5", (0, 1))}


def commit(offset: StreamOffset, facts: Facts) -> Ask:
    return lambda world, me: world.store.positions.commit(me, offset, facts)


def claim(offset: StreamOffset, facts: Facts) -> Ask:
    return lambda world, me: world.store.positions.claim(offset, facts)


def asserted(position: int) -> Facts:
    return {TP: (Fact(WHOLE, position),)}


def recover(reset: int, topics: dict[str, Topic], position: int) -> Ask:
    def ask(world: World, me: Caller) -> None:
        world.restart()
        world.store.positions.recover(me, "bb", "a loss", reset, topics, {TP: position})

    return ask


GOOD_FACTS: Facts = {TP: (Fact(WHOLE, 9, "aa.1"),)}
WRITES: list[Any] = [
    pytest.param(lambda w, _: w.store.members.join(Caller("m 1", "i1"), "", Joining({"host": "h"})), "member m 1",
                 id="a member with a space joins"),
    pytest.param(lambda w, _: w.store.members.join(Caller("m:1", "i1"), "", Joining({"host": "h"})), "member m:1",
                 id="a member with a colon joins"),
    pytest.param(lambda w, me: w.store.positions.acquire(replace(me, member="m 1"), WANTED), "member m 1",
                 id="a member with a space takes ranges"),
    pytest.param(commit(replace(OWNED, reset=2**63), GOOD_FACTS), "reset epoch 9223372036854775808",
                 id="a commit after a reset of 2^63"),
    pytest.param(commit(OWNED, LAST), f"position {OFFSET_MAX}", id="a commit of a position behind every log"),
    pytest.param(commit(OWNED, {TP: (Fact(WHOLE, 2**63, "aa.1"),)}), "position 9223372036854775808",
                 id="a commit of a position of 2^63"),
    pytest.param(commit(replace(OWNED, topic_ids={"orders": "id-1 5"}), GOOD_FACTS), "topic id id-1 5",
                 id="a commit with a topic id that names a partition"),
    pytest.param(commit(OWNED, {TP: (Fact(WHOLE, 9, "aa.1 7"),)}), "lanes 0000",
                 id="a commit with a lane epoch that names a position"),
    pytest.param(commit(OWNED, {TP: (Fact(WHOLE, 9, "aa.1"), Fact(WHOLE, 7, "aa.1"))}), "lanes 0000",
                 id="a commit of two positions for one hash"),
    pytest.param(claim(replace(OWNED, reset=10**15), asserted(9)), "reset epoch 1000000000000000",
                 id="an assertion after a reset in the year 33658"),
    pytest.param(claim(OWNED, asserted(OFFSET_MAX)), f"position {OFFSET_MAX}",
                 id="an assertion of a position behind every log"),
    pytest.param(claim(replace(OWNED, topic_ids={"orders": "id-1 5"}), asserted(9)), "topic id id-1 5",
                 id="an assertion with a topic id that names a partition"),
    pytest.param(claim(replace(OWNED, leader_epochs={TP: -2}), asserted(9)), "leader epoch -2",
                 id="an assertion of a leader epoch below 0"),
    pytest.param(claim(replace(OWNED, leader_epochs={TP: 2**63}), asserted(9)), "leader epoch 9223372036854775808",
                 id="an assertion of a leader epoch of 2^63"),
    pytest.param(lambda w, me: w.store.positions.authorize(me, replace(OWNED, reset=2**63)), "reset epoch",
                 id="a batch after a reset of 2^63 is begun"),
    pytest.param(lambda w, me: w.store.positions.authorize(me, replace(OWNED, topic_ids={"orders": "id-1 5"})),
                 "topic id id-1 5", id="a batch with a topic id of two words is begun"),
    pytest.param(recover(2**63, TOPICS, 9), "reset epoch", id="a recovery to a reset epoch of 2^63"),
    pytest.param(recover(0, SPACED, 9), "position orders id-1 5", id="a recovery with a topic id of two words"),
    pytest.param(recover(0, TOPICS, OFFSET_MAX), "position orders id-1",
                 id="a recovery to a position behind every log"),
    pytest.param(lambda w, _: w.store.positions.create("", SPACED, {TP: 5}), "position orders id-1 5",
                 id="first positions of a topic with an id of two words"),
    pytest.param(lambda w, _: w.store.positions.recreate(TOPICS, {TP: 2**63}), "position orders id-1",
                 id="a topic that was created again, at 2^63"),
    pytest.param(lambda w, _: w.store.positions.recreate(TOPICS, {TP: 5}, {TP: "4@x"}), "leader epoch 4@x",
                 id="a log that was cut, at a leader epoch that is no text of ours"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "piece"), WRITES)
def test_a_script_refuses_to_write_state_that_no_member_could_read(world: World, ask: Ask, piece: str) -> None:
    me = world.owner(p0=5)
    before = dump(world.redis, world.group)
    with pytest.raises(CheckpointMismatchError) as refused:
        ask(world, me)
    after = dump(world.redis, world.group)
    meta = GroupKeys(world.group).meta
    for found in (before, after):
        cast(dict[str, str], found[meta]).pop("run_id")  # a recovery is of a server that restarted
    assert after == before, "it was refused, and has written"
    assert piece in str(refused.value)
    assert "new checkpointLocation" in refused.value.remedy
