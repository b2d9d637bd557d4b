"""A batch: it is planned, authorised, read and committed (docs/protocol.md#batches)."""

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given

from coordinator.errors import DeadlinePassedError, SinkSkippedBatchError
from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen
from coordinator.member.state import State, Turn
from coordinator.plan.planning import Cutting, plan, with_positions
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.store import Store
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, records, slices_read, subscribed
from reader_calls import EVERYTHING, Calls
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.read import read_slices
from states import call
from store_world import LOWER, SESSION, TP, UPPER, WANTED, World, lane, offset
from stream_offsets import stream_offsets
from written_worlds import Script, turns

ON_EACH_SERVER = True
END = offset(lane("aa.1", 0, 10))
LATE = "an occasion that has passed"
RENEWING: dict[str, Callable[[Store, Caller, str], object]] = {
    "heartbeat": lambda store, me, _: store.members.heartbeat(me),
    "look": lambda store, me, _: store.members.look(me),
    "assign": lambda store, me, occasion: store.members.assign(me, occasion, "test 1", {"m-1": WANTED}),
    "assign, too late": lambda store, me, _: store.members.assign(me, LATE, "test 1", {"m-1": WANTED}),
    "acquire": lambda store, me, _: store.positions.acquire(me, WANTED),
    "release": lambda store, me, _: store.members.release(me, WANTED),
    "finish": lambda store, me, _: store.members.finish(me, {TP: 0}),
    "finish, not yet": lambda store, me, _: store.members.finish(me, {TP: 5}),
    "abandon": lambda store, me, _: store.poison.abandon(me, {TP: (Owned(WHOLE, "aa.1"),)}),
    "authorize": lambda store, me, _: store.positions.authorize(me, END),
    "commit": lambda store, me, _: store.positions.commit(me, END, completed(END)),
    "working": lambda store, me, _: store.poison.working(me, ""),
    "forget": lambda store, me, _: store.members.forget(me, ("payments",)),
}
ACQUIRED = Turn(fresh=True, acquired=True)


@given(stream_offsets())
def test_self_contained_offset__equal_offsets_have_equal_text(offset: StreamOffset) -> None:
    """Rule: self-contained-offset. The offset JSON alone is enough for a replay."""
    shuffled = StreamOffset(
        offset.group,
        offset.member,
        offset.reset,
        dict(reversed(list(offset.topic_ids.items()))),
        {tp: tuple(reversed(lanes)) for tp, lanes in reversed(list(offset.lanes.items()))},
        dict(reversed(list(offset.leader_epochs.items()))),
    )
    assert json.dumps(shuffled.to_json()) == json.dumps(offset.to_json())


@given(stream_offsets())
def test_self_contained_offset__its_json_is_all_that_a_replay_needs(offset: StreamOffset) -> None:
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_commit_before_plan__only_the_return_of_an_offset_as_start_commits_it(calls: Calls, tp: TopicPartition) -> None:
    """Rule: commit-before-plan. `latestOffset(start)` commits `start`, and then plans."""
    start = calls.reader.initialOffset()
    end = calls.batch(start)
    calls.reader.partitions(start, end)
    calls.reader.commit(end)
    assert calls.state.stable == {tp: 0}
    assert calls.reader.latestOffset(end, EVERYTHING) == end
    assert calls.state.stable == {tp: 5}


@pytest.mark.parametrize("call", RENEWING.values(), ids=RENEWING)
def test_plan_within_lease__each_answer_that_a_member_plans_by_renews_the_lease(
    world: World, call: Callable[[Store, Caller, str], object]
) -> None:
    """Rule: plan-within-lease. A member plans only within its last acknowledged lease."""
    me = world.owner()
    occasion = world.store.members.look(me).value.occasion
    world.lapse(SESSION - 1)
    call(world.store, me, occasion)
    assert world.redis.zscore(GroupKeys(world.group).leases, "m-1") == world.now + SESSION


@pytest.mark.parametrize(("wait_ms", "fresh"), [(0, True), (250, False)])
def test_fresh_positions__after_a_wait_those_of_before_are_not(wait_ms: int, *, fresh: bool) -> None:
    """Rule: fresh-positions. A plan uses positions that the member read in the same call."""
    looks = iter((LookAgain(wait_ms), Return(None)))

    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state if state.turn.acquired else replace(state, turn=ACQUIRED), (), next(looks))

    member = turns(Script())
    member.run([step], call())
    assert member.state.turn == replace(ACQUIRED, fresh=fresh)


@pytest.fixture
def taken(members: Group, tp: TopicPartition) -> StreamOffset:
    """A batch that was not completed; another application has acquired its ranges meanwhile."""
    lost, end = members.begun(subscribed(tp))
    members.lose(lost)
    heir = members.service(subscribed(tp))
    assert records(batch(heir, StreamOffset(members.name))) == records(end)
    return end


def test_authorize_every_batch__a_replay_reads_nothing_that_another_member_owns(
    members: Group, tp: TopicPartition, taken: StreamOffset
) -> None:
    """Rule: authorize-every-batch. The first `partitions` call of a process for an `end` asks Redis."""
    assert slices_read(members.service(subscribed(tp)), taken) == ()


