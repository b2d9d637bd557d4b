"""Dead letters go back to their topic as they were, each once, however often the redrive runs or is killed."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from coordinator.errors import ConflictingOptionsError, GroupBusyError, UnknownTopicError
from coordinator.kafka.log import KafkaLog
from coordinator.kafka.producer import Outgoing
from coordinator.kafka.transactions import TransactionalProducer
from coordinator.tools.operations import redrive as module
from coordinator.tools.operations import redrive_plan
from coordinator.tools.operations.redrive import REDRIVEN, Redrive, RedriveRequest
from coordinator.tools.operations.redrive_plan import RedrivePlan
from coordinator.values.dead_letter import NO_TIME, DeadLetter, SourceRecord
from coordinator.values.subscription import TopicPartition
from kafka_logs import kafka_log
from topics import Kafka, Record
from written_records import consumed

T0 = 1_700_000_000_000


@dataclass(frozen=True)
class World:
    """A topic and its dead-letter topic."""

    kafka: Kafka
    log: KafkaLog
    topic: str
    dead: str
    group: str

    def die(self, *offsets: int, key: bytes | None = b"k", partition: int = 0, **fields: str) -> None:
        """Write dead letters of records at these offsets."""
        records = [
            SourceRecord(TopicPartition(fields.get("topic", self.topic), partition), offset, T0, key, b"%d" % offset)
            for offset in offsets
        ]
        letters = [DeadLetter(record, fields.get("group", self.group), "E", "", 1) for record in records]
        written = [Record(x.record.value, x.record.key, 0, x.headers) for x in letters]  # type: ignore[arg-type]
        self.kafka.produce(self.dead, written)

    def redrive(self, key: bytes | None = None) -> Redrive:
        arguments = {"bootstrap_servers": self.kafka.bootstrap}
        return Redrive(arguments, self.log, RedriveRequest(self.group, self.topic, self.dead, key), lambda *_: None)

    def redriven(self) -> list[int]:
        """The offsets that the records of the topic once had, as a reader with read_committed sees them.

        Every transaction must have been ended.
        """
        self.kafka.await_markers(self.topic)
        found = consumed(self.kafka.bootstrap, self.topic, isolation="read_committed")
        return [int(r.value) for r in found if r.headers and r.headers[-1][0] == REDRIVEN]


@pytest.fixture
def world(kafka: Kafka, group: str) -> Iterator[World]:
    """Empty topics: two partitions of orders, one of dead letters."""
    with closing(kafka_log(kafka.bootstrap)) as log:
        yield World(kafka, log, kafka.create_topic("orders", 2), kafka.create_topic("orders-dead"), group)


def offsets(planned: RedrivePlan) -> list[int]:
    return [letter.source_offset for letter in planned.letters]


def test_a_record_goes_back_as_it_was_to_its_partition_and_says_where_it_was(world: World) -> None:
    record = SourceRecord(TopicPartition(world.topic, 1), 17, T0, b"k", None, (("h", b"1"), ("h", b"2")))
    letter = DeadLetter(record, world.group, "E", "m", 5)
    world.kafka.produce(world.dead, [Record(None, b"k", 0, letter.headers)])  # type: ignore[arg-type]

    world.redrive().execute()

    (found,) = consumed(world.kafka.bootstrap, world.topic)
    assert (found.partition, found.key, found.value, found.timestamp) == (1, b"k", None, T0)
    assert found.headers == [("h", b"1"), ("h", b"2"), (REDRIVEN, f"{world.topic}-1@17".encode())]


def test_a_record_without_a_time_gets_one() -> None:
    record = SourceRecord(TopicPartition("orders", 0), 1, NO_TIME, None, None, (("h", None),))
    made = module.outgoing(DeadLetter(record, "g", "E", "m", 1), "it")
    assert made == Outgoing(record.tp, None, None, (("h", None), (REDRIVEN, b"orders-0@1")), None, "it")


def test_a_plan_writes_nothing(world: World) -> None:
    world.die(1, 2)
    redrive = world.redrive()
    assert offsets(redrive.plan()) == [1, 2]
    assert redrive.order(redrive.plan()).keys[TopicPartition(world.topic, 0), b"k"].late == 0
    assert consumed(world.kafka.bootstrap, world.topic) == []
    assert world.log.group_offsets(redrive._wanted.kafka_group) == {}


def test_run_again_it_goes_on_behind_what_it_has_redriven(world: World) -> None:
    world.die(1, 2)
    assert offsets(world.redrive().execute()) == [1, 2]
    assert offsets(world.redrive().execute()) == []
    world.die(3)
    assert offsets(world.redrive().execute()) == [3]
    assert world.redriven() == [1, 2, 3]


def test_other_groups_other_topics_and_other_records_stay(world: World) -> None:
    world.die(1, group="other")
    world.die(2, topic="returns")
    world.kafka.produce(world.dead, [Record(b"plain")])
    world.die(3)
    planned = world.redrive().execute()
    assert (offsets(planned), planned.others, planned.strange) == ([3], 2, 1)
    other = replace(world, group="other")
    assert offsets(other.redrive().execute()) == [1], "another group has a position of its own"


def test_one_key_first_and_then_the_others_each_once(world: World) -> None:
    for offset, key in enumerate((b"a", b"b", b"a", b"c", b"b", b"a")):
        world.die(offset, key=key)
    assert offsets(world.redrive(b"b").execute()) == [1, 4]
    assert offsets(world.redrive(b"b").execute()) == []
    assert offsets(world.redrive(b"a").execute()) == [0, 2, 5]
    world.die(6, key=b"a")
    assert offsets(world.redrive().execute()) == [3, 6]
    assert world.redriven() == [1, 4, 0, 2, 5, 3, 6]


def test_killed_between_two_transactions_it_goes_on_where_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 3)
    world.die(*range(10))

    def killed(what: str, number: int, of: int) -> None:
        if what.startswith("redriving") and number == 6:
            raise KeyboardInterrupt

    interrupted = world.redrive()
    interrupted._tell = killed
    with pytest.raises(KeyboardInterrupt):
        interrupted.execute()

    assert offsets(world.redrive().execute()) == [6, 7, 8, 9]
    assert world.redriven() == [*range(10)]


def test_killed_within_a_transaction_its_records_are_aborted_and_sent_again(world: World) -> None:
    world.die(*range(4))
    wanted = world.redrive()._wanted
    arguments = {"bootstrap_servers": world.kafka.bootstrap}
    killed = TransactionalProducer(arguments, world.topic, wanted.transactional_id)
    killed.kafka.begin_transaction()
    killed.send(Outgoing(TopicPartition(world.topic, 0), b"k", b"0", ((REDRIVEN, b"x"),), None, ""))
    killed.flush()

    assert consumed(world.kafka.bootstrap, world.topic, isolation="read_committed") == []
    world.redrive().execute()
    assert world.redriven() == [0, 1, 2, 3]
    killed.send(Outgoing(TopicPartition(world.topic, 0), b"k", b"1", ((REDRIVEN, b"x"),), None, ""))
    with pytest.raises(GroupBusyError, match="another redrive"):
        killed.flush()
    killed.close()
    assert world.redriven() == [0, 1, 2, 3], "it was fenced"


def test_what_cannot_be_kept_in_order_is_counted_for_each_key(world: World) -> None:
    world.kafka.produce(
        world.topic, [Record(b"%d" % n, key, 0) for n, key in enumerate((b"a", b"b", b"a", b"a", b"b"))]
    )
    world.die(0, 2, key=b"a")  # a record of the key after both
    world.die(4, key=b"b")  # none after it
    world.die(9, key=None)
    redrive = world.redrive()
    order = redrive.order(redrive.plan())
    found = {key: (of_key.late, of_key.later) for (_, key), of_key in order.keys.items()}
    assert found == {b"a": (2, 1), b"b": (0, 0)}


def test_a_partition_that_the_topic_has_no_longer_is_named(world: World) -> None:
    world.die(1, partition=7)
    with pytest.raises(UnknownTopicError, match=f"no partition {world.topic}-7"):
        world.redrive().plan()
    with pytest.raises(UnknownTopicError, match=f"no partition {world.topic}-7"):
        world.redrive().execute()


def test_too_many_gaps_are_refused_before_the_first_record(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive_plan, "MOST_TEXT", 5)
    for offset, key in enumerate((b"b", b"a", b"b", b"a")):
        world.die(offset, key=key)
    with pytest.raises(ConflictingOptionsError, match="2 gaps"):
        world.redrive(b"a").execute()
    assert consumed(world.kafka.bootstrap, world.topic) == []
