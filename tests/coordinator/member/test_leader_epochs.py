"""Logs that were cut and grew again; members on real servers, without Spark (rule: leader-epoch-facts).

Of a real broker alone no log can be cut; what it says of leader epochs is asked here, and a log `Elected` puts an
election in front of it.
"""

from collections.abc import Mapping

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import DataLossError, StateFormatError
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.member.standalone import Standalone
from coordinator.plan.planning import Cutting
from coordinator.progress.data_loss import Cut, cuts, extents
from coordinator.progress.leader_epochs import Extent, Extents, extents_of, leader_epochs, parsed
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.offset_spec import Earliest
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Assigned, Bounds, TopicPartition
from group_services import UNLIMITED, Group, batch, batches, read, records, run, subscribed
from kafka_logs import Elected, kafka_log
from streams import keyed
from topics import Kafka

pytestmark = pytest.mark.usefixtures("short_sessions")

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
IDS = {"orders": "id-1"}


@pytest.mark.parametrize(
    ("known", "ends", "expected"),
    [
        pytest.param({TP: Extent(3, 9)}, {TP: 9}, {}, id="a log that has all that was read lost nothing"),
        pytest.param({TP: Extent(3, 9)}, {TP: 20}, {}, id="an epoch that wrote more than was read lost nothing"),
        pytest.param({TP: Extent(3, 9)}, {TP: 6}, {TP: Cut(TP, 9, 6, 3)}, id="an epoch that ends before is a cut"),
        pytest.param({TP: Extent(3, 9)}, {}, {}, id="an epoch without a known end shows no cut"),
        pytest.param(
            {TP: Extent(3, 9), OTHER: Extent(1, 4)},
            {TP: 9, OTHER: 0},
            {OTHER: Cut(OTHER, 4, 0, 1)},
            id="each alone",
        ),
    ],
)
def test_cuts(known: Extents, ends: Mapping[TopicPartition, int], expected: Mapping[TopicPartition, Cut]) -> None:
    assert cuts(known, ends) == expected


PLANNED = StreamOffset(
    "g", "m", 7, IDS, {TP: (Lane(WHOLE, "ab.1", 5, (OffsetRange(5, 9),)),)}, leader_epochs={TP: 3, OTHER: 3}
)


@pytest.mark.parametrize(
    ("reset", "topic_ids", "expected"),
    [
        pytest.param(7, IDS, {TP: Extent(3, 9)}, id="a batch proves the ends of its lanes, under its leader epoch"),
        pytest.param(8, IDS, {}, id="a batch of an older reset epoch is no fact"),
        pytest.param(7, {"orders": "id-2"}, {}, id="a batch of a topic that was re-created is no fact"),
    ],
)
def test_a_batch_proves_the_extent_of_its_logs(reset: int, topic_ids: Mapping[str, str], expected: Extents) -> None:
    assert extents(PLANNED, reset, topic_ids) == expected


@pytest.mark.parametrize(
    ("reset", "topic_ids", "expected"),
    [
        pytest.param(7, IDS, {TP: Extent(3, 9)}, id="a fact in Redis is read as it was written"),
        pytest.param(8, IDS, {}, id="of an older reset epoch it is no fact"),
        pytest.param(7, {"orders": "id-2"}, {}, id="of a topic that was re-created it is no fact"),
    ],
)
def test_redis_returns_the_stored_extent_of_a_log(reset: int, topic_ids: Mapping[str, str], expected: Extents) -> None:
    assert parsed({TP: Extent(3, 9).text(7, "id-1")}, reset, topic_ids) == expected


def test_a_damaged_text_in_redis_is_named() -> None:
    with pytest.raises(StateFormatError, match="orders-0"):
        parsed({TP: "three"}, 0, IDS)


def test_an_answer_without_a_leader_epoch_proves_nothing() -> None:
    assert extents_of({TP: Bounds(0, 9), OTHER: Bounds(0, 9, epoch=2)}) == {OTHER: Extent(2, 9)}


def test_who_wrote_records_beyond_the_last_known_end_is_not_known() -> None:
    """The leader is silent, others have read on. To take its last known epoch for theirs would be a false fact."""
    bounds = {TP: Bounds(0, 9, epoch=2), OTHER: Bounds(0, 9, epoch=2)}
    assert leader_epochs({TP: 9, OTHER: 10}, bounds) == {TP: 2}


def test_a_broker_returns_the_end_of_a_leader_epoch(kafka: Kafka) -> None:
    log, tp = kafka_log(kafka.bootstrap), TopicPartition(kafka.create_topic(partitions=2), 0)
    other = TopicPartition(tp.topic, 1)
    kafka.produce(tp.topic, keyed(5))
    ends = {p: b.end for p, b in log.bounds([tp, other]).items()}
    assert {b.epoch for b in log.bounds([tp, other]).values()} == {0}
    assert log.ends_of_epochs({tp: 0, other: 0}) == ends
    assert log.ends_of_epochs({tp: 1}) == {}, "an epoch that has not been yet"
    log.close()


