"""Strikes in a real Redis: when one counts, parks a lane, or is forgiven (rule: parked-until-released)."""

from dataclasses import replace

import pytest

from coordinator.plan.poison import Strike
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import NO_MEMBER, Joining
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from store_world import LONGEST, LOWER, OTHER, SESSION, TOPICS, TP, UPPER, WANTED, World

ON_EACH_SERVER = True


QUARTERS = cuts(4)


ONCE = Strike(TP, LOWER, OffsetRange(10, 12), 1)


TWICE = replace(ONCE, count=2)


PARKED = replace(TWICE, parked=True)


def test_a_recovery_strikes_no_living_member(world: World) -> None:
    """It removes all leases, so every member looks dead until it joins again."""
    world.found()
    world.store.poison.working(world.join("m-1"), f"orders 0 {LOWER} 10-12;")
    world.restart()
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    world.store.poison.strike("m-1")
    assert world.store.poison.strikes() == ()


@pytest.mark.parametrize(
    ("strikes", "target", "done"),
    [
        pytest.param([], 10, True, id="every hash is at its target"),
        pytest.param([], 11, False, id="one is not"),
        pytest.param([PARKED], 11, False, id="the other half is parked"),
        pytest.param([replace(PARKED, hashes=WHOLE)], 11, True, id="all of it is parked where it is"),
        pytest.param([PARKED, replace(PARKED, hashes=UPPER)], 11, True, id="... in two pieces"),
        pytest.param([PARKED, replace(PARKED, hashes=WHOLE)], 11, True, id="... twice"),
        pytest.param([replace(ONCE, hashes=WHOLE)], 11, False, id="it was struck and is tried again"),
        pytest.param(
            [replace(PARKED, hashes=WHOLE, offsets=OffsetRange(11, 12))],
            12,
            False,
            id="it is parked further on, and is read up to there",
        ),
        pytest.param(
            [replace(PARKED, hashes=WHOLE, offsets=OffsetRange(9, 10))], 11, False, id="it was parked, and is past that"
        ),
        pytest.param(
            [replace(PARKED, tp=OTHER, hashes=WHOLE)], 11, False, id="the same hashes of another partition are parked"
        ),
    ],
)
def test_available_now_leaves_out_parked_ranges_only_at_their_offset(
    world: World, strikes: list[Strike], target: int, done: bool
) -> None:
    world.found(p0=10, p1=11)
    me = world.join()
    for strike in strikes:
        world.redis.hset(GroupKeys(world.group).strikes, strike.field, strike.text)
    assert world.store.members.finish(me, {TP: target}).value is done


def test_a_trial_finds_the_key_that_kills_tasks_and_parks_only_that_key(world: World) -> None:
    world.found()
    key = HashRange(LOWER.lo + 5, LOWER.lo + 5)
    for member, at in (("m-1", f"{LOWER} 10-20"), ("m-2", f"{key} 13-14 one"), ("m-3", f"{key} 13-14 one")):
        world.store.poison.working(world.join(member), f"orders 0 {at};")
        world.lapse(SESSION + 1)
        world.store.poison.strike(member)
    assert [(s.hashes, s.offset, s.parked) for s in world.store.poison.strikes()] == [(key, 13, True)]


def hang(world: World, member: str, at: str) -> None:
    """A batch of the member takes longer than the longest, while its lease runs."""
    me = world.join(member)
    world.store.positions.acquire(me, {TP: (WHOLE,)})
    world.store.positions.authorize(me, StreamOffset(world.group, member, lanes={TP: (Lane(LOWER, "x", 0),)}))
    world.store.poison.working(me, f"orders 0 {at};")
    world.lapse(LONGEST + 1)
    world.store.members.heartbeat(me, reading=True)
    world.store.poison.strike(member)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(f"{LOWER} 10-12 one", [True], id="about one record"),
        pytest.param(f"{LOWER} 10-12", [False], id="several records: they are cut"),
    ],
)
def test_a_batch_that_hangs_over_a_record_on_trial_parks_it_at_the_second_strike(
    world: World, second: str, expected: list[bool]
) -> None:
    world.found()
    hang(world, "m-1", f"{LOWER} 10-20")
    hang(world, "m-2", second)
    assert [s.parked for s in world.store.poison.strikes()] == expected