def test_task_deadline__a_task_that_begins_later_reads_nothing() -> None:
    """Rule: task-deadline. An input partition carries a deadline: authorisation plus longest batch plus one session."""
    now_ms = time.time_ns() // 1_000_000
    task = SlicePartition((), {}, columns=(), poll_timeout_ms=1_000, fail_on_data_loss=True)
    assert list(read_slices(replace(task, deadline_ms=now_ms + 60_000))) == []
    with pytest.raises(DeadlinePassedError, match=r"began 6\d\.\d s after .*\n?.*raise longestBatch"):
        list(read_slices(replace(task, deadline_ms=now_ms - 60_000)))


def test_batch_clock__a_batch_beyond_the_longest_makes_ranges_takeable_though_the_heart_beats(world: World) -> None:
    """Rule: batch-clock. The clock of a batch runs from its authorisation until all its tasks have ended."""
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    world.store.positions.acquire(one, WANTED)
    end = offset(lane("aa.1", 0, 10))
    world.store.positions.authorize(one, end)
    for _ in range(6):
        world.lapse(SESSION - 1)
        world.store.members.heartbeat(one, reading=True)
        world.store.members.heartbeat(two)
    assert world.store.members.look(two).value.members == ("m-2",), "the assignor passes over a hung member"
    assert world.store.positions.acquire(two, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    assert world.commit(one, end) == completed(end)


def test_omit_what_was_skipped__the_next_offset_names_no_lane_that_was_left_out(
    members: Group, tp: TopicPartition, taken: StreamOffset
) -> None:
    """Rule: omit-what-was-skipped. Lanes that `partitions` left out are missing in the next offset."""
    replaying = members.service(subscribed(tp))
    replaying.tasks(taken)
    following = replaying.next_offset(taken, UNLIMITED)
    assert following is not None, "nothing else moved"
    assert not {lane.epoch for _, lane in following} & {lane.epoch for _, lane in taken}
    assert records(following) == set()


def planned(world: World, me: Caller, until: int) -> StreamOffset:
    """The offset of one lane that reads what is missing up to `until`."""
    acquired = world.store.positions.acquire(me, WANTED).value
    return offset(*plan(with_positions(acquired.ownership, acquired.progress), {TP: until}, Cutting(1))[TP])


def test_commit_what_was_read__a_lane_leaves_out_individual_commits(world: World) -> None:
    """Rule: commit-what-was-read. A commit states exactly the offset ranges that the batch read."""
    me = world.owner({str(WHOLE): "43-45 48-49"}, p0=41)
    end = planned(world, me, 51)
    assert str(end.lanes[TP][0]) == "aa.1@41-42,46-47,50-50"
    assert completed(end) == {TP: (Fact(WHOLE, 43, "aa.1", (OffsetRange(46, 48), OffsetRange(50, 51))),)}
    assert world.commit(me, end) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "51"}, {})
    assert world.store.positions.stable(["orders"])[TP] == 51


def test_commit_what_was_read__what_was_deleted_between_plan_and_commit_is_read_again(world: World) -> None:
    me = world.owner({str(WHOLE): "43-45 48-49"}, p0=41)
    end = planned(world, me, 51)
    world.delete_ics()
    assert world.commit(me, end) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "43"}, {str(WHOLE): "46-47 50-50"})
    again = planned(world, me, 51)
    assert str(again.lanes[TP][0]) == "aa.1@43-45,48-49"
    assert world.commit(me, again) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "51"}, {})


def test_cumulative_commit__a_repeat_changes_nothing(world: World) -> None:
    """Rule: cumulative-commit. A commit states positions, not differences."""
    me = world.owner()
    end = offset(lane("aa.1", 0, 10, LOWER), lane("aa.1", 0, 20, UPPER))
    for _ in range(2):
        assert world.commit(me, end) == {}
        assert world.positions() == {str(LOWER): "10", str(UPPER): "20"}
        assert world.store.positions.stable(["orders"])[TP] == 10


def test_cumulative_commit__an_older_one_moves_no_position_back(world: World) -> None:
    me = world.owner()
    for until in (20, 10):
        end = offset(lane("aa.1", 0, until))
        world.commit(me, end)
    assert world.positions() == {str(WHOLE): "20"}


@pytest.mark.parametrize(
    ("until", "position", "ics"),
    [
        pytest.param(44, "44", "45-47 50-50", id="below the first IC, it stops before it"),
        pytest.param(45, "48", "50-50", id="touching an IC, it moves through it"),
        pytest.param(46, "48", "50-50", id="inside an IC, it moves to its end"),
        pytest.param(60, "60", "", id="beyond all of them, none is left"),
    ],
)
def test_cumulative_commit__it_passes_what_is_done(world: World, until: int, position: str, ics: str) -> None:
    me = world.owner({str(WHOLE): "45-47 50-50"}, p0=43)
    assert world.commit(me, offset(lane("aa.1", 43, until))) == {}
    assert world.positions() == {str(WHOLE): position}
    assert world.ics() == ({str(WHOLE): ics} if ics else {})
    assert world.store.positions.stable(["orders"])[TP] == int(position)


def test_unread_batch__a_batch_that_the_sink_dropped_is_not_committed(members: Group, tp: TopicPartition) -> None:
    """Rule: unread-batch. A commit names the digest of its batch."""
    service = members.started(subscribed(tp))
    dropped = service.next_offset(StreamOffset(members.name), UNLIMITED)
    assert dropped is not None, "and Spark never asks for its tasks"
    with pytest.raises(SinkSkippedBatchError, match=r"ids begin at 0 .* output of its own"):
        service.next_offset(dropped, UNLIMITED)
    assert (members.state.stable, "skipped" in members.events) == ({tp: 0}, True)
