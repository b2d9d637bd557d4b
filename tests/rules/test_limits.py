"""What holds a lane back in a batch: the cap, growth, poison, event time (docs/protocol.md#limits-of-a-batch)."""

from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.plan.planning import OwnedRange
from coordinator.plan.poison import Strike, tried
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from lane_leads import lanes, reads
from spark_coop_source.telemetry.frames import framed, next_text
from store_world import LONGEST, LOWER, SESSION, TP, UPPER, World

ON_EACH_SERVER = True
A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONCE = Strike(TP, LOWER, OffsetRange(10, 12), 1)
KEY = b"k" * 32


def test_strike_needs_evidence__only_a_lost_member_with_a_begun_slice_strikes_it(world: World) -> None:
    """Rule: strike-needs-evidence. A strike needs a slice that was begun and not ended when its member was lost."""
    world.found()
    one = world.join("m-1")
    world.store.poison.working(one, f"orders 0 {LOWER} 10-12;")
    world.store.poison.strike("m-1")
    assert world.store.poison.strikes() == (), "its lease has not ended"
    world.lapse(SESSION + 1)
    world.store.poison.strike("m-2")
    assert world.store.poison.strikes() == (), "nothing is known of another"
    world.store.poison.strike("m-1")
    world.store.poison.strike("m-1")
    (struck,) = world.store.poison.strikes()
    assert struck == replace(ONCE, at_ms=world.now, member="m-1")
    assert world.events("strike") == [f"orders 0 {LOWER} from offset 10: m-1 did not end it; strike 1"]


@pytest.mark.parametrize("late_ms", [0, 1])
def test_strike_needs_evidence__a_member_that_leaves_is_no_sign_unless_its_batch_hangs(
    world: World, late_ms: int
) -> None:
    """An operator stops a driver that hangs: its record must not hang again for ever."""
    world.found()
    me = world.join()
    world.store.positions.authorize(me, StreamOffset(world.group, "m-1", lanes={TP: (Lane(LOWER, "x", 0),)}))
    world.store.poison.working(me, f"orders 0 {LOWER} 10-20;")
    world.now += LONGEST + late_ms
    world.store.members.leave(me, {})
    assert [s.hashes for s in world.store.poison.strikes()] == [LOWER] * late_ms
    assert world.store.poison.at_work() == set()


@pytest.mark.parametrize(
    ("offsets", "count", "reads"),
    [
        pytest.param(20_000, 1, 20_000, id="after one strike all of it"),
        pytest.param(20_000, 2, 625, id="after two a 32nd of it"),
        pytest.param(625, 3, 20, id="after three a 32nd of that"),
        pytest.param(20, 4, 1, id="after four one by one"),
    ],
)
def test_struck_lane_apart__each_further_strike_leaves_32_times_fewer_suspects(
    offsets: int, count: int, reads: int
) -> None:
    """Rule: struck-lane-apart. A lost member is a weak sign."""
    work = {TP: (OwnedRange(LOWER, 0, "e.1"), OwnedRange(UPPER, 0, "e.1"))}
    strike = Strike(TP, LOWER, OffsetRange(0, offsets), count)
    limited, trials = tried(work, [strike], lambda _: 1)
    assert [piece.reach(30_000) for piece in limited[TP]] == [reads, 30_000]
    assert trials == {(TP, LOWER): 1}


def test_parked_until_released__one_record_that_is_struck_again_on_trial(world: World) -> None:
    """Rule: parked-until-released. One record on trial that is struck again is parked."""
    world.found()
    for number, begun in enumerate([f"{LOWER} 10-20"] * 3 + [f"{LOWER} 10-11 one"]):
        assert not any(strike.parked for strike in world.store.poison.strikes()), "a slice of many records is not"
        member = f"m-{number}"
        world.store.poison.working(world.join(member), f"orders 0 {begun};")
        world.lapse(SESSION + 1)
        world.store.poison.strike(member)
    (parked,) = world.store.poison.strikes()
    assert (parked.parked, len(world.events("parked"))) == (True, 1)
    assert world.store.poison.forgive([parked], "looked into by hand") == 1
    assert world.store.poison.strikes() == ()
    assert world.events("release") == [f"{parked.field}: looked into by hand"]


@pytest.mark.parametrize(
    ("positions", "later", "expected"),
    [
        pytest.param((10, 40), 60, [60, 60], id="both read up to the first record that is too late"),
        pytest.param((10, 70), 60, [60, 70], id="a lane that is beyond it waits"),
        pytest.param((10, 70), 100, [100, 100], id="no record is too late"),
        pytest.param((10, 70), 3, [11, 70], id="times jump back: the lane furthest behind reads one offset"),
        pytest.param((100, 70), 80, [100, 80], id="a lane with nothing to read delays no other lane"),
    ],
)
def test_lane_lead__how_far_two_lanes_read(positions: tuple[int, ...], later: int, expected: list[int]) -> None:
    """Rule: lane-lead. `maxLaneLead` limits how far a lane may be ahead of the oldest unread record, in record time."""
    work, ends = {A: lanes(*positions)}, {A: 100}
    assert reads(within_lead(work, {A: later}, unread(work, ends)), ends) == {A: expected}


@given(st.binary(max_size=60), st.integers(4, 30), st.integers(1, 255))
def test_reports_decide_nothing__a_frame_that_the_key_did_not_sign_has_no_text(
    text: bytes, place: int, flip: int
) -> None:
    """Rule: reports-decide-nothing.

    Cost reports of executors and lane lines of members never touch ownership or positions.
    """
    frame = bytearray(framed(text, KEY))
    assert next_text(BytesIO(bytes(frame)), b"x" * 32) is None, "another reader's key"
    frame[min(place, len(frame) - 1)] ^= flip
    assert next_text(BytesIO(bytes(frame)), KEY) is None