def test_a_life_that_is_killed_while_it_hangs_is_as_strong_a_sign(world: World) -> None:
    world.found()
    world.redis.hset(GroupKeys(world.group).strikes, ONCE.field, ONCE.text)
    me = world.join("m-1", "i1")
    world.store.positions.authorize(me, StreamOffset(world.group, "m-1", lanes={TP: (Lane(LOWER, "x", 0),)}))
    world.store.poison.working(me, f"orders 0 {LOWER} 10-12 one;")
    world.lapse(LONGEST + 1)
    world.join("m-1", "i2")
    assert [s.parked for s in world.store.poison.strikes()] == [True]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(f"orders 0 {UPPER} 10-20;", id="of other hashes"),
        pytest.param(f"orders 1 {WHOLE} 10-20;", id="of another partition"),
        pytest.param(f"orders 0 {WHOLE} 14-20;", id="begun later"),
    ],
)
def test_a_strike_of_other_hashes_does_not_count_for_a_key(world: World, other: str) -> None:
    world.found()
    key = HashRange(LOWER.lo + 5, LOWER.lo + 5)
    for member, at in (("m-1", other), ("m-2", f"orders 0 {key} 13-14;")):
        world.store.poison.working(world.join(member), at)
        world.lapse(SESSION + 1)
        world.store.poison.strike(member)
    assert [s.count for s in world.store.poison.strikes()] == [1, 1]


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        pytest.param([f"{LOWER} 10-20", f"{LOWER} 11-12 one"], ["struck 2"], id="in it again, a weak sign"),
        pytest.param([f"{LOWER} 10-20"] + [f"{LOWER} 11-12 one"] * 2, ["parked 3"], id="... and again"),
        pytest.param([f"{LOWER} 10-20"] * 3, ["struck 3"], id="killed in a batch nothing is parked"),
        pytest.param([f"{LOWER} 10-20"] * 2 + [f"{LOWER} 10-11 one"], ["parked 3"], id="... before it was on trial"),
        pytest.param(
            [f"{LOWER} 10-20", f"{LOWER} 20-21 one"], ["struck 1"], id="offsets after it are not struck again"
        ),
        pytest.param([f"{LOWER} 10-20", f"{LOWER} 9-10 one"], ["struck 1"], id="... nor offsets before it"),
        pytest.param([f"{LOWER} 13-14"] * 2 + [f"{LOWER} 10-18 one"], ["parked 3"], id="tried from before it, with it"),
        pytest.param([f"{LOWER} 13-14", f"{LOWER} 10-13 one"], ["struck 1"], id="... and up to it"),
        pytest.param([f"{LOWER} 13-14", f"{LOWER} 10-18", f"{LOWER} 13-14"], ["struck 3"], id="to and fro it adds up"),
        pytest.param(
            [f"{LOWER} 10-20"] + [f"{QUARTERS[0]} 11-12 one"] * 2, ["parked 3"], id="a part of it is struck again"
        ),
        pytest.param([f"{QUARTERS[0]} 10-20", f"{LOWER} 11-12"], ["struck 1", "struck 1"], id="a wider range is not"),
        pytest.param([f"{LOWER} 10-20;orders 0 {UPPER} 7-9"] * 2, ["struck 2"] * 2, id="two at once count both"),
    ],
)
def test_a_further_strike_counts_up_or_parks_only_the_hashes_and_offsets_struck_before(
    world: World, begun: list[str], expected: list[str]
) -> None:
    world.found()
    for life, slices in enumerate(begun):
        world.store.poison.working(world.join("m-1", f"i{life}"), f"orders 0 {slices};")
        world.lapse(SESSION + 1)
        world.store.poison.strike("m-1")
    assert sorted(s.text.rpartition(" ")[0].rsplit(" ", 2)[0] for s in world.store.poison.strikes()) == expected


def test_a_life_that_ended_in_a_slice_is_evidence_however_soon_the_next_one_joins(world: World) -> None:
    world.found()
    me = world.join("m-1", "i1")
    world.store.poison.working(me, f"orders 0 {LOWER} 10-12;")
    world.store.members.join(me, me.nonce, Joining({}))
    assert world.store.poison.strikes() == (), "the same life has only joined again"
    world.join("m-1", "i2")
    assert [s.count for s in world.store.poison.strikes()] == [1]


def test_only_abandoned_hashes_lose_their_lane_epoch(world: World) -> None:
    world.found()
    me = world.join()
    (owned,) = world.store.positions.acquire(me, WANTED).value.ownership[TP]
    world.store.poison.abandon(me, {TP: (Owned(LOWER, owned.epoch), Owned(UPPER, "aa.77"))})
    end = StreamOffset(world.group, "m-1", topic_ids={"orders": "id-1"}, lanes={TP: (Lane(WHOLE, owned.epoch, 0),)})
    assert world.store.positions.authorize(me, end).value.owned == {TP: (Owned(UPPER, owned.epoch),)}
    again = world.store.positions.acquire(me, WANTED).value.ownership[TP]
    assert again[0].hashes == LOWER
    assert again[0].epoch != owned.epoch
