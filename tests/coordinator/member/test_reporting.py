"""When a member stores its lanes in Redis, and what the group makes of them."""

from dataclasses import replace
from typing import Any, cast

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.member.decision import Decision
from coordinator.member.lane_report import Planned
from coordinator.member.pacing import IDLE_MS
from coordinator.member.planning import show_lanes
from coordinator.member.requests import DescribeLanes, ShowLanes
from coordinator.member.service import Service
from coordinator.member.state import Pacing, Reading, Shown, State, Strikes
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import Quota, Why
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.planning import Cutting, OwnedRange
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.lane_lines import FAILING, PARKED, CostKind, LaneLine, LaneReport, lines_of
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.top_view import top_view
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, StillClock, batch, subscribed
from states import EPOCH, LEFT, NONCE, NOW, RIGHT, asks, call, decided, joined, struck
from store_world import SESSION, TP, World
from streams import eventually, keyed

QUOTA = Quota(TP, OwnedRange(WHOLE, 10, EPOCH), 100, Cell(WHOLE, 1.0), 0.0)


READING = Reading(quotas=(QUOTA,), until={TP: 100})


DESCRIBE = DescribeLanes(Planned((QUOTA,), {TP: 100}, ()), None)


def lanes(lag: int) -> LaneReport:
    line = LaneLine(TP, WHOLE, 10, lag, None, False, 0.0, 0.0, CostKind.UNKNOWN, lag, "all there is")
    return LaneReport((line,), 1)


def shown(report: LaneReport, looked_at_ms: int | None = NOW, nonce: str = NONCE, **changes: Any) -> Shown:
    known = Shown(
        looked_at_ms=looked_at_ms, quotas=(QUOTA,), request=ShowLanes(report.lines, 0), nonce=nonce, lanes=report
    )
    return replace(known, **changes)


def member(of: Shown, **reading: Any) -> State:
    return joined(reading=replace(READING, **reading), shown=of)


def test_never_shown__show_the_lanes() -> None:
    report = lanes(90)
    decision = decided(show_lanes, member(Shown()), call(), (DESCRIBE, report), (ShowLanes(report.lines, 0), True))
    assert decision == Decision(member(shown(report)))


def test_redis_did_not_store_them__try_again_at_the_next_look() -> None:
    report = lanes(90)
    decision = decided(show_lanes, member(Shown()), call(), (DESCRIBE, report), (ShowLanes(report.lines, 0), False))
    assert decision == Decision(member(shown(report, request=None, nonce="")))


def test_shown_within_this_second__do_not_describe_them() -> None:
    state = replace(member(shown(lanes(90), NOW - 999)), pace=Pacing(planned_ms=NOW - 999))
    assert decided(show_lanes, state, call()) == Decision(state)


def test_the_first_batch_is_planned_within_this_second__show_its_lanes() -> None:
    idle, report = shown(lanes(0), NOW - 250, quotas=()), lanes(90)
    state = replace(member(idle), pace=Pacing())
    assert decided(show_lanes, state, call(), (DESCRIBE, report)) == asks(state, ShowLanes(report.lines, 0))


@pytest.mark.parametrize(
    "pace",
    [
        pytest.param(Pacing(idle=({}, {}), idle_ms=NOW), id="nothing to read yet"),
        pytest.param(Pacing(planned_ms=NOW - 250), id="a later batch"),
    ],
)
def test_no_first_batch_is_planned__show_lanes_once_a_second(pace: Pacing) -> None:
    state = replace(member(shown(lanes(0), NOW - 250, quotas=())), pace=pace)
    assert decided(show_lanes, state, call()) == Decision(state)


def test_idle_and_the_same__describe_nothing() -> None:
    state = member(shown(lanes(0), NOW - 1_000))
    assert decided(show_lanes, state, call()) == Decision(member(shown(lanes(0))))


