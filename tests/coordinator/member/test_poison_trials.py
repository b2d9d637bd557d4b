"""Members of one group try a struck lane alone, park it, and read it once it is released."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from command_runs import Run
from coordinator.assignment.rebalance import union
from coordinator.member.service import Service
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.poison import Strike
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis import lane_lines
from coordinator.redis.keys import GroupKeys
from coordinator.tools.operations.top_view import limited_lanes
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from group_services import SHORT_MS, UNLIMITED, Group, batch, records, slices_read, subscribed
from streams import eventually, keyed

LOWER, UPPER = cuts(2)


def hang(service: Service, end: StreamOffset) -> None:
    """Its tasks begin every slice of a batch and end none; then it sends nothing more."""
    service.tasks(end)
    service.receive(SliceCost.nothing(s) for s in end.slices)
    service.heartbeat()


def until_planned(service: Service, start: StreamOffset, wanted: Callable[[StreamOffset], bool]) -> StreamOffset:
    """Batch after batch, until one is as wanted; the sink completes those before it."""
    at = [start]

    def there() -> bool:
        end = service.next_offset(at[-1], UNLIMITED)
        if end is not None and not wanted(end):
            service.tasks(end)
        at.extend([end] if end is not None else [])
        return wanted(at[-1])

    eventually(there, "such a batch")
    return at[-1]


def test_a_member_reports_its_begun_slices_again_until_redis_stores_them(members: Group, tp: TopicPartition) -> None:
    one, end = members.begun(subscribed(tp), session_ms=SHORT_MS)
    keys = GroupKeys(members.name)
    run_id = members.redis.hget(keys.meta, "run_id")
    members.restart_redis()
    one.tasks(end)
    one.receive(SliceCost.nothing(s) for s in end.slices)
    one.heartbeat()
    assert not members.redis.exists(keys.working)
    members.redis.hset(keys.meta, "run_id", str(run_id))
    one.heartbeat()
    assert members.redis.exists(keys.working)


def test_available_now_reads_a_lane_that_an_operator_has_just_released(members: Group, tp: TopicPartition) -> None:
    parked = Strike(tp, LOWER, OffsetRange(0, 1), 2, parked=True)
    members.redis.hset(GroupKeys(members.name).strikes, parked.field, parked.text)
    one = members.aiming(subscribed(tp))
    first = batch(one, StreamOffset(members.name))
    assert members.store.poison.forgive([parked], "by hand") == 1
    rest = one.next_offset(first, UNLIMITED)
    assert rest is not None, "it has ended by what it saw parked before"
    assert union(s.hashes for s in rest.slices) == (LOWER,)


def test_the_slices_of_a_lost_member_are_all_read_in_the_next_batch(members: Group, tp: TopicPartition) -> None:
    nothing = StreamOffset(members.name)
    one, two = (members.service(subscribed(tp)) for _ in range(2))
    one.first_positions()
    hang(one, batch(one, nothing))
    members.lose(one)
    end = until_planned(two, nothing, lambda end: any(end.slices))
    assert members.store.poison.strikes()
    assert records(end) == {(tp.topic, offset) for offset in range(5)}
    two.tasks(end)
    members.clock.skip(1_000)
    two.next_offset(end, UNLIMITED)
    assert members.store.poison.strikes() == (), "its record may have hung, and did not"


@pytest.mark.parametrize("traffic", [False, True], ids=["alone", "beside other work"])
@pytest.mark.parametrize("restarts", [False, True], ids=["another member", "its next life"])
def test_the_large_slices_of_a_lost_member_cost_few_batches(
    members: Group, tp: TopicPartition, restarts: bool, traffic: bool
) -> None:
    members.kafka.produce(tp.topic, keyed(400))
    nothing = StreamOffset(members.name)
    one, two = (members.service(subscribed(tp)) for _ in range(2))
    one.first_positions()
    end = batch(one, nothing)
    struck = max(s.offsets.until for s in end.slices)
    assert struck > 400
    hang(one, end)
    if restarts:
        two.tasks(end)
    else:
        members.lose(one)
    at, batches = (end if restarts else nothing), 0
    while members.state.stable[tp] < struck:
        if traffic:
            members.kafka.produce(tp.topic, keyed(10))
        following = two.next_offset(at, UNLIMITED)
        if following is not None:
            two.tasks(following)
            at, batches = following, batches + 1
        members.clock.skip(1_000)
    assert batches <= 3
    assert [e for e in members.events if e == "strike"], "it was lost over them"


def test_a_record_that_never_ends_holds_up_some_members_and_is_parked(
    members: Group, tp: TopicPartition, run: Run
) -> None:
    nothing = StreamOffset(members.name)
    one, two, three, four = (members.service(subscribed(tp)) for _ in range(4))
    one.first_positions()
    whole = batch(one, nothing)
    hung = whole.slices[0].hashes

    def tried(end: StreamOffset) -> bool:
        return any(s.hashes.intersection(hung) for s in end.slices)

    def hangs(service: Service, end: StreamOffset) -> list[Slice]:
        service.tasks(end)
        service.receive([replace(SliceCost.nothing(s), finished=s.hashes != hung) for s in end.slices])
        service.heartbeat()
        members.lose(service)
        return [s for s in end.slices if s.hashes == hung]

    hangs(one, whole)
    (again,) = hangs(two, until_planned(two, nothing, tried))
    assert again.offsets == OffsetRange(0, 5), "all that was struck, as a lost member is a weak sign"
    alone = until_planned(three, nothing, tried)
    (little,) = hangs(three, alone)
    assert little.offsets.until < 5
    assert three.singly([little]), "its task reports each record"

    def parked(end: StreamOffset) -> bool:
        assert not tried(end), "four goes on without it"
        return any(s.parked for s in members.store.poison.strikes())

    last = until_planned(four, nothing, parked)
    four.tasks(last)
    (strike,) = members.store.poison.strikes()
    assert (strike.tp, strike.offset) == (tp, 0)
    assert members.state.stable[tp] == 0
    assert [e for e in members.events if e in ("strike", "parked", "release")] == ["strike", "strike", "parked"]
    members.clock.skip(1_000)
    last = four.next_offset(last, UNLIMITED) or last
    four.tasks(last)
    seen = limited_lanes(members.state)
    assert [(x.hashes, x.position, x.why, x.member) for x in seen] == [(str(hung), 0, lane_lines.PARKED, four.member)]
    assert four.lanes.parked == 1

    redis_of = ("--redis", members.redis_url)
    (shown,) = json.loads(run("stuck", members.name, "--json", *redis_of)[1])["strikes"]
    assert (shown["topic"], shown["partition"], shown["offset"], shown["state"]) == (*tp, 0, "parked")
    assert run("release", members.name, f"{tp.topic}:{tp.partition}", "--reason", "mended", *redis_of)[0] == 0
    assert json.loads(run("stuck", members.name, "--json", *redis_of)[1]) == {"strikes": [], "keys": []}
    members.clock.skip(1_000)
    released = until_planned(four, last, tried)
    assert records(released) == {(tp.topic, offset) for offset in range(5)}, "what was released is read"


def test_the_life_after_a_replay_without_a_parked_lane_does_not_take_that_for_read(
    members: Group, tp: TopicPartition
) -> None:
    one, two, three = (members.service(subscribed(tp)) for _ in range(3))
    one.first_positions()
    whole = batch(one, StreamOffset(members.name))
    hung = whole.slices[0].hashes
    members.redis.hset(GroupKeys(members.name).strikes, f"{tp.topic} 0 {hung}", "parked 2 0-5 1 m-1")
    assert hung not in {s.hashes for s in slices_read(two, whole)}
    three.next_offset(whole, UNLIMITED)
    assert members.state.stable[tp] == 0, "two was killed once the sink had the batch; three knows the checkpoint only"
