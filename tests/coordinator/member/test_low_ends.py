"""A log end that is lower than before is not believed at once (rule: low-end). On real servers, without Spark."""

from contextlib import closing
from typing import cast

import pytest

from coordinator.errors import DataLossError
from coordinator.member.service import Service
from coordinator.progress.data_loss import LOW_MS
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.log import Log
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, PatientClock, batch, read, records, subscribed
from kafka_logs import Lower, kafka_log
from streams import keyed
from topics import Record

SESSION_MS = 60_000


def restarted(members: Group, tp: TopicPartition, log: Log, *, fail_on_data_loss: bool) -> tuple[Service, StreamOffset]:
    """A new life of a member, and its start: the group has read everything."""
    before, end = members.begun(subscribed(tp), session_ms=SESSION_MS)
    assert before.next_offset(end, UNLIMITED) is None
    before.leave()
    return members.service(subscribed(tp), log=log, fail_on_data_loss=fail_on_data_loss, session_ms=SESSION_MS), end


def position(members: Group, tp: TopicPartition) -> int:
    ((_, at),) = members.store.positions.positions([tp])[tp]
    return at


def log_ends(members: Group, tp: TopicPartition) -> str | None:
    """The log end that Redis shows."""
    return cast(str | None, members.redis.hget(GroupKeys(members.name).end(tp.topic), str(tp.partition)))


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_the_isolation_level_changes_below_an_open_transaction__reading_waits(
    members: Group, tp: TopicPartition, fail_on_data_loss: bool
) -> None:
    committed = kafka_log(members.kafka.bootstrap, {"isolation_level": "read_committed"})
    with closing(committed), members.kafka.open_transaction(tp.topic, keyed(4)):
        member, start = restarted(members, tp, committed, fail_on_data_loss=fail_on_data_loss)
        for _ in range(3):
            assert member.next_offset(start, UNLIMITED) is None
            members.clock.skip(LOW_MS)
        assert (position(members, tp), log_ends(members, tp), "loss" in members.events) == (9, "9", False)
        members.kafka.produce(tp.topic, keyed(3))
        assert member.next_offset(start, UNLIMITED) is None
    assert records(batch(member, start)) >= read(tp, 9, 12)


@pytest.mark.parametrize("restart", [True, False])
def test_a_batch_in_an_open_transaction_is_replayed_at_the_other_level(
    members: Group, tp: TopicPartition, restart: bool
) -> None:
    """The checkpoint names offsets above the last stable one, and they are in the log."""
    committed = kafka_log(members.kafka.bootstrap, {"isolation_level": "read_committed"})
    with closing(committed), members.kafka.open_transaction(tp.topic, keyed(4)):
        _, end = members.begun(subscribed(tp), session_ms=SESSION_MS)
        member = members.service(subscribed(tp), log=committed, session_ms=SESSION_MS)
        if restart:
            assert records(end) == read(tp, 0, 9)
            assert len(member.tasks(end)) > 0
        assert member.next_offset(end, UNLIMITED) is None
        assert position(members, tp) == 9


def test_the_first_answer_of_a_new_life_is_low__it_looks_again(members: Group, tp: TopicPartition) -> None:
    """Before it joins: the checkpoint names offsets that the log does not seem to have."""
    log = Lower(members.log(), {tp: 3})
    member, start = restarted(members, tp, log, fail_on_data_loss=True)

    class Recovering(PatientClock):
        def wait(self, ms: int) -> None:
            super().wait(ms)
            log.marks.clear()

    member._clock = member._turns._clock = Recovering()
    members.kafka.produce(tp.topic, keyed(3))
    assert records(batch(member, start)) == read(tp, 5, 8)


def test_an_end_that_stays_low__is_a_data_loss(members: Group, tp: TopicPartition) -> None:
    log = Lower(members.log())
    member, start = restarted(members, tp, log, fail_on_data_loss=True)
    assert member.next_offset(start, UNLIMITED) is None
    log.marks[tp] = 3
    assert member.next_offset(start, UNLIMITED) is None
    members.clock.skip(LOW_MS)
    with pytest.raises(DataLossError, match="the log ends at 3, before the position 5 of the group"):
        member.next_offset(start, UNLIMITED)


def test_an_end_that_stays_low__moves_positions_on_request(members: Group, tp: TopicPartition) -> None:
    log = Lower(members.log())
    member, start = restarted(members, tp, log, fail_on_data_loss=False)
    assert member.next_offset(start, UNLIMITED) is None
    log.marks[tp] = 3
    assert member.next_offset(start, UNLIMITED) is None
    members.clock.skip(LOW_MS)
    member.next_offset(start, UNLIMITED)
    assert (position(members, tp), "loss" in members.events) == (3, True)


def test_while_an_end_is_low__the_other_partitions_go_on(members: Group) -> None:
    topic = members.kafka.create_topic(partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    members.kafka.produce(topic, [Record(b"v", partition=p) for p in (0, 1)] * 5)
    log = Lower(members.log())
    member, end = members.begun(subscribed(first), log=log, session_ms=SESSION_MS)
    assert member.next_offset(end, UNLIMITED) is None
    members.kafka.produce(topic, [Record(b"v", partition=1)] * 3)
    log.marks[first] = 3
    then = batch(member, end)
    assert {s.topic_partition: (s.offsets.start, s.offsets.until) for s in then.slices} == {second: (5, 8)}
    assert {row.hashes: row.until for row in then.rows[first]} == {WHOLE: 5}, "and its position stays in the offset"
