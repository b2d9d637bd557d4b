"""Brokers that die or freeze, beside Spark's own source in one run: the longest gap of each partition in the sink.

A record is readable once all copies that count have it, and a broker that is away counts until Kafka notices. So a
plain consumer reads beside both: no query can have a shorter gap.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from confluent_kafka import OFFSET_END, Consumer
from confluent_kafka import TopicPartition as Plain
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import servers
from bench.feed import Feed, keys
from bench.streaming import by_default, until
from bench.table import Result, duration
from bench.world import World
from coordinator.values.subscription import TopicPartition

PARTITIONS, RATE, KEYS = 11, 300, 1_000
EVERY = "500 milliseconds"
SETTLED_S, AFTER_S, PATIENCE_S = 10, 20, 120
SLOTS = 24
"""Spark's tasks that wait for a broker take no slot from ours."""

LOST_NODE = 1
"""The broker that dies or freezes first."""

ONE = {"min.insync.replicas": "1"}


@dataclass(slots=True)
class Sink:
    """Notes when each record arrived."""

    arrived: list[tuple[TopicPartition, int, float, bytes]] = field(default_factory=list)  # offset, time and key

    def take(self, batch: DataFrame, _: int) -> None:
        """See `foreachBatch`."""
        rows = batch.select("topic", "partition", "offset", "key").collect()
        now = time.monotonic()
        self.arrived += [(TopicPartition(row.topic, row.partition), row.offset, now, bytes(row.key)) for row in rows]

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions with a record."""
        return {tp for tp, *_ in self.arrived}

    def gaps(self, start: float, end: float) -> dict[TopicPartition, float]:
        """The longest time without a record of each partition, between these times."""
        times = {tp: [start, end] for tp in self.partitions}
        for tp, _, at, _ in self.arrived:
            if start < at < end:
                times[tp].append(at)
        return {tp: max(later - at for at, later in pairwise(sorted(of))) for tp, of in times.items()}

    @property
    def wrong(self) -> str:
        """How many records are missing in their partition, came twice, or came after a later one of their key.

        Of a record that came twice, the first time counts.
        """
        offsets: dict[TopicPartition, set[int]] = {tp: set() for tp in self.partitions}
        latest, twice, late = dict[tuple[TopicPartition, bytes], int](), 0, 0
        for tp, offset, _, key in self.arrived:
            if offset in offsets[tp]:
                twice += 1
                continue
            offsets[tp].add(offset)
            late += offset < latest.get((tp, key), 0)
            latest[tp, key] = max(offset, latest.get((tp, key), 0))
        lost = sum(len(set(range(min(of), max(of) + 1)) - of) for of in offsets.values())
        return f"{lost} lost, {twice} twice, {late} out of order"


@contextmanager
def _plainly_read(bootstrap: str, partitions: Mapping[str, int], sink: Sink) -> Iterator[None]:
    """A plain consumer reads these numbers of partitions until the block ends."""
    quick = {"socket.timeout.ms": 2_000, "topic.metadata.refresh.interval.ms": 1_000}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "plain", "enable.auto.commit": False, **quick})
    consumer.assign([Plain(topic, p, OFFSET_END) for topic, count in partitions.items() for p in range(count)])
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            found = [m for m in consumer.consume(500, 0.05) if m.error() is None]
            now = time.monotonic()
            sink.arrived += [
                (TopicPartition(str(m.topic()), m.partition() or 0), m.offset() or 0, now, m.key() or b"")
                for m in found
            ]

    thread = threading.Thread(target=read, name="plain", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        consumer.close()


Fault = Callable[[servers.Brokers], None]


def _away(nodes: Sequence[int], seconds: float, brokers: servers.Brokers) -> None:
    for node in nodes:
        brokers.kill(node)
    time.sleep(seconds)
    for node in nodes:
        brokers.start(node)


def _freeze(brokers: servers.Brokers) -> None:
    brokers.freeze(LOST_NODE)
    time.sleep(40)
    brokers.thaw(LOST_NODE)


def _rolling(brokers: servers.Brokers) -> None:
    for node in (1, 2, 3):
        brokers.kill(node)
        time.sleep(15)
        brokers.start(node)
        brokers.wait()
        time.sleep(10)


FAULTS: dict[str, Fault] = {
    "one broker of three is killed for 40 s": partial(_away, (LOST_NODE,), 40),
    "one broker is frozen for 40 s": _freeze,
    "a partition has no leader for 2 min": partial(_away, (LOST_NODE,), 120),
    "all are killed and started in turns": _rolling,
    "two of three are away for 40 s": partial(_away, (1, 2), 40),  # without a quorum no leader is elected
    "all are away for 2 min": partial(_away, (1, 2, 3), 120),
}


def p18(world: World) -> Iterator[Result]:
    """Two queries on one topic of three brokers: ours and Spark's."""
    folder = world.folder / "brokers"
    folder.mkdir()
    with ExitStack() as stack:
        brokers = servers.start_brokers(folder)
        stack.callback(brokers.stop)
        stack.enter_context(world.widened(SLOTS))
        for what, fault in list(FAULTS.items())[: 1 if world.quick else None]:
            yield from _measured(world, brokers, what, fault)


