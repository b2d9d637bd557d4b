"""The Commit API on a real Redis: the draft KIP's worked examples, and what the lanes of a member may commit."""

import json

import pytest

from commit_apis import api, batch_of, ranges, state
from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import (
    CommitBeyondReadError,
    CommitError,
)
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic
from store_world import LOWER, OTHER, TP, UPPER, WANTED, World, lane

ON_EACH_SERVER = True


def test_a_commit_without_ranges_completes_all_records_before_its_offset(world: World) -> None:
    assert api(world, 43, "45-47").commit(TP, [], offset=45).stable == 48


def test_a_member_may_commit_exactly_the_lanes_of_its_stream_offset(world: World) -> None:
    api(world).close()
    with batch_of(world, lane("aa.1", 43, 45, LOWER), lane("aa.9", 43, 45, UPPER)) as commits:
        assert commits.commit(TP, ranges("43-44")) == Committed(43, 0, 0, (UPPER,))
    assert world.positions() == {str(LOWER): "45", str(UPPER): "43"}


def test_a_commit_can_be_for_one_lane_only(world: World) -> None:
    commits = api(world)
    assert commits.lanes == {TP: (Owned(WHOLE, "aa.1"),), OTHER: ()}
    commits.commit(TP, ranges("45-46"), lanes=[Owned(LOWER, "aa.1")])
    assert state(world) == ({str(LOWER): "43", str(UPPER): "43"}, {str(LOWER): "45-46"})
    with pytest.raises(CommitError, match="overlap"):
        commits.commit(TP, ranges("45-46"), lanes=[Owned(LOWER, "aa.1"), Owned(WHOLE, "aa.1")])


def test_an_idle_lane_of_a_batch_takes_no_commit_beyond_its_position(world: World) -> None:
    api(world).close()
    with batch_of(world, Lane(WHOLE, "aa.1", 43)) as commits, pytest.raises(CommitBeyondReadError):
        commits.commit(TP, ranges("43-43"))
    assert state(world) == ({str(WHOLE): "43"}, {})


def test_a_lane_that_ends_before_its_neighbour_accepts_only_its_own_offsets(world: World) -> None:
    """A worker with record 60 of the upper lane need not know that the lower lane reads to offset 50."""
    api(world).close()
    with batch_of(world, lane("aa.1", 43, 50, LOWER), lane("aa.1", 43, 70, UPPER)) as commits:
        assert commits.commit(TP, ranges("60-60")) == Committed(43, 1, 0, ())
        assert state(world) == ({str(LOWER): "43", str(UPPER): "43"}, {str(UPPER): "60-60"})
        assert commits.commit(TP, [], offset=70) == Committed(50, 0, 0, ())
        assert world.positions() == {str(LOWER): "50", str(UPPER): "70"}
        with pytest.raises(CommitBeyondReadError, match="includes offset 50"):
            commits.commit(TP, ranges("60-60"), lanes=[Owned(LOWER, "aa.1")])
        assert commits.commit(TP, ranges("60-60"), lanes=[Owned(UPPER, "aa.1")]).duplicates == 1


