"""Redis lost state: a member recovers it, or refuses to go on. On real servers, without Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

import kafka_groups
import servers
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import (
    DataLossError,
    KafkaUnavailableError,
    StateLostError,
    UnknownGroupError,
)
from coordinator.kafka.log import KafkaLog
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.log import Log
from coordinator.values.offset_spec import Latest
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from group_services import LONG_MS, UNLIMITED, Group, batch, read, records, run, subscribed
from kafka_logs import Through, Unmirrored
from recording_listener import RecordingListener
from streams import eventually, keyed

pytestmark = pytest.mark.usefixtures("short_sessions")


def test_a_mirror_without_redis_is_a_recovery_not_a_new_group(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(3))
    members.lose_everything()
    members.service(subscribed(tp)).first_positions()
    assert members.events == ["recover", "continue"]
    assert members.state.stable == {tp: 5}
    assert records(run(members, subscribed(tp))) == read(tp, 5, 8)


def test_a_mirror_of_some_partitions_is_no_proof_of_the_others(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    members.lose_everything()
    members.kafka.add_partitions(tp.topic, 2)
    with pytest.raises(StateLostError, match=f"{tp.topic}-1"):
        members.service(subscribed(tp)).first_positions()
    assert members.keys == []


def test_a_partition_of_which_nothing_is_left_begins_at_its_beginning_never_at_the_end_of_its_log(
    members: Group, tp: TopicPartition
) -> None:
    run(members, subscribed(tp))
    keys = GroupKeys(members.name)
    members.redis.delete(keys.segments(tp), keys.owners(tp), keys.stable(tp.topic))
    kafka_groups.forget(members.kafka.bootstrap, members.name)
    members.service(subscribed(tp), Latest()).first_positions()
    assert members.state.stable == {tp: 0}
    assert "mend" in members.events


@dataclass
class TwoRoads(Through):
    """Two real logs: topics and offsets over one, Kafka's own groups over the other."""

    groups: Log

    def group_offsets(self, group: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        return self.groups.group_offsets(group)

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        return self.groups.commit_group_offsets(group, offsets)

    def close(self) -> None:
        self.groups.close()


def test_latest_is_not_where_a_group_begins_that_has_lost_its_meta(members: Group, tp: TopicPartition) -> None:
    members.service(subscribed(tp), log=Unmirrored(members.log())).first_positions()
    members.redis.delete(GroupKeys(members.name).meta)
    members.service(subscribed(tp), Latest(), log=Unmirrored(members.log())).first_positions()
    assert members.state.stable == {tp: 0}
    strict = "nothing proves the policies: the strict reading holds"
    assert members.events == ["found", "recover", "policy", "continue"], strict


@pytest.mark.usefixtures("impatient")
def test_an_unreadable_mirror_creates_no_group(members: Group, tp: TopicPartition) -> None:
    (port,) = servers.free_ports(1)
    address = {"bootstrap_servers": f"127.0.0.1:{port}", "bootstrap_timeout_ms": 1_000}
    nowhere = KafkaLog(address, retries=0, retry_interval_ms=0)
    service = members.service(subscribed(tp), log=TwoRoads(members.log(), nowhere))
    with pytest.raises(KafkaUnavailableError, match=str(port)):
        service.first_positions()
    with pytest.raises(UnknownGroupError):
        _ = members.state


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(lambda members, tp: members.lose_everything(), id="everything"),
        pytest.param(
            lambda members, tp: members.redis.delete(GroupKeys(members.name).segments(tp)),
            id="the positions of a partition, which somebody deleted",
        ),
    ],
)
def test_a_running_member_goes_on_where_it_was_after_redis_lost(
    members: Group, tp: TopicPartition, lose: Callable[[Group, TopicPartition], object]
) -> None:
    service, end = members.begun(subscribed(tp))
    lose(members, tp)
    members.kafka.produce(tp.topic, keyed(3))
    assert records(batch(service, end)) == read(tp, 5, 8)
    assert "recover" in members.events


def test_after_a_loss_an_idle_member_owns_its_ranges_again_though_the_generation_has_the_same_number(
    members: Group, tp: TopicPartition
) -> None:
    """Generations start at 1 again: only the nonce shows that earlier ownership is void (rule: no-epoch-twice)."""
    service, end = members.begun(subscribed(tp))
    assert service.next_offset(end, UNLIMITED) is None
    before = members.state
    members.lose_everything()
    assert service.next_offset(end, UNLIMITED) is None
    after = members.state
    assert after.meta["generation"] == before.meta["generation"]
    assert [(hashes, member) for hashes, _, member in after.owners[tp]] == [(WHOLE, service.member)]
    assert after.owners != before.owners, "at another lane epoch"


def test_a_listener_receives_lost_for_ranges_that_another_member_took_after_the_lease(
    members: Group, tp: TopicPartition
) -> None:
    listener = RecordingListener()
    sleeper = members.service(
        subscribed(tp), settings=GroupSettings(members.name, capacity=2, session_ms=LONG_MS, listener=listener)
    )
    sleeper.first_positions()
    end = batch(sleeper, StreamOffset(members.name))
    assert listener.calls == [("assigned", {tp: (WHOLE,)})]
    members.lose(sleeper)
    heir = members.service(subscribed(tp), session_ms=LONG_MS)
    eventually(lambda: bool(heir.next_offset(StreamOffset(members.name), UNLIMITED)), "the heir has a batch")
    taken = tuple(hashes for hashes, _, member in members.state.owners[tp] if member == heir.member)
    sleeper.next_offset(end, UNLIMITED)
    assert listener.calls[1] == ("lost", {tp: taken})


def test_a_recreated_topic_is_a_data_loss_also_after_redis_was_restarted(members: Group, tp: TopicPartition) -> None:
    end = run(members, subscribed(tp))
    members.kafka.recreate_topic(tp.topic)
    members.kafka.produce(tp.topic, keyed(8))  # so that every position is within the new log
    members.restart_redis()
    service = members.started(subscribed(tp))
    with pytest.raises(DataLossError, match="created again"):
        service.next_offset(end, UNLIMITED)
    assert records(run(members, subscribed(tp), fail_on_data_loss=False)) == read(tp, 0, 8)


def test_positions_of_a_deleted_topic_prove_nothing_for_its_successor(members: Group, tp: TopicPartition) -> None:
    service, end = members.begun(subscribed(tp))
    members.kafka.recreate_topic(tp.topic)
    members.kafka.produce(tp.topic, keyed(8))
    members.lose_everything()
    members.clock.skip(2_000)
    with pytest.raises(StateLostError, match=f"{tp.topic}-0"):
        service.next_offset(end, UNLIMITED)


def test_after_redis_was_emptied_log_ends_are_reported_again_though_no_record_came(
    members: Group, tp: TopicPartition
) -> None:
    service, end = members.begun(subscribed(tp))
    assert service.next_offset(end, UNLIMITED) is None
    members.lose_everything()
    assert service.next_offset(end, UNLIMITED) is None
    shown = members.redis.hgetall(GroupKeys(members.name).end(tp.topic))
    assert shown["0"] == "5"
    assert shown.keys() == {"0", "at"}