def test_something_waits_and_the_lines_are_the_same__redis_stores_nothing() -> None:
    state = member(shown(lanes(90), NOW - 1_000))
    assert decided(show_lanes, state, call(), (DESCRIBE, lanes(90))) == Decision(member(shown(lanes(90))))


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(shown(lanes(0), NOW - 1_000, quotas=()), id="other quotas"),
        pytest.param(shown(lanes(0), NOW - 1_000, nonce="n-0"), id="another nonce"),
        pytest.param(shown(lanes(80), NOW - 1_000), id="something waited"),
    ],
)
def test_something_has_changed__show_the_lanes(before: Shown) -> None:
    state, report = member(before), lanes(70)
    assert decided(show_lanes, state, call(), (DESCRIBE, report)) == asks(state, ShowLanes(report.lines, 0))


def test_records_arrive__show_their_slot_time_until_none_come() -> None:
    before = replace(lanes(0), load_percent=3)
    state = member(shown(before, NOW - 1_000))
    report = replace(lanes(0), backlog_ms=70)
    assert decided(show_lanes, state, call(), (DESCRIBE, report)) == asks(state, ShowLanes(report.lines, 0, 70, 0))


@pytest.mark.parametrize(
    ("ages", "why", "settings", "logged", "warns"),
    [
        pytest.param((75, 0), "budget", {}, False, True, id="far apart"),
        pytest.param((60, 0), "budget", {}, False, False, id="near each other"),
        pytest.param((900, 890), "budget", {}, False, False, id="a backlog, together"),
        pytest.param((None, 900), "budget", {}, False, False, id="an unknown age"),
        pytest.param((900, 0), PARKED, {}, False, False, id="a lane that nobody reads"),
        pytest.param((900, 0), f"ceiling: {FAILING}", {}, False, False, id="a key that waits for its next attempt"),
        pytest.param((75, 0), "budget", {"max_lead_ms": 600_000}, False, False, id="a lead is set"),
        pytest.param((75, 0), "budget", {}, True, False, id="the line is there already"),
    ],
)
def test_lanes_are_far_apart__say_once_what_a_watermark_would_drop(
    ages: tuple[int | None, int], why: str, settings: dict[str, Any], logged: bool, warns: bool
) -> None:
    some = replace(lanes(90).lines[0], why=why)
    two = tuple(replace(some, hashes=h, lag_s=age) for h, age in zip((LEFT, RIGHT), ages, strict=True))
    report = replace(lanes(90), lines=two)
    state, answers = member(Shown(apart_logged=logged)), ((DESCRIBE, report), (ShowLanes(two, 0), True))
    decision = decided(show_lanes, state, call(**settings), *answers)
    lines = [e for e in decision.effects if "75 s apart" in str(e)]
    assert (len(lines), decision.state.shown.apart_logged) == (warns, warns or logged)


def test_slow_lanes__show_which_part_of_the_slots_they_take() -> None:
    slow = QUOTA._replace(piece=OwnedRange(RIGHT, 10, EPOCH), cell=Cell(RIGHT, 0.5, 100.0), why=Why.BUDGET)
    quick = QUOTA._replace(piece=OwnedRange(LEFT, 10, EPOCH), cell=Cell(LEFT, 1.0, 1.0))
    state = member(Shown(), quotas=(quick, slow))
    describe = DescribeLanes(Planned((quick, slow), {TP: 100}, ()), None)
    answers = (describe, lanes(90)), (ShowLanes(lanes(90).lines, 45), True)
    decision = decided(show_lanes, state, call(batch_budget_ms=10_000), *answers)
    assert decision.state.shown.slow_percent == 45


def test_a_trial__is_described_with_its_lane_its_strikes_and_its_cuts() -> None:
    ceilings = (("older partitions", {TP: (QUOTA.piece,)}),)
    cut = Cutting(1).at({TP: (RIGHT.lo,)})
    state = member(Shown(), trials={(TP, LEFT): 1}, ceilings=ceilings, cutting=cut)
    state = replace(state, strikes=Strikes((struck(),), NOW))
    planned = Planned((QUOTA,), {TP: 100}, (struck(),), {TP: (RIGHT.lo,)}, ceilings)
    assert decided(show_lanes, state, call()) == asks(state, DescribeLanes(planned, None))


# -- members of one group, on real servers


_, UPPER = cuts(2)


LINE = LaneLine(TP, WHOLE, 5, 9, 1, False, 3.0, 2.0, CostKind.SURE, 9, "budget")


