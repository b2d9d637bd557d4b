"""The Commit API on a real Redis: the draft KIP's worked examples, caps, fences, and deletes by an operator."""

import json
import logging
import shlex

import pytest

from commit_apis import api, ranges, state
from coordinator.commits.commit_api import RANGES_MAX, CommitApi, Committed
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import (
    CheckpointMismatchError,
    CommitBeyondReadError,
    CommitError,
    CorruptCommitError,
    IndividualCommitNotAllowedError,
    IndividualCommitTooOldError,
    MaxIndividualCommitReachedError,
    StateFormatError,
    TooManyRangesError,
)
from coordinator.key_hash import cuts
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.ranges import WHOLE, OffsetRange
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.subscription import Topic
from store_world import BIG, OTHER, SESSION, TP, WANTED, World, lane

ON_EACH_SERVER = True


LOWER, UPPER = cuts(2)


def batch_of(world: World, *lanes: Lane) -> CommitApi:
    """The Commit API of the member's batch that reads those lanes."""
    end = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: lanes})
    return CommitApi.of_offset(world.url, json.dumps(end.to_json()))


# The worked examples of the draft KIP, which prints the last committed offset: our stable offset is one more
# (rule: half-open-offsets).
@pytest.mark.parametrize(
    ("stable", "ics", "commit", "then_stable", "then_ics"),
    [
        pytest.param(43, "45-47 50-50", "48-49", 43, "45-50", id="a commit between two ICs joins them"),
        pytest.param(43, "45-47 50-50", "43-44", 48, "50-50", id="a commit in the gap moves stable over the IC"),
        pytest.param(41, "43-45 48-49", "41-42 46-47 50-50", 51, "", id="a gap amended leaves no IC"),
        pytest.param(43, "45-47", "40-43", 44, "45-47", id="a commit that straddles the stable offset is trimmed"),
        pytest.param(43, "", "60-60 45-46 50-51", 43, "45-46 50-51 60-60", id="commits above a gap wait as ICs"),
        pytest.param(43, "45-47", "43-60", 61, "", id="a commit over everything leaves no IC"),
        pytest.param(BIG, "", f"{BIG + 2}-{BIG + 2}", BIG, f"{BIG + 2}-{BIG + 2}", id="beyond 2^53 offsets stay exact"),
    ],
)
def test_worked_examples(world: World, stable: int, ics: str, commit: str, then_stable: int, then_ics: str) -> None:
    answer = api(world, stable, ics).commit(TP, ranges(commit))
    assert answer == Committed(then_stable, len(then_ics.split()), 0, ())
    assert state(world) == ({str(WHOLE): str(then_stable)}, {str(WHOLE): then_ics} if then_ics else {})
    assert world.store.positions.stable(["orders"])[TP] == then_stable


def test_a_commit_without_ranges_says_that_everything_before_its_offset_is_done(world: World) -> None:
    assert api(world, 43, "45-47").commit(TP, [], offset=45).stable == 48


def test_the_lanes_of_a_stream_offset_are_what_its_member_may_commit(world: World) -> None:
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


def test_a_commit_of_what_the_batch_does_not_read_is_refused_and_nothing_of_it_is_committed(world: World) -> None:
    api(world).close()
    with batch_of(world, lane("aa.1", 43, 100)) as commits:
        for given in ("100-100", "43-100", "43-44 199-199", f"43-{2**62 - 1}"):
            with pytest.raises(
                CommitBeyondReadError, match="includes offset 100, and the lanes of this batch end before it"
            ) as far:
                commits.commit(TP, ranges(given))
            assert far.value.reach == 100
        with pytest.raises(CommitBeyondReadError):
            commits.commit(TP, [], offset=101)
        with pytest.raises(CommitBeyondReadError, match="includes offset 100"):
            OrderedCommits(commits, "w").reserve(TP, OffsetRange(99, 101))
        assert state(world) == ({str(WHOLE): "43"}, {})
        assert commits.commit(TP, ranges("0-0 43-44 99-99")) == Committed(45, 1, 1, ())
        assert commits.commit(TP, [], offset=100).stable == 100


def test_an_idle_lane_of_a_batch_takes_no_commit_beyond_its_position(world: World) -> None:
    api(world).close()
    with batch_of(world, Lane(WHOLE, "aa.1", 43)) as commits, pytest.raises(CommitBeyondReadError):
        commits.commit(TP, ranges("43-43"))
    assert state(world) == ({str(WHOLE): "43"}, {})


