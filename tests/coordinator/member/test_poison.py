"""A record whose reading never ends is tried alone, and parked (rule: parked-until-released)."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from command_runs import Run
from coordinator.assignment.rebalance import union
from coordinator.errors import StateFormatError
from coordinator.key_hash import cuts
from coordinator.member.service import Service
from coordinator.operations.top_view import limited_lanes
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.plan.poison import MOST_TOLD, Strike, forgiven, quarantined, without_struck, working_text
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.ranges import WHOLE, HashRange, OffsetRange
from coordinator.redis.keys import GroupKeys
from coordinator.replies import Joining
from coordinator.reports import lane_lines
from coordinator.subscription import TopicPartition
from coordinator.telemetry import SliceCost
from group_services import UNLIMITED, Group, batch, records, subscribed
from store_world import LONGEST, OTHER, SESSION, TP, WANTED, World
from streams import eventually

ON_EACH_SERVER = True

LOWER, UPPER = cuts(2)
QUARTERS = cuts(4)
ENDS = {TP: 100}
ONCE = Strike(TP, LOWER, OffsetRange(10, 12), 1)
TWICE = replace(ONCE, count=2)
PARKED = replace(TWICE, parked=True)


def work(lower: int, upper: int) -> OwnedRanges:
    return {TP: (OwnedRange(LOWER, lower, "e.1"), OwnedRange(UPPER, upper, "e.1"))}


def reach(limited: OwnedRanges) -> list[int]:
    """How many offsets each piece may read."""
    return [p.reach(ENDS[TP]) - p.position for p in limited[TP]]


@pytest.mark.parametrize(
    ("strikes", "lower", "expected"),
    [
        pytest.param([], 10, [90, 80], id="without strikes all is read"),
        pytest.param([ONCE], 10, [7, 0], id="a struck lane is planned alone, with about one record"),
        pytest.param([PARKED], 10, [0, 80], id="a parked lane is left alone, the others go on"),
        pytest.param([PARKED], 4, [6, 80], id="a lane that went back is read again, up to where it is parked"),
        pytest.param(
            [replace(PARKED, offsets=OffsetRange(30, 31)), ONCE],
            4,
            [7, 0],
            id="... but alone where it was struck below that",
        ),
        pytest.param(
            [replace(PARKED, offsets=OffsetRange(30, 31)), replace(PARKED, hashes=WHOLE)],
            4,
            [6, 80],
            id="where two are parked it is read up to the first",
        ),
        pytest.param([ONCE], 11, [7, 0], id="also once some of what was struck is read, for the record may come yet"),
        pytest.param([ONCE], 12, [88, 80], id="a strike at offsets that were read since holds nobody back"),
        pytest.param([ONCE], 4, [7, 0], id="a lane that went back before it is struck still"),
        pytest.param(
            [replace(ONCE, hashes=UPPER, offsets=OffsetRange(20, 21))], 10, [0, 7], id="any lane may be the one"
        ),
    ],
)
def test_strikes_bound_the_work(strikes: list[Strike], lower: int, expected: list[int]) -> None:
    limited, alone = quarantined(work(lower, 20), ENDS, strikes, lambda lane: 7)
    assert reach(limited) == expected
    assert (alone is not None) == (7 in expected)


def test_a_struck_lane_is_one_lane_so_that_its_next_strike_is_the_same() -> None:
    quarter = replace(ONCE, hashes=QUARTERS[1])
    limited, alone = quarantined(work(10, 20), ENDS, [quarter], lambda lane: 7)
    assert alone == (TP, QUARTERS[1])
    assert [p.hashes for p in limited[TP]] == [QUARTERS[0], QUARTERS[1], UPPER]


def test_after_a_trial_it_is_the_turn_of_what_was_not_struck() -> None:
    limited, alone = quarantined(work(10, 20), ENDS, [ONCE], lambda lane: 7, others=True)
    assert (reach(limited), alone) == ([0, 80], None)
    limited, alone = quarantined(work(10, 100), ENDS, [ONCE], lambda lane: 7, others=True)
    assert (reach(limited), alone) == ([7, 0], (TP, LOWER)), "there is nothing else to read"


def test_only_one_struck_lane_is_tried_at_a_time() -> None:
    both = [ONCE, replace(ONCE, hashes=UPPER, offsets=OffsetRange(20, 21))]
    limited, alone = quarantined(work(10, 20), ENDS, both, lambda lane: 7)
    assert (reach(limited), alone) == ([7, 0], (TP, LOWER))


def test_a_strike_is_forgiven_once_all_its_hashes_are_past_it() -> None:
    assert forgiven([ONCE], work(12, 0)) == (ONCE,)
    assert forgiven([ONCE], work(11, 50)) == ()
    assert forgiven([ONCE], {TP: (OwnedRange(QUARTERS[0], 50, "e.1"),)}) == (), "half of it is another member's"


def test_a_batch_planned_before_its_hashes_were_parked_or_struck_twice_leaves_them_out() -> None:
    lanes = (Lane(LOWER, "e.1", 10, (OffsetRange(10, 20),)), Lane(UPPER, "e.1", 10, (OffsetRange(10, 20),)))
    end = StreamOffset("g", "m", lanes={TP: lanes})
    owned = {TP: (Owned(WHOLE, "e.1"),)}
    for strike in (PARKED, TWICE):
        assert without_struck(owned, end, [strike]) == {TP: (Owned(UPPER, "e.1"),)}
    assert without_struck(owned, end, [ONCE]) == owned, "who was killed in a batch replays it, the same records"
    assert without_struck(owned, end, [TWICE], [TWICE]) == owned, "it was planned in spite of that, to be tried"
    assert without_struck(owned, end, [PARKED], [TWICE]) != owned
    beyond = replace(PARKED, offsets=OffsetRange(20, 21))
    assert without_struck(owned, end, [beyond]) == owned, "the batch does not reach it"


def test_who_is_at_too_much_blames_nobody() -> None:
    many = [Slice(TopicPartition("t", 0), h, OffsetRange(0, 9)) for h in cuts(MOST_TOLD + 1)]
    assert working_text(many) == ""
    assert working_text(many[:1]) == f"t 0 {many[0].hashes} 0-9;"
    assert working_text(many[:1], alone=True) == f"alone; t 0 {many[0].hashes} 0-9;"
    assert working_text([], alone=True) == ""


@pytest.mark.parametrize("value", ["", "1 2-3 4 m", "lost 1 2-3 4 m", "struck x 2-3 4 m", "struck 1 2 4 m"])
def test_a_damaged_strike_is_a_named_error(value: str) -> None:
    with pytest.raises(StateFormatError, match="strike"):
        Strike.parse(ONCE.field, value)


# -- on a real Redis ---------------------------------------------------------------------------------


def test_a_strike_needs_a_lost_member_that_was_at_it(world: World) -> None:
    world.found()
    one = world.join("m-1")
    world.store.poison.working(one, f"orders 0 {LOWER} 10-12;")
    world.store.poison.strike("m-1")
    assert world.store.poison.strikes() == (), "its lease has not ended"
    world.now += SESSION + 1
    world.store.poison.strike("m-2")
    assert world.store.poison.strikes() == (), "nothing is known of another"
    world.store.poison.strike("m-1")
    world.store.poison.strike("m-1")
    (struck,) = world.store.poison.strikes()
    assert struck == replace(ONCE, at_ms=world.now, member="m-1")
    assert world.events("strike") == [f"orders 0 {LOWER} from offset 10: m-1 did not end it; strike 1"]


def test_saying_what_one_is_at_renews_the_lease_as_the_member_believes(world: World) -> None:
    world.found()
    me = world.join("m-1")
    world.now += SESSION - 1
    world.store.poison.working(me, f"orders 0 {LOWER} 10-12;")
    world.now += SESSION - 1
    world.store.poison.strike("m-1")
    assert world.store.poison.strikes() == ()


def test_a_second_strike_of_a_lane_tried_alone_parks_it_and_an_operator_releases(world: World) -> None:
    world.found()
    for member, alone in (("m-1", ""), ("m-2", "alone; ")):
        world.store.poison.working(world.join(member), f"{alone}orders 0 {LOWER} 10-12;")
        world.now += SESSION + 1
        world.store.poison.strike(member)
    (parked,) = world.store.poison.strikes()
    assert parked.parked
    assert len(world.events("parked")) == 1
    assert world.store.poison.forgive([parked], "looked into by hand") == 1
    assert world.store.poison.strikes() == ()
    assert world.events("release") == [f"{parked.field}: looked into by hand"]


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
def test_available_now_leaves_out_what_is_parked_only_where_it_is_parked(
    world: World, strikes: list[Strike], target: int, done: bool
) -> None:
    world.found(p0=10, p1=11)
    me = world.join()
    for strike in strikes:
        world.redis.hset(GroupKeys(world.group).strikes, strike.field, strike.text)
    assert world.store.members.finish(me, {TP: target}).value is done


def test_tried_alone_a_lane_tells_which_of_its_keys_it_was_and_only_that_is_parked(world: World) -> None:
    world.found()
    key = HashRange(LOWER.lo + 5, LOWER.lo + 5)
    for member, at in (("m-1", f"orders 0 {LOWER} 10-20;"), ("m-2", f"alone; orders 0 {key} 13-14;")):
        world.store.poison.working(world.join(member), at)
        world.now += SESSION + 1
        world.store.poison.strike(member)
    assert [(s.hashes, s.offset, s.parked) for s in world.store.poison.strikes()] == [(key, 13, True)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(f"orders 0 {UPPER} 10-20;", id="of other hashes"),
        pytest.param(f"orders 1 {WHOLE} 10-20;", id="of another partition"),
        pytest.param(f"orders 0 {WHOLE} 14-20;", id="begun later"),
    ],
)
def test_a_strike_is_not_taken_for_that_of_a_key(world: World, other: str) -> None:
    world.found()
    key = HashRange(LOWER.lo + 5, LOWER.lo + 5)
    for member, at in (("m-1", other), ("m-2", f"orders 0 {key} 13-14;")):
        world.store.poison.working(world.join(member), at)
        world.now += SESSION + 1
        world.store.poison.strike(member)
    assert [s.count for s in world.store.poison.strikes()] == [1, 1]


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        pytest.param([f"{LOWER} 10-20", f"alone; {LOWER} 11-12"], ["parked 2"], id="in it again, tried alone"),
        pytest.param([f"{LOWER} 10-20"] * 2, ["struck 2"], id="killed twice in one batch nothing is parked yet"),
        pytest.param([f"{LOWER} 10-20"] * 2 + [f"alone; {LOWER} 10-11"], ["parked 3"], id="... before it was tried"),
        pytest.param(
            [f"{LOWER} 10-20", f"alone; {LOWER} 20-21"], ["struck 1"], id="what comes after is another matter"
        ),
        pytest.param([f"{LOWER} 10-20", f"alone; {LOWER} 9-10"], ["struck 1"], id="and so is what comes before"),
        pytest.param([f"{LOWER} 13-14", f"alone; {LOWER} 10-18"], ["parked 2"], id="tried from before it, with it"),
        pytest.param([f"{LOWER} 13-14", f"alone; {LOWER} 10-13"], ["struck 1"], id="... and up to it"),
        pytest.param([f"{LOWER} 13-14", f"{LOWER} 10-18", f"{LOWER} 13-14"], ["struck 3"], id="to and fro it adds up"),
        pytest.param([f"{LOWER} 10-20", f"alone; {QUARTERS[0]} 11-12"], ["parked 2"], id="a part of it is what it was"),
        pytest.param([f"{QUARTERS[0]} 10-20", f"{LOWER} 11-12"], ["struck 1", "struck 1"], id="what is wider is not"),
        pytest.param([f"{LOWER} 10-20;orders 0 {UPPER} 7-9"] * 2, ["struck 2"] * 2, id="two at once count both"),
    ],
)
def test_what_is_struck_again(world: World, begun: list[str], expected: list[str]) -> None:
    world.found()
    for life, slices in enumerate(begun):
        alone, _, what = slices.rpartition("; ")
        world.store.poison.working(world.join("m-1", f"i{life}"), f"{alone and 'alone; '}orders 0 {what};")
        world.now += SESSION + 1
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


def test_a_batch_beyond_the_longest_is_evidence_though_the_member_beats(world: World) -> None:
    world.found()
    me = world.join("m-1")
    world.store.positions.acquire(me, {TP: (WHOLE,)})
    world.store.positions.authorize(me, StreamOffset(world.group, "m-1", lanes={TP: (Lane(LOWER, "x", 0),)}))
    world.store.poison.working(me, f"orders 0 {LOWER} 10-12;")
    world.now += LONGEST + 1
    world.store.members.heartbeat(me)
    world.store.poison.strike("m-1")
    assert [s.count for s in world.store.poison.strikes()] == [1]


def test_what_is_left_out_of_a_batch_is_given_up_at_its_lane_epoch_and_only_that(world: World) -> None:
    world.found()
    me = world.join()
    (owned,) = world.store.positions.acquire(me, WANTED).value.ownership[TP]
    world.store.poison.abandon(me, {TP: (Owned(LOWER, owned.epoch), Owned(UPPER, "aa.77"))})
    end = StreamOffset(world.group, "m-1", topic_ids={"orders": "id-1"}, lanes={TP: (Lane(WHOLE, owned.epoch, 0),)})
    assert world.store.positions.authorize(me, end).value == {TP: (Owned(UPPER, owned.epoch),)}
    again = world.store.positions.acquire(me, WANTED).value.ownership[TP]
    assert again[0].hashes == LOWER
    assert again[0].epoch != owned.epoch


# -- members of one group ----------------------------------------------------------------------------


def hang(service: Service, end: StreamOffset) -> None:
    """Its tasks begin every slice of a batch and end none; then nothing is heard of it any more."""
    service.tasks(end)
    service.hear(SliceCost.nothing(s) for s in end.slices)
    service.heartbeat()


def until_planned(service: Service, start: StreamOffset, wanted: Callable[[StreamOffset], bool]) -> StreamOffset:
    """Batch after batch, until one is as wanted; the sink completes those before it."""
    at = [start]

    def there() -> bool:
        end = service.next_offset(at[-1], UNLIMITED)
        if end is not None and not wanted(end):
            service.authorize(end)
        at.extend([end] if end is not None else [])
        return wanted(at[-1])

    eventually(there, "such a batch")
    return at[-1]


def test_what_a_member_is_at_is_told_again_until_redis_has_heard_it(members: Group, tp: TopicPartition) -> None:
    one = members.service(subscribed(tp))
    one.first_positions()
    end = batch(one, StreamOffset(members.name))
    keys = GroupKeys(members.name)
    run_id = members.redis.hget(keys.meta, "run_id")
    members.restart_redis()
    one.tasks(end)
    one.hear(SliceCost.nothing(s) for s in end.slices)
    one.heartbeat()
    assert not members.redis.exists(keys.working)
    members.redis.hset(keys.meta, "run_id", str(run_id))
    one.heartbeat()
    assert members.redis.exists(keys.working)


def test_available_now_reads_what_an_operator_has_just_released(members: Group, tp: TopicPartition) -> None:
    parked = replace(PARKED, tp=tp, offsets=OffsetRange(0, 1))
    members.redis.hset(GroupKeys(members.name).strikes, parked.field, parked.text)
    one = members.service(subscribed(tp))
    one.first_positions()
    one.set_targets()
    first = batch(one, StreamOffset(members.name))
    assert members.store.poison.forgive([parked], "by hand") == 1
    rest = one.next_offset(first, UNLIMITED)
    assert rest is not None, "it has ended by what it saw parked before"
    assert union(s.hashes for s in rest.slices) == (LOWER,)


def test_a_record_that_never_ends_holds_up_each_member_once_and_is_parked(
    members: Group, tp: TopicPartition, run: Run
) -> None:
    nothing = StreamOffset(members.name)
    one, two, three = (members.service(subscribed(tp)) for _ in range(3))
    one.first_positions()
    whole = batch(one, nothing)
    hung = whole.slices[0].hashes
    one.tasks(whole)
    one.hear([replace(SliceCost.nothing(s), finished=s.hashes != hung) for s in whole.slices])
    one.heartbeat()

    def tried(end: StreamOffset) -> bool:
        return any(s.hashes.intersection(hung) for s in end.slices)

    alone = until_planned(two, nothing, tried)
    assert {s.hashes for s in alone.slices} == {hung}, "two takes over, and tries the struck lane alone"
    assert two.trial, "its tasks are to tell of each record"
    hang(two, alone)

    def parked(end: StreamOffset) -> bool:
        assert not tried(end), "three goes on without it"
        return any(s.parked for s in members.store.poison.strikes())

    last = until_planned(three, nothing, parked)
    three.authorize(last)
    (strike,) = members.store.poison.strikes()
    assert (strike.tp, strike.offset) == (tp, 0)
    assert members.state.stable[tp] == 0
    assert [e for e in members.events if e in ("strike", "parked", "release")] == ["strike", "parked"]
    members.clock.skip(1_000)
    last = three.next_offset(last, UNLIMITED) or last
    three.authorize(last)
    seen = limited_lanes(members.state)
    assert [(x.hashes, x.position, x.why, x.member) for x in seen] == [(str(hung), 0, lane_lines.PARKED, three.member)]
    assert three.lanes.parked == 1

    redis_of = ("--redis", members.redis_url)
    (shown,) = json.loads(run("parked", members.name, "--json", *redis_of)[1])
    assert (shown["topic"], shown["partition"], shown["offset"], shown["parked"]) == (*tp, 0, True)
    assert run("release", members.name, tp.topic, str(tp.partition), "--reason", "mended", *redis_of)[0] == 0
    assert json.loads(run("parked", members.name, "--json", *redis_of)[1]) == []
    members.clock.skip(1_000)
    released = until_planned(three, last, tried)
    assert records(released) == {(tp.topic, offset) for offset in range(5)}, "what was released is read"


def test_the_life_after_a_replay_without_a_parked_lane_does_not_take_that_for_read(
    members: Group, tp: TopicPartition
) -> None:
    one, two, three = (members.service(subscribed(tp)) for _ in range(3))
    one.first_positions()
    whole = batch(one, StreamOffset(members.name))
    hung = whole.slices[0].hashes
    members.redis.hset(GroupKeys(members.name).strikes, f"{tp.topic} 0 {hung}", "parked 2 0-5 1 m-1")
    assert hung not in {s.hashes for s in two.authorize(whole).slices}
    three.next_offset(whole, UNLIMITED)
    assert members.state.stable[tp] == 0, "two was killed once the sink had the batch; three knows the checkpoint only"
