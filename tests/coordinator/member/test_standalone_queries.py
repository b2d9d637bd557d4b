"""Queries without a group on a real broker: positions live in the offsets alone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import CheckpointMismatchError, DataLossError
from coordinator.member.limits import Limits
from coordinator.member.standalone import Standalone
from coordinator.plan.planning import Cutting
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.offset_spec import AtOffsets, Earliest, Latest, OffsetSpec
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import Assigned, TopicPartition
from group_services import TestClock, records, slices_read, whole
from kafka_logs import delete_records, kafka_log
from streams import keyed
from topics import Kafka, Record

LOWER, UPPER = cuts(2)


UNLIMITED = Limits()


@pytest.fixture
def tp(kafka: Kafka) -> TopicPartition:
    """The one partition of a new topic with ten records."""
    topic = kafka.create_topic("standalone")
    kafka.produce(topic, keyed(10))
    return TopicPartition(topic, 0)


Make = Callable[..., Standalone]


@pytest.fixture
def standalone(kafka: Kafka, clock: TestClock) -> Iterator[Make]:
    """Makes queries, each as a new process would."""
    with ExitStack() as stack:

        def make(
            assigned: Assigned, starting: OffsetSpec | None = None, *, fail_on_data_loss: bool = True
        ) -> Standalone:
            log = stack.enter_context(closing(kafka_log(kafka.bootstrap, fail_on_data_loss=fail_on_data_loss)))
            return Standalone(
                GroupSettings("", fail_on_data_loss=fail_on_data_loss),
                assigned,
                starting or Earliest(),
                Cutting(2),
                log=log,
                clock=clock,
            )

        yield make


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


def following(query: Standalone, start: StreamOffset) -> StreamOffset:
    """The next offset, which must be there; no other member narrows it."""
    end = query.next_offset(start, UNLIMITED)
    assert end is not None
    assert slices_read(query, end) == tuple(sorted(end.slices))
    return end


def read(tp: TopicPartition, first: int, until: int) -> set[tuple[str, int]]:
    return {(tp.topic, offset) for offset in range(first, until)}


def test_every_batch_begins_where_the_last_one_ended(kafka: Kafka, standalone: Make, tp: TopicPartition) -> None:
    query = standalone(whole(tp))
    first = following(query, query.initial())
    assert records(first) == read(tp, 0, 10)
    assert query.next_offset(first, UNLIMITED) is None
    kafka.produce(tp.topic, keyed(3))
    assert records(following(query, first)) == read(tp, 10, 13)
    assert records(following(standalone(whole(tp)), first)) == read(tp, 10, 13)
    assert query.log_ends() == {tp: 13}


def test_latest_is_one_moment(kafka: Kafka, standalone: Make, tp: TopicPartition) -> None:
    query = standalone(whole(tp), Latest())
    start = query.initial()
    kafka.produce(tp.topic, keyed(3))
    assert query.initial() == start
    assert records(following(query, start)) == read(tp, 10, 13)


def test_starting_offsets_are_those_of_each_partition(kafka: Kafka, standalone: Make) -> None:
    topic = kafka.create_topic("two", partitions=2)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    kafka.produce(topic, [Record(b"v", partition=p) for p in (0, 0, 1, 1, 1)])
    query = standalone(whole(one, two), AtOffsets({one: -2, two: -1}))
    assert {tp: lane.position for tp, lane in query.initial()} == {one: 0, two: 3}
    assert {tp.partition for tp, lane in following(query, query.initial()) if lane.offsets} == {0}


def test_key_ranges_are_read_and_the_rest_of_a_partition_is_not(standalone: Make, tp: TopicPartition) -> None:
    query = standalone(Assigned({tp: (UPPER,)}))
    end = following(query, query.initial())
    assert {lane.hashes.lo >= UPPER.lo for _, lane in end} == {True}
    assert sum(lane.hashes.size for _, lane in end) == UPPER.size


def test_a_partition_without_key_ranges_is_not_read_and_stops_nothing(kafka: Kafka, standalone: Make) -> None:
    topic = kafka.create_topic("two", partitions=2)
    kafka.produce(topic, keyed(20))
    query = standalone(Assigned({TopicPartition(topic, 0): (WHOLE,), TopicPartition(topic, 1): ()}))
    assert {s.partition for s in following(query, query.initial()).slices} == {0}


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((UPPER,), id="the other half, of the same size"),
        pytest.param((WHOLE,), id="more keys than before"),
        pytest.param((cuts(4)[0],), id="fewer keys than before"),
    ],
)
def test_changed_key_ranges_are_refused(standalone: Make, tp: TopicPartition, others: tuple[HashRange, ...]) -> None:
    query = standalone(Assigned({tp: (LOWER,)}))
    end = following(query, query.initial())
    changed = standalone(Assigned({tp: others}))
    with pytest.raises(CheckpointMismatchError, match="key ranges"):
        changed.next_offset(end, UNLIMITED)
    with pytest.raises(CheckpointMismatchError, match="key ranges"):
        changed.tasks(end)


def test_other_partitions_and_groups_are_refused(kafka: Kafka, standalone: Make, tp: TopicPartition) -> None:
    other = TopicPartition(kafka.create_topic("other"), 0)
    start = standalone(whole(tp)).initial()
    for query in (standalone(whole(other)), standalone(whole(tp, other))):
        with pytest.raises(CheckpointMismatchError, match="other partitions"):
            query.next_offset(start, UNLIMITED)
    with pytest.raises(CheckpointMismatchError, match="group 'g'"):
        standalone(whole(tp)).next_offset(StreamOffset("g"), UNLIMITED)


def test_the_same_keys_in_other_ranges_are_the_same(standalone: Make, tp: TopicPartition) -> None:
    start = standalone(Assigned({tp: (LOWER, UPPER)})).initial()
    assert records(following(standalone(whole(tp)), start)) == read(tp, 0, 10)


def test_a_recreated_topic_is_a_data_loss_by_default(kafka: Kafka, standalone: Make, tp: TopicPartition) -> None:
    query = standalone(whole(tp))
    end = following(query, query.initial())
    kafka.recreate_topic(tp.topic)
    kafka.produce(tp.topic, keyed(20))  # so that every position is within the new log
    with pytest.raises(DataLossError, match="created again"):
        standalone(whole(tp)).next_offset(end, UNLIMITED)
    with pytest.raises(DataLossError, match="created again"):
        standalone(whole(tp)).tasks(end)


def test_a_recreated_topic_is_read_from_its_beginning_on_request(
    kafka: Kafka, standalone: Make, clock: TestClock, tp: TopicPartition
) -> None:
    query = standalone(whole(tp), fail_on_data_loss=False)
    end = query.next_offset(query.initial(), UNLIMITED)
    assert end is not None
    kafka.recreate_topic(tp.topic)
    kafka.produce(tp.topic, keyed(4))
    clock.skip(2_000)
    assert slices_read(query, end) == ()
    assert records(following(query, end)) == read(tp, 0, 4)


def test_aged_records_are_a_data_loss_by_default_and_skipped_on_request(
    kafka: Kafka, standalone: Make, tp: TopicPartition
) -> None:
    start = standalone(whole(tp)).initial()
    delete_records(kafka, tp, 6)
    with pytest.raises(DataLossError, match="records 0-5"):
        standalone(whole(tp)).next_offset(start, UNLIMITED)
    assert records(following(standalone(whole(tp), fail_on_data_loss=False), start)) == read(tp, 6, 10)


def test_available_now_ends_where_the_log_ended(kafka: Kafka, standalone: Make, tp: TopicPartition) -> None:
    query = standalone(whole(tp))
    start = query.initial()
    query.set_targets()
    kafka.produce(tp.topic, keyed(5))
    end = following(query, start)
    assert records(end) == read(tp, 0, 10)
    assert query.next_offset(end, UNLIMITED) is None
    again = standalone(whole(tp))
    again.set_targets()
    assert records(following(again, end)) == read(tp, 10, 15)


def test_available_now_ends_when_its_topic_was_recreated_shorter(
    kafka: Kafka, standalone: Make, clock: TestClock, tp: TopicPartition
) -> None:
    query = standalone(whole(tp), fail_on_data_loss=False)
    query.set_targets()
    end = following(query, query.initial())
    kafka.recreate_topic(tp.topic)
    kafka.produce(tp.topic, keyed(4))
    clock.skip(2_000)
    last = following(query, end)
    assert records(last) == read(tp, 0, 4)
    assert query.next_offset(last, UNLIMITED) is None


def test_limits_bound_a_batch(standalone: Make, tp: TopicPartition) -> None:
    query = standalone(whole(tp))
    end = query.next_offset(query.initial(), Limits(max_offsets=4))
    assert end is not None
    assert records(end) == read(tp, 0, 4)
    assert query.next_offset(end, Limits(min_offsets=7)) is None
    assert query.next_offset(end, Limits(min_offsets=6)) is not None
