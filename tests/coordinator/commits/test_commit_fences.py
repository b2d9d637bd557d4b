"""Commits that come too late for their lanes: fenced by a new owner, a new life, a reset or a loss of state."""

import pytest

from commit_apis import api, ranges
from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.errors import (
    FencedMemberError,
    GroupRecoveringError,
    UnknownGroupError,
)
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from store_world import SESSION, TP, UPPER, WANTED, World

ON_EACH_SERVER = True


def test_takeable_to_taken_fences_the_commits_of_the_old_owner(world: World) -> None:
    commits = api(world)
    world.lapse(10 * SESSION)
    assert commits.commit(TP, ranges("43-43")).stable == 44  # a lease's end alone takes nothing away (rule: lease-end)
    world.store.positions.acquire(world.join("m-2", "i2"), {TP: (UPPER,)})
    assert commits.commit(TP, ranges("44-44")) == Committed(44, 0, 0, (UPPER,))
    world.store.positions.acquire(world.join("m-2", "i2"), WANTED)
    with pytest.raises(FencedMemberError, match="owns none of these hashes"):
        commits.commit(TP, ranges("45-45"))


def test_another_life_of_the_member_fences_the_commits_of_the_old_one(world: World) -> None:
    commits = api(world)
    world.join("m-1", "i2")
    with pytest.raises(FencedMemberError, match="another life"):
        commits.commit(TP, ranges("43-43"))
    assert CommitApi.of_member(world.url, world.group, "m-1").commit(TP, ranges("43-43")).stable == 44


def test_a_reset_of_the_group_or_another_topic_under_the_name_voids_the_lanes(world: World) -> None:
    commits = api(world)
    keys = GroupKeys(world.group)
    voids = ((keys.meta, "reset_epoch", "0", "7"), (keys.topics, "orders", "id-1 2", "7 2"))
    for key, field, there, another in voids:
        world.redis.hset(key, field, another)
        with pytest.raises(FencedMemberError):
            commits.commit(TP, ranges("43-43"))
        world.redis.hset(key, field, there)
    assert commits.commit(TP, ranges("43-43")).stable == 44


def test_after_a_loss_of_state_commits_wait_for_the_group(world: World) -> None:
    commits = api(world)
    world.restart()
    with pytest.raises(GroupRecoveringError) as recovering:
        commits.commit(TP, ranges("43-43"))
    assert recovering.value.retriable


def test_a_member_that_redis_does_not_know_has_no_commits(world: World) -> None:
    with pytest.raises(UnknownGroupError):
        CommitApi.of_member(world.url, world.group, "m-1")
    world.found()
    with pytest.raises(UnknownGroupError, match="no member 'm-9'"):
        CommitApi.of_member(world.url, world.group, "m-9")
    with pytest.raises(UnknownGroupError, match="names no group"):
        CommitApi.of_offset(world.url, StreamOffset(world.group).to_json())
