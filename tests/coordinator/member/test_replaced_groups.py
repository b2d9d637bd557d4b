"""A group that was lost or deleted and then created anew: members of the earlier one end. On real servers."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from coordinator.errors import KafkaAccessError, StateLostError
from coordinator.member.requests import Mirror
from coordinator.progress.mirror import foundings
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.key_hash import cuts
from coordinator.values.offset_spec import Latest
from coordinator.values.subscription import Assigned, TopicPartition
from group_services import UNLIMITED, Group, batch, read, records, run, subscribed
from kafka_logs import Through, Unmirrored
from streams import keyed

pytestmark = pytest.mark.usefixtures("short_sessions")


@dataclass
class Forbidden(Through):
    """A real log of a user without the right to read groups."""

    def group_offsets(self, group: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        raise KafkaAccessError("GROUP_AUTHORIZATION_FAILED")


def test_a_running_query_never_joins_a_group_that_a_new_query_created_in_the_place_of_its_own(
    members: Group, tp: TopicPartition
) -> None:
    unmirrored = Unmirrored(members.log())
    old, end = members.begun(subscribed(tp), log=unmirrored)
    members.lose_everything()
    members.kafka.produce(tp.topic, keyed(3))
    members.service(subscribed(tp), Latest(), log=unmirrored).first_positions()
    assert members.state.stable == {tp: 8}, "records 5 to 7 are in no batch"
    with pytest.raises(StateLostError, match="its founding is"):
        old.next_offset(end, UNLIMITED)
    assert members.state.members == {}


def test_no_group_is_created_by_a_user_who_may_not_read_the_mirror(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    members.lose_everything()
    with pytest.raises(KafkaAccessError, match="grant READ on the group"):
        members.service(subscribed(tp), Latest(), log=Forbidden(members.log())).first_positions()
    assert members.keys == []


def test_a_user_who_may_not_read_the_mirror_works_in_a_group_that_exists(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(3))
    service = members.started(subscribed(tp), log=Forbidden(members.log()))
    assert records(batch(service, StreamOffset(members.name))) == read(tp, 5, 8)


def test_a_member_that_slept_while_its_group_was_deleted_moves_nothing_of_the_next_one(
    members: Group, tp: TopicPartition
) -> None:
    sleeper, end = members.begun(subscribed(tp))
    members.lose_everything()
    members.log().delete_group_offsets(members.name, [tp])
    members.service(subscribed(tp)).first_positions()
    mirror = members.log().group_offsets(members.name)
    with pytest.raises(StateLostError):
        sleeper.next_offset(end, UNLIMITED)
    sleeper.leave()
    assert members.state.stable == {tp: 0}
    assert members.log().group_offsets(members.name) == mirror
    assert foundings(mirror) == {tp: members.state.meta["founding"]}


def test_a_recovery_without_any_process_of_the_group_keeps_the_founding_of_the_mirror(
    members: Group, tp: TopicPartition
) -> None:
    run(members, subscribed(tp))
    founding = members.state.meta["founding"]
    members.lose_everything()
    members.service(subscribed(tp)).first_positions()
    assert members.state.meta["founding"] == founding


def test_the_mirror_of_an_earlier_group_gives_way_to_that_of_the_group_in_redis(
    members: Group, tp: TopicPartition
) -> None:
    run(members, subscribed(tp))
    stale = members.log().group_offsets(members.name)
    members.lose_everything()
    members.log().delete_group_offsets(members.name, [tp])
    service = members.started(subscribed(tp))
    members.log().commit_group_offsets(members.name, stale)  # of a member that slept in the middle of its write
    end = batch(service, StreamOffset(members.name))
    service.next_offset(end, UNLIMITED)
    service.leave()
    assert foundings(members.log().group_offsets(members.name)) == {tp: members.state.meta["founding"]}


def test_the_founding_is_the_first_nonce_and_outlives_later_ones(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    first = members.state.meta["nonce"]
    members.redis.hset(GroupKeys(members.name).meta, "run_id", "0")
    run(members, subscribed(tp))
    meta = members.state.meta
    assert meta["founding"] == first
    assert meta["nonce"] != first


def test_pinned_queries_prove_the_halves_of_a_partition_and_go_on(members: Group, tp: TopicPartition) -> None:
    unmirrored = Unmirrored(members.log())
    lower, upper = (
        members.service(Assigned({tp: (half,)}, pinned=True), log=unmirrored, application=f"a{n}")
        for n, half in enumerate(cuts(2))
    )
    ends = {}
    for half in (lower, upper):
        half.first_positions()
        ends[half] = batch(half, StreamOffset(members.name))
    founding = members.state.meta["founding"]
    members.lose_everything()
    with ThreadPoolExecutor(2) as pool:
        again = [pool.submit(half.next_offset, end, UNLIMITED) for half, end in ends.items()]
        assert [one.result(20) for one in again] == [None, None], "nothing is read twice"
    assert members.state.stable == {tp: 5}
    assert members.state.meta["founding"] == founding
    assert members.events.count("recover") == 1


def test_a_half_that_nobody_proves_ends_the_query_after_a_session(members: Group, tp: TopicPartition) -> None:
    unmirrored = Unmirrored(members.log())
    lower = members.service(Assigned({tp: (cuts(2)[0],)}, pinned=True), log=unmirrored)
    lower.first_positions()
    end = batch(lower, StreamOffset(members.name))
    members.lose_everything()
    with pytest.raises(StateLostError, match=f"{tp.topic}-0"):
        lower.next_offset(end, UNLIMITED)


def test_a_member_of_an_earlier_group_does_not_write_the_mirror(members: Group, tp: TopicPartition) -> None:
    service = members.started(subscribed(tp))
    assert service._turns.once(Mirror((tp,), (tp.topic,), service.state.life.founding)) is True
    assert service._turns.once(Mirror((tp,), (tp.topic,), "ff")) is None