def _measured(world: World, brokers: servers.Brokers, what: str, fault: Fault) -> Iterator[Result]:
    topics = _topics(brokers.bootstrap)
    of_both = {"kafka.bootstrap.servers": brokers.bootstrap, "subscribe": ",".join(topics), "startingOffsets": "latest"}
    sides = {"coop-kafka": {**by_default(world, topics[0]), **of_both}, "kafka": of_both}
    sinks, queries = {name: Sink() for name in sides}, dict[str, StreamingQuery]()
    plain, partitions = Sink(), dict(zip(topics, (PARTITIONS, 1), strict=True))
    with _plainly_read(brokers.bootstrap, partitions, plain), ExitStack() as stack, ExitStack() as feeding:
        for topic, count in partitions.items():
            feed = Feed(brokers.bootstrap, topic, keys(KEYS, 0), RATE * count / (PARTITIONS + 1))
            feeding.enter_context(feed.running())
        for name, options in sides.items():
            rows = world.spark.readStream.format(name).options(**options).load()
            writer = rows.writeStream.foreachBatch(sinks[name].take).option("checkpointLocation", world.checkpoint())
            queries[name] = writer.trigger(processingTime=EVERY).start()
            stack.callback(queries[name].stop)
        until(lambda: all(len(sink.partitions) > PARTITIONS for sink in sinks.values()), queries["kafka"])
        time.sleep(SETTLED_S)
        led = _led_by(brokers.bootstrap, topics, LOST_NODE)
        start = time.monotonic()
        fault(brokers)
        brokers.wait()
        time.sleep(AFTER_S)
        end = time.monotonic()
        feeding.close()
        _drained(sinks, queries)
    failed = {name: query.exception() for name, query in queries.items()}
    notes = [
        f"{name}: {sinks[name].wrong}{f', ended by {failed[name]}'[:200] if failed[name] else ''}" for name in sides
    ]
    alone = {tp for tp in led if tp.topic == topics[1]}
    rest = sinks["kafka"].partitions - led
    for which, of in (("its partitions", led - alone), ("its partition without a copy", alone), ("all others", rest)):
        ours, theirs, least = (
            max(sink.gaps(start, end)[tp] for tp in of) for sink in (sinks["coop-kafka"], sinks["kafka"], plain)
        )
        work = f"{what}: the longest gap of {which}"
        note = "; ".join([f"a plain consumer: {duration(least)}", *notes])
        yield Result("P18", work, "its defaults", duration(ours), duration(theirs), ours / theirs, 1.0, note)


def _drained(sinks: Mapping[str, Sink], queries: Mapping[str, StreamingQuery]) -> None:
    """Wait until both have all records, unless one has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and all(query.isActive for query in queries.values()):
        ours, theirs = ({(tp, offset) for tp, offset, *_ in sink.arrived} for sink in sinks.values())
        if ours == theirs:
            return
        time.sleep(1)


def _topics(bootstrap: str) -> tuple[str, str]:
    """A topic with three copies, and one of one partition without: it has no leader while its broker is away."""
    name = f"outage-{time.monotonic_ns()}"
    copies = {p: [1 + (p + n) % 3 for n in range(3)] for p in range(PARTITIONS)}
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics([NewTopic(name, replica_assignments=copies)])
        admin.create_topics([NewTopic(f"{name}-alone", replica_assignments={0: [LOST_NODE]}, topic_configs=ONE)])
        admin.wait_for_topics([name, f"{name}-alone"])
    return name, f"{name}-alone"


def _led_by(bootstrap: str, topics: Sequence[str], node: int) -> set[TopicPartition]:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        found = admin.describe_topics(list(topics))
    return {
        TopicPartition(topic["name"], each["partition_index"])
        for topic in found
        for each in topic["partitions"]
        if each["leader_id"] == node
    }