def written(members: Group) -> dict[str, tuple[LaneLine, ...]]:
    """The lane lines in Redis, by member."""
    found = cast(dict[str, str], members.redis.hgetall(GroupKeys(members.name).lanes))
    return {member: lines_of(text) for member, text in found.items()}


def work(service: Service, end: StreamOffset, lower_ms: float = 1.0, upper_ms: float = 1.0) -> None:
    """All tasks of a batch end, and report what each record took, by the half of the hash space that it is in."""
    for s in (s for task in service.tasks(end) for s in task):
        ms = len(s.offsets) * (upper_ms if s.hashes.lo in UPPER else lower_ms)
        service.receive([SliceCost(s.topic_partition, s.hashes, s.offsets, len(s.offsets), 10, 0.0, ms, (), True)])


def warmed_up(service: Service, members: Group, tp: TopicPartition) -> StreamOffset:
    """The end of a first batch. Workers had to start for it, so no cost is learned. Five more records wait."""
    service.first_positions()
    first = batch(service, StreamOffset(members.name))
    work(service, first)
    members.kafka.produce(tp.topic, keyed(5, first=5))
    members.clock.skip(1_000)
    return first


def test_a_member_writes_its_lanes_once_a_second_and_each_batch_that_ended(members: Group, tp: TopicPartition) -> None:
    members.clock = StillClock()
    service = members.service(subscribed(tp), session_ms=60_000)
    first = batch(service, warmed_up(service, members, tp))
    work(service, first)
    planned = written(members)[service.member]
    assert {(x.tp, x.position, x.why) for x in planned} == {(tp, 5, "all there is")}
    assert [x.hashes for x in planned] == [lane.hashes for lane in first.lanes[tp]]

    assert service.next_offset(first, UNLIMITED) is None
    assert written(members)[service.member] == planned, "a second has not passed"
    members.clock.skip(1_000)
    assert service.next_offset(first, UNLIMITED) is None
    after = written(members)[service.member]
    assert {(x.position, x.lag, x.lag_s, x.cost) for x in after} == {(10, 0, 0, CostKind.SURE)}
    assert (service.lanes.lines, service.lanes.lanes) == (after, len(after))

    _, (_, fields) = cast(list[tuple[str, dict[str, str]]], members.redis.xrange(GroupKeys(members.name).history))
    assert (fields["member"], fields["lanes"]) == (service.member, str(len(first.slices)))
    assert int(fields["rows"]) == sum(len(s.offsets) for s in first.slices)


def test_the_first_batch_is_at_work_while_it_runs_though_the_member_was_idle_before(members: Group) -> None:
    tp = TopicPartition(members.kafka.create_topic(), 0)
    members.clock = StillClock()
    settings = GroupSettings(members.name, session_ms=60_000, longest_ms=70_000)
    service = members.started(subscribed(tp), settings=settings)
    start = StreamOffset(members.name)
    assert service.next_offset(start, UNLIMITED) is None, "the topic is empty"
    assert {x.quota for x in written(members)[service.member]} == {0}

    members.kafka.produce(tp.topic, keyed(40))
    members.clock.skip(IDLE_MS)
    end = service.next_offset(start, UNLIMITED)
    assert end is not None
    (at_work,) = top_view(GroupLook(members.name, members.state)).members
    assert (at_work.runs_s, at_work.ago_s) == (None, None), "it is planned"
    service.tasks(end)
    runs = top_view(GroupLook(members.name, members.state))
    assert [m.runs_s is not None and 0 <= m.runs_s < 30 for m in runs.members] == [True]
    assert sum(lane.quota for lane in runs.lanes) >= 40
    service.next_offset(end, UNLIMITED)
    assert [m.runs_s for m in top_view(GroupLook(members.name, members.state)).members] == [None], "it has ended"


def test_a_member_writes_its_lanes_again_after_a_loss_of_state(members: Group, tp: TopicPartition) -> None:
    service, first = members.begun(subscribed(tp), session_ms=500)
    service.next_offset(first, UNLIMITED)
    members.restart_redis()
    members.redis.delete(GroupKeys(members.name).lanes)
    for _ in range(2):
        members.clock.skip(1_000)
        service.next_offset(first, UNLIMITED)
    assert service.member in written(members)