def test_a_lane_that_reads_less_than_its_neighbour_takes_only_what_it_reads(world: World) -> None:
    """Who has received record 60 of the upper lane need not know that the lower one reads to offset 50."""
    api(world).close()
    with batch_of(world, lane("aa.1", 43, 50, LOWER), lane("aa.1", 43, 70, UPPER)) as commits:
        assert commits.commit(TP, ranges("60-60")) == Committed(43, 1, 0, ())
        assert state(world) == ({str(LOWER): "43", str(UPPER): "43"}, {str(UPPER): "60-60"})
        assert commits.commit(TP, [], offset=70) == Committed(50, 0, 0, ())
        assert world.positions() == {str(LOWER): "50", str(UPPER): "70"}
        with pytest.raises(CommitBeyondReadError, match="includes offset 50"):
            commits.commit(TP, ranges("60-60"), lanes=[Owned(LOWER, "aa.1")])
        assert commits.commit(TP, ranges("60-60"), lanes=[Owned(UPPER, "aa.1")]).duplicates == 1


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
        CommitBeyondReadError, match="includes offset 100, which is not below the log end in Redis"
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
    with pytest.raises(CommitBeyondReadError, match="Redis has no log end"):
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
        pytest.raises(CommitBeyondReadError, match="Redis has no log end"),
    ):
        commits.commit(TP, ranges("0-0"))


def test_a_repeated_commit_is_no_error_but_counted_and_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    commits = api(world)
    assert commits.commit(TP, ranges("45-47")).duplicates == 0
    with caplog.at_level(logging.WARNING):
        assert commits.commit(TP, ranges("45-46 50-50")) == Committed(43, 2, 1, ())
    assert "1 ranges were committed before" in caplog.text
    assert world.redis.hget(GroupKeys(world.group).meta, "duplicate_commits") == "1"


def test_a_commit_wholly_below_the_stable_offset_is_too_old_and_says_where_to_go_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(IndividualCommitTooOldError, match="INDIVIDUAL_COMMIT_TOO_OLD") as too_old,
    ):
        api(world, 43, "45-47").commit(TP, ranges("38-39 42-42"))
    assert (too_old.value.code, too_old.value.stable) == (91, 43)
    assert "below the stable offset 43" in caplog.text
    assert state(world) == ({str(WHOLE): "43"}, {str(WHOLE): "45-47"})


def test_at_the_cap_only_commits_that_would_grow_the_set_are_refused(world: World) -> None:
    commits = api(world, 43, "45-45 47-47 60-60", max_individual_commits=3)
    with pytest.raises(
        MaxIndividualCommitReachedError, match="exceeds the limit of 3 individual commits: the partition holds 3"
    ) as full:
        commits.commit(TP, ranges("50-50"))
    assert full.value.code == 92
    assert world.ics() == {str(WHOLE): "45-45 47-47 60-60"}
    assert commits.commit(TP, ranges("46-46")) == Committed(43, 2, 0, ())  # fills a gap
    assert commits.commit(TP, ranges("61-61")) == Committed(43, 2, 0, ())  # makes one longer
    assert commits.commit(TP, ranges("50-50")) == Committed(43, 3, 0, ())  # there is room again
    assert commits.commit(TP, ranges("43-44")) == Committed(48, 2, 0, ())


def test_reaching_the_cap_is_one_event_with_why_and_makes_an_assignment_due(world: World) -> None:
    commits = api(world, 43, "45-45 47-47", max_individual_commits=2)
    due = world.store.members.look(world.caller("m-1")).value.occasion
    for _ in range(2):
        with pytest.raises(MaxIndividualCommitReachedError):
            commits.commit(TP, ranges("50-50"))
    (why,) = world.events("cap")
    assert why == "orders-0 holds 2 of 2 individual commits: only lanes at stable offset 43 and gaps are read"
    assert world.store.members.look(world.caller("m-1")).value.occasion not in ("", due)


def test_the_cap_is_held_over_all_members_of_a_partition(world: World) -> None:
    world.found(p0=43)
    world.logs_reach()
    world.store.positions.acquire(world.join("m-1", **{"max.individual.commits": "2"}), {TP: (LOWER,)})
    world.store.positions.acquire(world.join("m-2", "i2", **{"max.individual.commits": "2"}), {TP: (UPPER,)})
    lower, upper = (CommitApi.of_member(world.url, world.group, m) for m in ("m-1", "m-2"))
    assert lower.commit(TP, ranges("45-45 47-47")).held == 2
    with pytest.raises(MaxIndividualCommitReachedError):
        upper.commit(TP, ranges("45-45"))
    assert upper.commit(TP, ranges("43-43")) == Committed(43, 2, 0, ())


