"""The Commit API on a real Redis: repeated and late commits, the cap, policies, lost lanes, damage."""

import logging

import pytest

from commit_apis import api, ranges, state
from coordinator.commits.commit_api import RANGES_MAX, CommitApi, Committed
from coordinator.errors import (
    CheckpointMismatchError,
    CorruptCommitError,
    IndividualCommitTooOldError,
    MaxIndividualCommitReachedError,
    StateFormatError,
    TooManyRangesError,
)
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import LOWER, SESSION, TP, UPPER, World

ON_EACH_SERVER = True


def test_a_repeated_commit_is_no_error_but_counted_and_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    commits = api(world)
    assert commits.commit(TP, ranges("45-47")).duplicates == 0
    with caplog.at_level(logging.WARNING):
        assert commits.commit(TP, ranges("45-46 50-50")) == Committed(43, 2, 1, ())
    assert "1 ranges were committed before" in caplog.text
    assert world.redis.hget(GroupKeys(world.group).meta, "duplicate_commits") == "1"


def test_a_commit_wholly_below_the_stable_offset_is_too_old_and_names_the_stable_offset(
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


def test_a_commit_for_lanes_that_were_lost_is_an_event_once(world: World) -> None:
    commits = api(world)
    world.lapse(2 * SESSION)
    world.store.positions.acquire(world.join("m-2", "i2"), {TP: (LOWER,)})
    for given in ("50-50", "60-60"):
        assert commits.commit(TP, ranges(given)).refused == (LOWER,)
    (fence,) = (e for e in last_events(world.client, world.group, 100) if e.kind == "fence")
    assert (fence.member, fence.ranges) == ("m-1", f"orders-0 {LOWER}")
    assert (
        fence.why
        == "an individual commit left out ranges that have moved since, as after a restart; their owner reads them"
    )


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
def test_a_text_that_is_no_stream_offset_is_a_named_error(world: World, offset: str) -> None:
    with pytest.raises(CheckpointMismatchError):
        CommitApi.of_offset(world.url, offset)