@pytest.mark.parametrize(
    ("lower_ms", "least", "most"),
    [
        pytest.param(1.0, 0.0, 0.45, id="half of its keys are slow: it gets less"),
        pytest.param(900.0, 0.5, 0.5, id="all are as slow: it is behind, no more"),
    ],
)
def test_an_owner_of_slow_keys_gets_less_at_the_next_assignment(
    members: Group, tp: TopicPartition, lower_ms: float, least: float, most: float
) -> None:
    settings = GroupSettings(members.name, capacity=2, session_ms=60_000, batch_budget_ms=1_000)
    one, two = (members.service(subscribed(tp), settings=settings) for _ in range(2))
    first = batch(one, warmed_up(one, members, tp))
    work(one, first, lower_ms, upper_ms=900.0)
    members.kafka.produce(tp.topic, keyed(100, first=10))
    members.clock.skip(1_000)
    assert one.next_offset(first, UNLIMITED) is not None
    assert "budget" in {x.why for x in written(members)[one.member] if x.hashes.lo in UPPER}

    two.next_offset(StreamOffset(members.name), UNLIMITED)
    shares = {member: sum(h.share for h in ranges[tp]) for member, ranges in members.state.assignment.items()}
    assert least <= shares[one.member] <= most
    assert shares[one.member] + shares[two.member] == pytest.approx(1)


def test_ranges_that_come_back_start_small(members: Group, tp: TopicPartition) -> None:
    one, two = (members.service(subscribed(tp), session_ms=60_000) for _ in range(2))
    end = batch(one, warmed_up(one, members, tp))
    work(one, end)
    for first, count in ((10, 1_500), (2_000, 4_000)):
        members.kafka.produce(tp.topic, keyed(count, first=first))
        members.clock.skip(1_000)
        end = batch(one, end)
        work(one, end)
    assert {x.why for x in written(members)[one.member]} == {"all there is"}, "by now so many may be read"

    two.next_offset(StreamOffset(members.name), UNLIMITED)
    kept = batches_until(one, end, 0.5, members, tp)
    two.leave()
    members.kafka.produce(tp.topic, keyed(4_000, first=6_000))
    members.clock.skip(1_000)
    batches_until(one, kept, 1.0, members, tp)
    whys = {x.why: x.hashes for x in written(members)[one.member]}
    assert set(whys) == {"all there is", "slow start"}, "the half that was away, and the one that was not"


def batches_until(
    service: Service, start: StreamOffset, share: float, members: Group, tp: TopicPartition
) -> StreamOffset:
    """The end of the first batch in which the member has so much of the hash space; the sink completes those before."""
    at = [start]

    def there() -> bool:
        members.kafka.produce(tp.topic, keyed(2))
        at.append(batch(service, at[-1]))
        work(service, at[-1])
        return sum(lane.hashes.share for _, lane in at[-1]) == pytest.approx(share)

    eventually(there, f"it has {share} of the hashes")
    return at[-1]


# -- on a real Redis ---------------------------------------------------------------------------------


def test_the_lanes_of_members_that_are_gone_vanish_with_the_next_report(world: World) -> None:
    world.found()
    one = world.join("m-1")
    world.store.reports.lanes(one, [LINE], 0)
    world.lapse(SESSION + 1)
    two = world.join("m-2")
    world.store.reports.lanes(two, [LINE], 45)
    assert world.redis.hgetall(GroupKeys(world.group).lanes) == {"m-2": str(LINE)}
    assert [s.metadata["slow_percent"] for s in world.store.members.subscribers(["m-2"])] == ["45"]


def test_measurements_of_a_member_cause_no_assignment(world: World) -> None:
    world.found()
    me = world.join("m-1")
    occasion = world.store.members.look(me).value.occasion
    world.store.members.assign(me, occasion, "test 1", {"m-1": {TP: (WHOLE,)}})
    world.store.reports.lanes(me, [LINE], 90)
    assert world.store.members.look(me).value.occasion == ""