@pytest.fixture
def elected(members: Group) -> Elected:
    return Elected(members.log())


def member(members: Group, elected: Elected, tp: TopicPartition, *, fail_on_data_loss: bool = True) -> Service:
    """A member in a process of its own, with positions."""
    return members.started(subscribed(tp), log=elected, fail_on_data_loss=fail_on_data_loss)


def kept(members: Group, tp: TopicPartition) -> str | None:
    text = members.redis.hget(GroupKeys(members.name).epoch(tp.topic), str(tp.partition))
    return str(text) if text is not None else None


def test_an_election_that_keeps_all_that_was_read_is_no_loss(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    service = member(members, elected, tp)
    end = batch(service, StreamOffset(members.name))
    assert end.leader_epochs == {tp: 0}
    elected.elect(tp, at=5)
    members.kafka.produce(tp.topic, keyed(3))
    second = batch(service, end)
    assert (records(second), second.leader_epochs) == (read(tp, 5, 8), {tp: 1})
    topic_id = members.state.topics[tp.topic].id
    assert kept(members, tp) == f"1@8 reset=0 topic={topic_id}"
    service.next_offset(second, UNLIMITED)
    service.leave()
    founding = members.state.meta["founding"]
    text = f"coop-kafka v1 reset=0 topic={topic_id} epoch=1 commit=true fetch=true founding={founding}"
    assert elected.group_offsets(members.name)[tp] == (8, text)


def test_a_log_that_was_cut_and_has_grown_again_is_a_loss_also_for_the_next_life(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    service = member(members, elected, tp)
    end = batch(service, StreamOffset(members.name))
    elected.elect(tp, at=3)
    members.kafka.produce(tp.topic, keyed(3))
    with pytest.raises(DataLossError, match=f"{tp}: records 3-4.*leader epoch 0"):
        service.next_offset(end, UNLIMITED)
    service.leave()
    with pytest.raises(DataLossError, match="records 3-4"):
        member(members, elected, tp).next_offset(end, UNLIMITED)
    again = member(members, elected, tp, fail_on_data_loss=False)
    again.set_targets()
    assert records(*batches(again, end)) == read(tp, 3, 8), "on request it is read again from where it was cut"
    assert members.events.count("loss") == 1


def test_a_query_with_a_new_checkpoint_finds_by_redis_that_the_log_was_cut(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    run(members, subscribed(tp))
    elected.elect(tp, at=3)
    members.kafka.produce(tp.topic, keyed(3))
    with pytest.raises(DataLossError, match="records 3-4"):
        member(members, elected, tp).next_offset(StreamOffset(members.name), UNLIMITED)


def test_after_a_loss_of_redis_the_mirror_proves_that_the_log_was_cut(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    run(members, subscribed(tp))
    members.lose_everything()
    elected.elect(tp, at=3)
    members.kafka.produce(tp.topic, keyed(3))
    with pytest.raises(DataLossError, match="records 3-4"):
        member(members, elected, tp).next_offset(StreamOffset(members.name), UNLIMITED)


def test_a_cut_above_all_positions_is_no_loss(members: Group, elected: Elected, tp: TopicPartition) -> None:
    service = member(members, elected, tp)
    end = service.next_offset(StreamOffset(members.name), Limits(max_offsets=2))
    assert end is not None
    service.tasks(end)
    assert kept(members, tp) == f"0@5 reset=0 topic={members.state.topics[tp.topic].id}"
    elected.elect(tp, at=3)
    assert records(batch(service, end)) == read(tp, 2, 5)


def test_standalone_knows_it_from_the_checkpoint(kafka: Kafka, tp: TopicPartition, members: Group) -> None:
    elected, given = Elected(members.log()), Assigned({tp: (WHOLE,)})

    def query(*, fail_on_data_loss: bool) -> Standalone:
        return Standalone(
            GroupSettings("", fail_on_data_loss=fail_on_data_loss),
            given,
            Earliest(),
            Cutting(2),
            log=elected,
            clock=members.clock,
        )

    first = query(fail_on_data_loss=True)
    end = first.next_offset(first.initial(), UNLIMITED)
    assert end is not None
    elected.elect(tp, at=3)
    kafka.produce(tp.topic, keyed(3))
    with pytest.raises(DataLossError, match="records 3-4"):
        first.next_offset(end, UNLIMITED)
    on = query(fail_on_data_loss=False).next_offset(end, UNLIMITED)
    assert on is not None
    assert records(on) == read(tp, 3, 8)
