"""Options of the group in Spark queries: the effect of each shows that it reaches the coordinator."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from coordinator.tools.operations.views import view
from driver_output import beside_the_driver
from group_services import Group
from streams import Stream, eventually, stable, state
from topics import Kafka, Record

KEYS, HOUR_MS = 40, 3_600_000
HOUR_AGO_MS = time.time_ns() // 1_000_000 - HOUR_MS

ASSIGNOR = """
from dataclasses import replace

from coordinator.assignment.assignors.grouped import Grouped
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition


class Desk:
    '''One topic goes to the labelled member, or else to the largest one. The others are grouped.'''

    name, version = "desk", 1

    def assign(self, members, partitions, previous):
        others = {{topic: count for topic, count in partitions.items() if topic != {topic!r}}}
        working = [replace(m, topics=m.topics & others.keys()) for m in members]
        made = {{m: dict(owned) for m, owned in Grouped().assign(working, others, previous).items()}}
        labelled = [m for m in members if m.metadata.get("label.at") == "desk"]
        chosen = labelled or [max(members, key=lambda m: m.capacity)]
        made[chosen[0].member][TopicPartition({topic!r}, 0)] = (WHOLE,)
        return made
"""


def of_partition(topic: str, partition: int, timestamp_ms: int = HOUR_AGO_MS) -> list[Record]:
    """Records with many keys, whose value names their partition."""
    value = f"{topic.partition('-')[0]} {partition}".encode()
    return [Record(value, b"key-%d" % i, partition, timestamp_ms=timestamp_ms) for i in range(KEYS)]


def partitions_of_batches(stream: Stream) -> list[list[str]]:
    """The partitions that each batch read, in the order of the batches."""
    found = {batch: {d.value for d in stream.sink.received if d.batch == batch} for batch in stream.sink.batches}
    return [sorted(filter(None, values)) for values in found.values() if values]


@contextmanager
def running(*queries: StreamingQuery) -> Iterator[None]:
    """Stop the queries after the body of `with`; none of them may have failed."""
    try:
        yield
        assert [query.exception() for query in queries] == [None] * len(queries)
    finally:
        for query in queries:
            query.stop()


def settled(stream: Stream, members: int) -> bool:
    """Whether so many members own what is assigned to them."""
    if not stable(stream):
        return False
    seen = view(stream.options["group"], state(stream))
    return len(seen.members) == members and seen.state == "Stable"


@pytest.fixture
def orders(kafka: Kafka) -> str:
    """A topic of three partitions."""
    return kafka.create_topic("orders", partitions=3)


@pytest.fixture
def desk(kafka: Kafka, stream: Stream, orders: str) -> str:
    """A topic that the user's assignor of the stream treats apart."""
    topic = kafka.create_topic("desk")
    beside_the_driver(stream.spark, "desk_assignor", ASSIGNOR.format(topic=topic))
    stream.options |= {"subscribe": f"{orders},{topic}", "allowSeveralQueries": "true"}
    stream.options["assignor"] = "desk_assignor:Desk"
    return topic


def test_assignor_labels_capacity_and_sharing_decide_the_owners(
    kafka: Kafka, stream: Stream, orders: str, desk: str, tmp_path: Path
) -> None:
    """Of three partitions, three quarters are two whole ones for a member that takes no parts."""
    whole, labelled = (Stream(stream.spark, stream.options, tmp_path / name) for name in ("whole", "labelled"))
    first = whole.start(None, capacity="3", sharing="partitions")
    second = labelled.start(None, capacity="1", memberLabels="team=core,at=desk")
    sinks = whole.sink, labelled.sink
    with running(first, second):
        eventually(lambda: settled(stream, 2), "both own what is assigned to them")
        for partition in range(3):
            kafka.produce(orders, of_partition(orders, partition))
        kafka.produce(desk, of_partition(desk, 0))
        eventually(lambda: sum(len(sink.received) for sink in sinks) == 4 * KEYS, "all records arrive")
    by_capacity, by_label = ({d.value for d in sink.received} for sink in sinks)
    assert "desk 0" in by_label
    assert (len(by_capacity), len(by_label)) == (2, 2), "no partition of `orders` is shared"


def test_state_loss_grace_and_lead_decide_the_batches(members: Group, kafka: Kafka, stream: Stream) -> None:
    """Redis loses the group while a topic grows: Kafka's own group proves no position of the new partition."""
    grown, timed = kafka.create_topic("grown"), kafka.create_topic("timed", partitions=2)
    stream.options |= {"subscribe": f"{grown},{timed}", "sessionTimeout": "1000"}
    stream.run()
    members.lose_everything()
    kafka.add_partitions(grown, 2)
    for partition in range(2):
        kafka.produce(grown, of_partition(grown, partition))
        kafka.produce(timed, of_partition(timed, partition, HOUR_AGO_MS + partition * HOUR_MS))
    stream.run(onStateLoss="earliest", partitionGrowthGrace="0", maxLaneLead="1m")
    assert partitions_of_batches(stream) == [["grown 0", "grown 1", "timed 0"], ["timed 1"]]
