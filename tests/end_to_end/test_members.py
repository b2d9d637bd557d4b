"""Several members of one group on one partition: they share it, hand it over, and take it from the dead.

Each query is a member: several of one application, which an option allows, so that one Spark session does.
"""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streams import Sink, Stream, eventually, keyed, sent, stable, state
from topics import Kafka
from verdict import Delivery, judge, require, require_good

LEASES = {"sessionTimeout": "3000", "heartbeatInterval": "500"}


@dataclass
class Members:
    """Members of one group, and everything that reached any of their sinks, in the order it came."""

    make: Callable[[str], Stream]
    arrived: list[Delivery] = field(default_factory=list)
    queries: dict[str, StreamingQuery] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    batches: int = 0

    def start(self, name: str, **options: str) -> Stream:
        stream = self.streams.setdefault(name, self.make(name))
        stream.sink = _Counted(self)
        self.queries[name] = stream.start(None, **options)
        return stream

    def stop(self) -> None:
        for query in self.queries.values():
            query.stop()

    def check(self) -> None:
        for query in self.queries.values():
            assert query.exception() is None, query.exception()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds, or a query fails."""
        eventually(lambda: any(q.exception() for q in self.queries.values()) or condition(), what)
        self.check()

    def offsets(self) -> set[int]:
        return {d.offset for d in self.arrived}

    def owners(self) -> set[str]:
        """The members that own something now."""
        first = next(iter(self.streams.values()))
        if not stable(first):
            return set()
        (owners,) = state(first).owners.values()
        return {member for _, _, member in owners}

    def pid(self, member: str) -> int:
        return int(state(next(iter(self.streams.values()))).members[member]["pid"])


class _Counted(Sink):
    """Numbers batches over all members as they arrive, so that a verdict can judge their common order."""

    def __init__(self, members: Members) -> None:
        super().__init__()
        self._members = members

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        before = len(self.received)
        super().__call__(rows, batch_id)
        self._members.batches += 1
        self._members.arrived += [
            Delivery(self._members.batches, d.input_partition, d.place, d.offset, d.key, d.value)
            for d in self.received[before:]
        ]


@pytest.fixture
def members(spark: SparkSession, kafka: Kafka, redis_url: str, group: str, tmp_path: Path) -> Iterator[Members]:
    topic = kafka.create_topic("shared")
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
        "slots": "2",
        "allowSeveralQueries": "true",
        **LEASES,
    }
    found = Members(lambda name: Stream(spark, dict(options), tmp_path / name))
    yield found
    found.stop()


def produce(kafka: Kafka, members: Members, count: int, first: int = 0) -> None:
    kafka.produce(next(iter(members.streams.values())).options["subscribe"], keyed(count, first=first))


def test_a_second_member_takes_its_half_of_one_partition_and_the_order_holds(kafka: Kafka, members: Members) -> None:
    members.start("one")
    produce(kafka, members, 100)
    members.until(lambda: len(members.offsets()) == 100, "one works alone")
    members.start("two")
    members.until(lambda: len(members.owners()) == 2, "two has its half")
    produce(kafka, members, 200, first=100)
    members.until(lambda: len(members.offsets()) == 300, "both work")
    require_good(judge(sent(keyed(300)), members.arrived))
    assert all({d.offset for d in s.sink.received} & set(range(100, 300)) for s in members.streams.values())


def test_a_member_that_stops_leaves_everything_to_the_other(kafka: Kafka, members: Members) -> None:
    members.start("one")
    produce(kafka, members, 50)
    members.start("two")
    members.until(lambda: len(members.owners()) == 2, "both own a part")
    members.until(lambda: stable(members.streams["one"]) == {50}, "everything is confirmed")
    members.queries.pop("one").stop()
    members.until(lambda: len(members.owners()) == 1, "two owns all")
    produce(kafka, members, 50, first=50)
    members.until(lambda: len(members.offsets()) == 100, "two works alone")
    require_good(judge(sent(keyed(100)), members.arrived))


def test_the_ranges_of_a_killed_member_are_taken_after_its_session(kafka: Kafka, members: Members) -> None:
    members.start("one")
    produce(kafka, members, 50)
    members.start("two")
    eventually(lambda: len(members.owners()) == 2, "both own a part")
    victim = next(m for m in members.owners() if members.pid(m) != os.getpid())
    psutil.Process(members.pid(victim)).send_signal(signal.SIGKILL)
    produce(kafka, members, 50, first=50)
    eventually(lambda: bool(members.owners() - {victim}) and victim not in members.owners(), "the other takes over")
    eventually(lambda: len(members.offsets()) == 100, "nothing is lost")
    verdict = judge(sent(keyed(100)), members.arrived)
    require((verdict.lost, verdict.out_of_order) == (0, 0), verdict)


def test_two_members_with_available_now_end_when_everything_is_done(kafka: Kafka, members: Members) -> None:
    first, second = (members.streams.setdefault(n, members.make(n)) for n in ("one", "two"))
    produce(kafka, members, 300)
    sinks = [_Counted(members), _Counted(members)]
    queries = []
    for stream, sink in zip((first, second), sinks, strict=True):
        stream.sink = sink
        queries.append(stream.start({"availableNow": True}, maxOffsetsPerTrigger="40"))
    for query in queries:
        assert query.awaitTermination(90), "AvailableNow ends"
    require_good(judge(sent(keyed(300)), members.arrived))
    assert stable(first) == {300}


def test_a_second_query_of_one_application_is_refused_unless_allowed(kafka: Kafka, members: Members) -> None:
    members.start("one", allowSeveralQueries="false")
    produce(kafka, members, 10)
    eventually(lambda: len(members.offsets()) == 10, "one works")
    members.start("two", allowSeveralQueries="false")
    eventually(lambda: members.queries["two"].exception() is not None, "two is refused")
    refused = str(members.queries["two"].exception())
    assert "GROUP_BUSY" in refused
    assert "set allowSeveralQueries=true" in refused
    assert members.queries["one"].exception() is None
