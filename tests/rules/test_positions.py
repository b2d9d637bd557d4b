"""Where a group begins, and where it goes on after a reset (docs/protocol.md#positions)."""

from dataclasses import replace

import pytest

import kafka_groups
from coordinator.errors import DataLossError
from coordinator.member.decision import Decision
from coordinator.member.mirroring import mirror_if_due
from coordinator.member.requests import Mirror
from coordinator.member.state import Mirrored
from coordinator.progress.growth import Growth, Sight, ceilings, levels
from coordinator.progress.ownership import Fact, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.snapshot import list_groups
from coordinator.values import verdicts
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, PatientClock, batches, run, subscribed
from states import NOW, call, decided, joined
from store_world import BIG, LOWER, OTHER, TOPICS, TP, UPPER, WANTED, World, lane, offset

ON_EACH_SERVER = True
MIRROR = Mirror((TP,), ("orders",))


def test_first_positions__they_are_set_once(world: World) -> None:
    """Rule: first-positions. First positions come from Redis; else from Kafka's own group of that name."""
    with pytest.raises(verdicts.Absent):
        world.store.positions.status()
    assert world.store.positions.create("aa", TOPICS, {TP: 5}).value == 1
    assert world.store.positions.create("bb", TOPICS, {TP: 9, OTHER: 7}).value == 1
    assert world.redis.hget(GroupKeys(world.group).meta, "nonce") == "aa"
    assert world.store.positions.stable(["orders"]) == {TP: 5, OTHER: 7}
    assert world.group in list_groups(world.client)


def test_first_positions__they_inherit_no_individual_commits(world: World) -> None:
    """First positions come from Redis; else from Kafka's own group of that name; else from startingOffsets."""
    world.owner({str(WHOLE): "45-47"}, p0=43)
    world.redis.delete(GroupKeys(world.group).segments(TP))
    world.found(p0=3)
    assert (world.positions(), world.ics()) == ({str(WHOLE): "3"}, {})


def test_create_once__a_call_that_only_places_partitions_creates_no_group(world: World) -> None:
    """Rule: create-once. Only a first start creates a group."""
    with pytest.raises(verdicts.Absent):
        world.store.positions.create("", TOPICS, {TP: 5})
    assert not world.redis.exists(GroupKeys(world.group).meta)


def test_checkpoint_on_resume__an_offset_beyond_the_log_is_refused_before_any_part_of_it_is_used(
    members: Group, tp: TopicPartition
) -> None:
    """Rule: checkpoint-on-resume. After a restart, the member replays the checkpoint's lanes that it still owns."""
    _, end = members.begun(subscribed(tp))
    lower, upper = end.lanes[tp]
    beyond = replace(end, lanes={tp: (lower, upper._replace(offsets=(OffsetRange(0, 9),)))})
    members.clock = PatientClock()  # a new leader may not know the end yet
    with pytest.raises(DataLossError, match="the log ends at 5, before the offset 9 of the checkpoint"):
        members.service(subscribed(tp)).next_offset(beyond, UNLIMITED)
    assert members.store.positions.positions([tp]) == {tp: ((WHOLE, 0),)}


def test_assert_beginnings__an_assertion_moves_over_individual_commits_too(world: World) -> None:
    """Rule: assert-beginnings. The verb `claim` has no fence."""
    world.owner({str(WHOLE): "45-47 50-50"}, p0=43)
    world.store.positions.claim(offset(), {TP: (Fact(LOWER, 45), Fact(UPPER, 43, "", (OffsetRange(48, 50),)))})
    assert world.positions() == {str(LOWER): "48", str(UPPER): "43"}
    assert world.ics() == {str(LOWER): "50-50", str(UPPER): "45-50"}