def test_a_policy_that_forbids_individual_commits_refuses_them_at_once(world: World) -> None:
    commits = api(world)
    policies = world.policies
    policies.set_policy({"accept.individual.commit": "false"})
    with pytest.raises(IndividualCommitNotAllowedError) as refused:
        commits.commit(TP, ranges("43-44"))
    assert refused.value.code == 88
    assert f"coop-kafka policy {shlex.quote(world.group)} --set accept.individual.commit=true" in str(refused.value)
    policies.set_policy({"accept.individual.commit": "true"})
    assert commits.commit(TP, ranges("43-44")).stable == 45


def test_a_commit_for_lanes_that_were_lost_is_an_event_once(world: World) -> None:
    commits = api(world)
    world.now += 2 * SESSION
    world.store.positions.acquire(world.join("m-2", "i2"), {TP: (LOWER,)})
    for given in ("50-50", "60-60"):
        assert commits.commit(TP, ranges(given)).refused == (LOWER,)
    (fence,) = (e for e in last_events(world.client, world.group, 100) if e.kind == "fence")
    assert (fence.member, fence.ranges) == ("m-1", f"orders-0 {LOWER}")
    assert fence.why == "an individual commit of what is owned no more at its lane epoch"


@pytest.mark.parametrize(
    ("of", "offset"),
    [
        pytest.param("45-46", 47, id="ranges and a plain offset"),
        pytest.param("45-46", 0, id="ranges and the plain offset 0"),
        pytest.param("", -1, id="neither ranges nor an offset"),
        pytest.param("", -2, id="an offset that there is not"),
    ],
)
def test_a_commit_that_contradicts_itself_is_refused_as_corrupt(world: World, of: str, offset: int) -> None:
    commits = api(world)
    with pytest.raises(CorruptCommitError, match="CORRUPT_COMMIT"):
        commits.commit(TP, ranges(of), offset=offset)
    assert state(world) == ({str(WHOLE): "43"}, {})


@pytest.mark.one_server
def test_a_call_takes_60_000_ranges_and_longer_lists_are_cut_by_the_caller(world: World) -> None:
    commits = api(world, 0, max_individual_commits=100_000)
    every_second = [OffsetRange(2 * i + 1, 2 * i + 2) for i in range(RANGES_MAX + 1)]
    with pytest.raises(TooManyRangesError, match="60001 offset ranges; the limit of one call is 60000"):
        commits.commit(TP, every_second)
    assert commits.commit(TP, [OffsetRange(1, 2)] * (RANGES_MAX + 1)).held == 1  # these are one
    assert commits.commit(TP, every_second[:RANGES_MAX]) == Committed(0, RANGES_MAX, 1, ())
    assert commits.commit(TP, every_second[:RANGES_MAX]).duplicates == RANGES_MAX
    assert commits.commit(TP, [], offset=2 * RANGES_MAX) == Committed(2 * RANGES_MAX, 0, 0, ())


@pytest.mark.parametrize(
    ("key", "field", "damage"),
    [
        ("member", "max.individual.commits", "many"),
        ("member", "max.num.ranges.to.commit", "-1"),
        ("meta", "reset_epoch", "x"),
        ("topics", "orders", "id-1"),
        ("topics", "orders", "id-1 two"),
        ("owners", str(WHOLE), "aa.1"),
        ("owners", "0-1", "aa.1 m-1"),
    ],
)
def test_damaged_contents_of_redis_are_a_named_error(world: World, key: str, field: str, damage: str) -> None:
    api(world).close()
    keys = GroupKeys(world.group)
    names = {"member": keys.member("m-1"), "meta": keys.meta, "topics": keys.topics, "owners": keys.owners(TP)}
    world.redis.hset(names[key], field, damage)
    with pytest.raises(StateFormatError):
        CommitApi.of_member(world.url, world.group, "m-1")


@pytest.mark.parametrize("offset", ["", "{", "[1]", '"x"', "{}", '{"#": 1}'])
def test_what_is_not_an_offset_is_a_named_error(world: World, offset: str) -> None:
    with pytest.raises(CheckpointMismatchError):
        CommitApi.of_offset(world.url, offset)