def test_a_lane_that_its_task_ended_early_accepts_no_offset_behind_its_end(world: World) -> None:
    """Its task stopped before offset 60 of the lower lane. The batch was planned up to 69."""
    api(world).close()
    lanes = lane("aa.1", 43, 70, LOWER), lane("aa.1", 43, 70, UPPER)
    end = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: lanes})
    other_partition = {OTHER: HashMap.of(WHOLE, 43)}
    world.store.positions.authorize(world.caller("m-1"), end)
    with batch_of(world, *lanes) as commits:
        assert commits.commit(TP, ranges("69-69"), lanes=[Owned(LOWER, "aa.1")]).held == 1, "tasks may still read it"
        world.store.positions.seal(world.caller("m-1"), end.digest, {TP: HashMap.of(LOWER, 60)} | other_partition)
        for refused in ("60-60", "43-68", "66-67"):
            with pytest.raises(
                CommitBeyondReadError, match="includes offset 60, and the lanes of this batch end before"
            ):
                commits.commit(TP, ranges(refused), lanes=[Owned(LOWER, "aa.1")])
        assert commits.commit(TP, [], offset=69).stable == 60, "the other lane was read to its end"
        assert world.positions() == {str(LOWER): "60", str(UPPER): "69"}
    later = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: (lane("aa.1", 60, 90, LOWER),)})
    world.store.positions.authorize(world.caller("m-1"), later)
    with batch_of(world, *later.lanes[TP]) as commits:
        assert commits.commit(TP, ranges("60-68"), lanes=[Owned(LOWER, "aa.1")]).stable == 69, "another batch reads it"
    world.store.positions.seal(world.caller("m-1"), later.digest, {TP: HashMap.of(LOWER, 69)})
    with batch_of(world, *lanes) as commits:
        assert commits.commit(TP, ranges("69-69"), lanes=[Owned(LOWER, "aa.1")]).stable == 69, "of the batch before"


def test_a_batch_that_is_sealed_as_planned_takes_commits_at_once(world: World) -> None:
    """Redis cannot tell whether its tasks have ended (rule: seal-as-planned)."""
    api(world).close()
    end = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: (lane("aa.1", 43, 70),)}, early=1)
    world.store.positions.authorize(world.caller("m-1"), end, as_planned=True)
    with CommitApi.of_offset(world.url, json.dumps(end.to_json())) as commits:
        assert commits.commit(TP, ranges("43-44")).stable == 45


def test_hashes_that_the_batch_does_not_read_take_no_commit(world: World) -> None:
    api(world).close()
    with batch_of(world, lane("aa.1", 43, 50, LOWER)) as commits:
        assert commits.commit(TP, ranges("43-44"), lanes=[Owned(WHOLE, "aa.1")]).stable == 43
        assert world.positions() == {str(LOWER): "45", str(UPPER): "43"}
        with pytest.raises(CommitBeyondReadError, match="includes offset 0"):
            commits.commit(TP, ranges("43-44"), lanes=[Owned(UPPER, "aa.1")])


def test_a_commit_of_a_member_ends_at_the_log_end_that_redis_holds(world: World) -> None:
    commits = api(world)
    world.logs_reach(100)
    with pytest.raises(
        CommitBeyondReadError, match="includes offset 100, which is not below the end offset in Redis"
    ) as far:
        commits.commit(TP, ranges("199-199"))
    assert (far.value.name, far.value.reach) == ("COMMIT_BEYOND_READ", 100)
    with pytest.raises(CommitBeyondReadError):
        OrderedCommits(commits, "w").reserve(TP, OffsetRange(90, 101))
    assert state(world) == ({str(WHOLE): "43"}, {})
    assert commits.commit(TP, ranges("99-99")).held == 1
    world.logs_reach(300)
    assert commits.commit(TP, ranges("199-199")).held == 2


def test_without_a_log_end_in_redis_a_commit_of_a_member_is_refused(world: World) -> None:
    commits = api(world)
    world.redis.delete(GroupKeys(world.group).end("orders"))
    with pytest.raises(CommitBeyondReadError, match="Redis has no end offset"):
        commits.commit(TP, ranges("43-43"))
    assert state(world) == ({str(WHOLE): "43"}, {})
    with batch_of(world, lane("aa.1", 43, 50)) as of_batch:
        assert of_batch.commit(TP, ranges("43-43")).stable == 44


def test_the_log_end_of_a_topic_that_was_replaced_is_no_bound_for_commits(world: World) -> None:
    api(world).close()
    world.store.positions.recreate({"orders": Topic("orders", "id-2", (0, 1))}, {TP: 0})
    world.store.positions.acquire(world.caller("m-1"), WANTED)
    with (
        CommitApi.of_member(world.url, world.group, "m-1") as commits,
        pytest.raises(CommitBeyondReadError, match="Redis has no end offset"),
    ):
        commits.commit(TP, ranges("0-0"))