def test_mirror_after_reset__the_offset_of_another_program_moves_nothing_and_is_named(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule: mirror-after-reset. The mirror names reset epoch, topic id and founding beside each offset."""
    end = run(members, subscribed(tp))
    kafka_groups.reset_to_earliest(members.kafka.bootstrap, members.name, tp.topic)
    service = members.service(subscribed(tp))
    service.set_targets()
    assert not [*batches(service, end)], "the checkpoint and Redis count"
    service.leave()
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic) == {0: 5}
    (line,) = (r.message for r in caplog.records if "another program" in r.message)
    (why,) = (e.why for e in last_events(members.client, members.name, 1_000) if e.kind == "overruled")
    assert f"{tp} at 0, here 5" in why
    assert f"{tp} at 0, here 5" in line
    assert f"coop-kafka reset-offsets {members.name}" in line


def test_mirror_refresh__every_30_s_also_if_no_position_moved() -> None:
    """Rule: mirror-refresh. A member commits the mirror again every 30 s, also if no position moved."""
    fresh = joined(mirrored=Mirrored(NOW - 29_999))
    assert decided(mirror_if_due, fresh, call()) == Decision(fresh)
    decision = decided(mirror_if_due, joined(mirrored=Mirrored(NOW - 30_000)), call(), (MIRROR, True))
    assert decision == Decision(joined(mirrored=Mirrored(NOW)))


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(offset(lane("aa.1", 0, 10), reset=8), id="of an older reset epoch"),
        pytest.param(offset(lane("aa.1", 0, 10), reset=9, topic_id="id-2"), id="of another topic id"),
    ],
)
def test_reset_epoch__facts_of_before_a_reset_are_refused_and_ignored(world: World, end: StreamOffset) -> None:
    """Rule: reset-epoch.

    An operator's reset takes a new reset epoch, voids all lane epochs, and writes the mirror first.
    """
    world.found()
    world.redis.hset(GroupKeys(world.group).meta, "reset_epoch", "9")
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    assert world.commit(me, end) == completed(end)
    world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),)})
    assert world.store.positions.authorize(me, end).value.owned == {TP: ()}
    assert world.positions() == {str(WHOLE): "0"}


def test_reset_epoch__a_newer_one_than_redis_has_is_a_loss_of_state(world: World) -> None:
    me = world.owner()
    end = offset(lane("aa.1", 0, 10), reset=1)
    for verb in (
        lambda: world.commit(me, end),
        lambda: world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),)}),
        lambda: world.store.positions.authorize(me, end),
    ):
        with pytest.raises(verdicts.Lost, match="before a reset"):
            verb()
    assert world.positions() == {str(WHOLE): "0"}


def test_available_now__targets_are_raised_to_those_of_the_others(world: World) -> None:
    """Rule: available-now. Targets are the log ends at the start, raised to those of other AvailableNow members."""
    world.found()
    first = Joining({}, targets={TP: 10, OTHER: 30})
    second = Joining({}, targets={TP: 20, OTHER: BIG})
    assert world.store.members.join(Caller("m-1", "i1"), "", first).value.targets == {TP: 10, OTHER: 30}
    assert world.store.members.join(Caller("m-2", "i2"), "", second).value.targets == {TP: 20, OTHER: BIG}
    assert world.store.members.join(Caller("m-3", "i3"), "", first).value.targets == {TP: 20, OTHER: BIG}


def test_available_now__it_ends_once_the_hashes_of_every_owner_are_done(world: World) -> None:
    world.found(p0=5, p1=7)
    me = world.join()
    assert world.store.members.finish(me, {TP: 5, OTHER: 8}).value is False
    assert world.store.members.finish(me, {TP: 5, OTHER: 7}).value is True


def test_available_now__it_ends_where_individual_commits_reach_the_target(world: World) -> None:
    """Targets are the log ends at the start, raised to those of other AvailableNow members."""
    me = world.owner({str(WHOLE): "45-50"}, p0=43)
    assert not world.store.members.finish(me, {TP: 51}).value
    world.set_ics({str(WHOLE): "43-50"})
    assert not world.store.members.finish(me, {TP: 52}).value
    assert world.store.members.finish(me, {TP: 51}).value


def test_growth_order__a_hash_of_a_new_partition_waits_for_every_older_one() -> None:
    """Rule: growth-order.

    A hash of a new partition waits until every older partition has passed what it may still hold of that hash.
    """
    older, new = (TP, OTHER), TopicPartition("orders", 2)
    growth = Growth("orders", "id-1", 2, 4, 1_000, 601_000)
    seen = (Sight(0, {new: 5}, dict(zip(older, (10, 20), strict=True))),)
    behind = levels(growth, {TP: [(LOWER, 10), (UPPER, 9)], OTHER: [(WHOLE, 20)]}, seen)
    assert ceilings(behind, new, seen) == HashMap(((LOWER, 5), (UPPER, 0)))
    assert ceilings(levels(growth, {TP: [(WHOLE, 10)], OTHER: [(WHOLE, 19)]}, seen), new, seen) == HashMap.of(WHOLE, 0)
    over = replace(growth, ends=(10, 20))
    assert ceilings(levels(over, {TP: [(WHOLE, 10)], OTHER: [(WHOLE, 20)]}, seen), new, seen) == HashMap.of(WHOLE, None)
