"""The leader of a partition does not answer (rule: silent-leader). On real servers, without Spark."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import pytest

from coordinator.assignment.settings import GroupSettings, Ordering
from coordinator.errors import DataLossError
from coordinator.member.decision import Seen
from coordinator.member.limits import Limits
from coordinator.member.low_ends import judged
from coordinator.member.service import Service
from coordinator.member.state import LogView
from coordinator.progress.data_loss import LOW_MS
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.offset_spec import Latest
from coordinator.values.subscription import Bounds, TopicPartition
from group_services import UNLIMITED, Group, batch, batches, read, records, slices_read, subscribed
from kafka_logs import Elected, Lower, Silent, delete_records, kafka_log
from three_brokers import ThreeBrokers
from topics import Record


@dataclass
class Bounded(Silent):
    """The same; a run that looks for ever fails."""

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        assert self.looks > -200, "the run never ends"
        return super().bounds_now(partitions, beginnings)


@pytest.fixture
def two(members: Group) -> tuple[TopicPartition, TopicPartition]:
    """Two partitions of four records each."""
    topic = members.kafka.create_topic("silent", partitions=2)
    for partition in (0, 1):
        members.kafka.produce(topic, [Record(b"%d" % n, b"key-%d" % n, partition) for n in range(4)])
    return TopicPartition(topic, 0), TopicPartition(topic, 1)


def begun(members: Group, tp: TopicPartition, log: Silent) -> tuple[Service, StreamOffset]:
    """A member, and the end of its first batch: it has seen all log ends."""
    member = members.started(subscribed(tp), log=log)
    return member, batch(member, StreamOffset(members.name))


def of_ordering(members: Group, ordering: Ordering) -> GroupSettings:
    return GroupSettings(members.name, capacity=2, session_ms=500, ordering=ordering)


def more(members: Group, *partitions: TopicPartition) -> None:
    for tp in partitions:
        members.kafka.produce(tp.topic, [Record(b"%d" % n, b"key-%d" % n, tp.partition) for n in range(4)])


def test_the_topic_is_created_again_before_a_leader_has_answered__all_partitions_of_the_new_one_are_read(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    member, end = begun(members, here, Silent(members.log(), {away}))
    assert records(end) == read(here, 0, 4)
    member.leave()
    members.kafka.recreate_topic(here.topic, 2)
    more(members, here, away)
    member = members.service(subscribed(here), log=Bounded(members.log(), looks=0), fail_on_data_loss=False)
    assert records(*batches(member, StreamOffset(members.name))) == read(here, 0, 4) | read(away, 0, 4)


def test_another_member_has_read_beyond_the_last_known_end__nothing_is_lost_and_nobody_is_asked() -> None:
    tp = TopicPartition("t", 0)
    log, bounds = judged(LogView(bounds={tp: Bounds(0, 4, 1)}, silent=frozenset({tp})), {tp: 8}, (), Seen(0))
    assert (dict(bounds), dict(log.low), set(log.unsure)) == ({tp: Bounds(0, 8, 1)}, {}, {tp})


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_leader_that_has_never_answered_this_process__the_others_start_at_once_and_it_joins_when_it_answers(
    members: Group, two: tuple[TopicPartition, TopicPartition], checkpoint: bool
) -> None:
    here, away = two
    member, end = begun(members, here, Silent(members.log()))
    assert member.next_offset(end, UNLIMITED) is None
    member.leave()
    more(members, here, away)

    log = Silent(members.log(), {away})
    member = members.service(subscribed(here), log=log)
    if not checkpoint:
        end = StreamOffset(members.name)
        member.first_positions()
    end = batch(member, end)
    assert records(end) == read(here, 4, 8)
    assert member.log_ends() == {here: 8}, "nothing is known of the other log"
    log.partitions = set()
    assert records(batch(member, end)) == read(away, 4, 8)


def test_a_real_broker_is_frozen_when_a_query_starts_with_its_checkpoint(
    three_brokers: ThreeBrokers, redis_url: str, group: str
) -> None:
    topic, bootstrap = three_brokers.topic_without_copies(), three_brokers.brokers.bootstrap
    with closing(Group(three_brokers.kafka, redis_url, group)) as members:
        partitions = [TopicPartition(topic, partition) for partition in range(3)]
        more(members, *partitions)
        member, end = begun(members, partitions[0], Silent(members.log()))
        assert member.next_offset(end, UNLIMITED) is None
        member.leave()
        more(members, *partitions)
        log = kafka_log(bootstrap, patience_ms=600_000)
        with closing(log), three_brokers.frozen(3):
            began, member = time.monotonic(), members.service(subscribed(partitions[0]), log=log)
            end = batch(member, end)
            assert records(end) == read(partitions[0], 4, 8)
            assert time.monotonic() - began < 30
        assert records(batch(member, end)) == read(partitions[2], 4, 8)


def test_a_log_that_turns_out_shorter_than_the_checkpoint_is_a_loss_once_its_leader_answers(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    log = Silent(members.log())
    member, end = begun(members, here, log)
    member.leave()
    more(members, here)

    log = Silent(Lower(members.log(), {away: 2}), {away})
    member = members.service(subscribed(here), log=log)
    end = batch(member, end)
    assert records(end) == read(here, 4, 8)
    log.partitions = set()
    assert member.next_offset(end, UNLIMITED) is None, "it may be a new leader"
    members.clock.skip(LOW_MS)
    with pytest.raises(DataLossError, match=f"{away}"):
        member.next_offset(end, UNLIMITED)


def test_a_log_that_has_aged_meanwhile_is_a_loss_at_the_first_answer(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    member, end = begun(members, here, Silent(members.log()))
    member.leave()
    more(members, here, away)
    delete_records(members.kafka, away, 6)

    log = Silent(members.log(), {away})
    member = members.service(subscribed(here), log=log)
    end = batch(member, end)
    log.partitions = set()
    with pytest.raises(DataLossError, match="records 4-5 are gone"):
        member.next_offset(end, UNLIMITED)


@pytest.mark.parametrize("ordering", ["key", "none"])
def test_a_new_group_from_earliest__a_partition_has_its_first_position_once_its_leader_answers(
    members: Group, two: tuple[TopicPartition, TopicPartition], ordering: Ordering
) -> None:
    here, away = two
    log = Silent(members.log(), {away})
    member, end = members.begun(subscribed(here), log=log, settings=of_ordering(members, ordering))
    assert records(end) == read(here, 0, 4)
    assert members.store.positions.stable([here.topic]) == {here: 0}
    log.partitions = set()
    assert records(batch(member, end)) == read(away, 0, 4)


def test_a_group_whose_leaders_are_all_silent_at_its_founding__begins_at_earliest_once_they_answer(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    log = Silent(members.log(), {*two})
    member = members.started(subscribed(two[0]), log=log)
    first = StreamOffset(members.name)
    assert member.next_offset(first, UNLIMITED) is None
    log.partitions = set()
    assert {s.topic_partition for s in slices_read(member, batch(member, first))} == {*two}


def test_a_topic_grows_before_a_leader_has_answered__its_new_partitions_wait_for_the_older_ones(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    log = Silent(members.log(), {*two})
    member = members.service(subscribed(two[0]), log=log)
    member.first_positions()
    members.kafka.add_partitions(two[0].topic, 4)
    log.partitions = set()
    members.clock.skip(1_000)
    first = StreamOffset(members.name)
    assert {s.topic_partition for s in slices_read(member, batch(member, first))} == {*two}
    assert [(g.old, g.new) for g in members.store.positions.growths()] == [(2, 4)]


def test_redis_loses_a_group_of_which_a_partition_waits_for_its_first_position__the_others_are_proven(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    log = Silent(members.log(), {away})
    member, end = members.begun(subscribed(here), log=log)
    assert member.next_offset(end, UNLIMITED) is None
    members.restart_redis()
    assert member.next_offset(end, UNLIMITED) is None
    again = members.service(subscribed(here), log=log)
    assert again.next_offset(end, UNLIMITED) is None, "a restart beside it"
    log.partitions = set()
    assert records(batch(again, end)) == read(away, 0, 4)


@pytest.mark.usefixtures("short_sessions")
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_redis_loses_a_group_whose_partitions_were_all_read__the_others_go_on_and_the_silent_one_keeps_its_position(
    members: Group, two: tuple[TopicPartition, TopicPartition], whole: bool, restart: bool
) -> None:
    here, away = two
    log = Silent(members.log())
    member, end = begun(members, here, log)
    assert member.next_offset(end, UNLIMITED) is None
    more(members, here, away)
    log.partitions = {away}
    (members.lose_everything if whole else members.restart_redis)()
    member = members.service(subscribed(here), log=log) if restart else member
    end = batch(member, end)
    assert records(end) == read(here, 4, 8)
    assert members.store.positions.stable([here.topic])[away] == 4
    log.partitions = set()
    assert records(batch(member, end)) == read(away, 4, 8)


@pytest.mark.usefixtures("short_sessions")
def test_redis_loses_a_group_and_begins_at_earliest_what_nothing_proves__without_a_silent_leader_that_has_a_proof(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    settings = GroupSettings(members.name, capacity=2, session_ms=500, on_state_loss="earliest")
    log = Silent(members.log())
    member, end = begun(members, here, log)
    assert member.next_offset(end, UNLIMITED) is None
    member.leave()
    log.delete_group_offsets(members.name, [here])
    members.lose_everything()
    log.partitions = {away}
    member = members.started(subscribed(here), log=log, settings=settings)
    assert records(batch(member, StreamOffset(members.name))) == read(here, 0, 4)


@pytest.mark.usefixtures("short_sessions")
@pytest.mark.parametrize("same_owner", [True, False])
def test_the_silent_leader_of_a_recovered_partition_is_replaced_by_one_without_its_last_records__that_is_a_loss(
    members: Group, two: tuple[TopicPartition, TopicPartition], same_owner: bool
) -> None:
    """Rule: leader-epoch-facts. The log has grown again beyond the position before anybody sees it."""
    here, away = two
    elected = Elected(members.log())
    log = Silent(elected)
    member, end = begun(members, here, log)
    assert member.next_offset(end, UNLIMITED) is None
    log.partitions = {away}
    members.lose_everything()
    more(members, here)
    end = batch(member, end)
    assert records(end) == read(here, 4, 8)
    if not same_owner:
        assert member.next_offset(end, UNLIMITED) is None
        member.leave()
        member, end = members.service(subscribed(here), log=log), StreamOffset(members.name)
        member.first_positions()
    elected.elect(away, 2)
    more(members, away)
    log.partitions = set()
    with pytest.raises(DataLossError, match=f"{away}"):
        member.next_offset(end, UNLIMITED)


def test_a_start_at_latest_has_its_moment__it_waits_for_all_leaders(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    here, away = two
    member = members.service(subscribed(here), Latest(), log=Silent(members.log(), {away}))
    with pytest.raises(AssertionError, match="waits for a silent leader"):
        member.first_positions()


@pytest.mark.parametrize("ordering", ["key", "none"])
def test_available_now_reads_what_answers__and_the_rest_up_to_its_end_at_the_first_answer(
    members: Group, two: tuple[TopicPartition, TopicPartition], ordering: Ordering
) -> None:
    here, away = two
    log = Silent(members.log())
    member, end = members.begun(subscribed(here), log=log, settings=of_ordering(members, ordering))
    assert member.next_offset(end, UNLIMITED) is None
    more(members, here, away)
    log.partitions, log.looks = {away}, 1_000
    member.set_targets()
    end = batch(member, end)
    assert records(end) == read(here, 4, 8)
    log.looks = 3
    end = batch(member, end)
    assert records(end) == read(away, 4, 8)
    more(members, here, away)
    assert member.next_offset(end, UNLIMITED) is None, "the run ends at its targets"


def test_runs_with_available_now_whose_targets_cross_read_for_each_other(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    """Each has the lower target in one partition, and the higher one in the other, of which its group learns late."""
    here, away = two
    few, late = Limits(max_offsets=1), {away: Bounded(members.log()), here: Bounded(members.log())}
    first, second = (members.service(subscribed(here), log=log) for log in late.values())
    first.first_positions()
    second.first_positions()
    for member, (tp, log) in zip((first, second), late.items(), strict=True):
        log.partitions = {tp}
        member.set_targets()
    more(members, here, away)
    for log in late.values():
        log.looks = 0

    def run(member: Service) -> set[tuple[int, int, int]]:
        end, found = StreamOffset(members.name), set[tuple[int, int, int]]()
        while (planned := member.next_offset(end, few)) is not None:
            member.tasks(planned)
            found |= {(s.partition, s.offsets.start, s.offsets.until) for s in planned.slices}
            end = planned
        member.leave()
        return found

    end = first.next_offset(StreamOffset(members.name), few)
    assert end is not None, "it has joined before the other one"
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(run, member) for member in (first, second)]
        assert all(of_one.result() for of_one in runs)
    assert members.state.stable == {here: 8, away: 8}


def test_a_new_group_begins_while_a_real_broker_is_frozen(
    three_brokers: ThreeBrokers, redis_url: str, group: str
) -> None:
    topic, bootstrap = three_brokers.topic_without_copies(), three_brokers.brokers.bootstrap
    with closing(kafka_log(bootstrap, patience_ms=60_000)) as first:
        first.must_hold_offsets(group)  # groups have coordinators from now on
    coordinator = three_brokers.leader(TopicPartition("__consumer_offsets", 0))
    partitions = [TopicPartition(topic, partition) for partition in range(3)]
    away = coordinator % 3 + 1  # it has the partition away - 1
    with closing(Group(three_brokers.kafka, redis_url, group)) as members:
        more(members, *partitions)
        log = kafka_log(bootstrap, patience_ms=600_000)
        with closing(log), three_brokers.frozen(away):
            began, member = time.monotonic(), members.service(subscribed(partitions[0]), log=log)
            member.set_targets()
            member.first_positions()
            end = batch(member, StreamOffset(members.name))
            assert {s.partition for s in end.slices} == {0, 1, 2} - {away - 1}
            assert time.monotonic() - began < 30
        assert records(batch(member, end)) == read(partitions[away - 1], 0, 4)
