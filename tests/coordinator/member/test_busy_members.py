"""Members of one driver in one group, without Spark.

Two reads of one query are refused; two queries wait for one another.
"""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from broker_jars import ROOT
from coordinator.errors import GroupBusyError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, batches, beats, read, records, subscribed
from streams import eventually, keyed

DRIVER = {"host": "h", "driver_pid": "7"}
SESSION_MS = 20_000  # a lease that outlives a slow machine's pauses
LOOKS = 30  # calls to Redis; a look makes two or three
WHICH_QUERY = "import os; from spark_coop_source.driver.query_thread import query_of; print(query_of(os.getppid()))"
SPARKS_THREAD = "stream executio"  # "stream execution thread for [id = ...]", as the kernel names it


def started(members: Group, tp: TopicPartition, query: str, application: str = "") -> Service:
    """A read of a query with AvailableNow, before its first batch."""
    fields = DRIVER | {"query": query}
    return members.aiming(subscribed(tp), session_ms=SESSION_MS, fields=fields, application=application)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("driver 7", "driver 7", id="by default"),
        pytest.param("", "", id="where the application may have several members"),
        pytest.param("driver 7", "", id="where the application of one may have several"),
    ],
)
def test_a_second_read_of_a_query_is_refused_though_the_lease_of_the_first_does_not_grow(
    members: Group, tp: TopicPartition, first: str, second: str
) -> None:
    one, two = started(members, tp, "q-1", first), started(members, tp, "q-1", second)
    batch(one, StreamOffset(members.name))
    lease = members.redis.zscore(GroupKeys(members.name).leases, one.member)
    with pytest.raises(GroupBusyError, match=f"two reads of one query .* member {one.member} of group") as refused:
        two.next_offset(StreamOffset(members.name), UNLIMITED)
    assert "use a group for each read" in refused.value.remedy
    assert members.redis.zscore(GroupKeys(members.name).leases, one.member) == lease
    assert set(members.state.members) == {one.member}


@pytest.mark.parametrize("query", [pytest.param("q-2", id="another query"), pytest.param("", id="an unknown query")])
def test_a_second_query_of_an_application_is_refused_with_both_remedies(
    members: Group, tp: TopicPartition, query: str
) -> None:
    one, two = started(members, tp, "q-1", "driver 7"), started(members, tp, query, "driver 7")
    batch(one, StreamOffset(members.name))
    with ThreadPoolExecutor(1) as own_thread:
        refused = own_thread.submit(two.next_offset, StreamOffset(members.name), UNLIMITED)
        eventually(lambda: beats(one) and refused.done(), "the lease of the first grows")
    with pytest.raises(GroupBusyError) as busy:
        refused.result()
    assert "for two queries of one application, stop one" in busy.value.remedy
    assert "set allowSeveralQueries=true in both" in busy.value.remedy
    assert "for two reads of one query, use two groups" in busy.value.remedy


def looks_again(members: Group, waiting: Service, busy: Service) -> bool:
    """Whether a member has looked for ranges some ten times, while the other's driver sends heartbeats only."""
    busy.heartbeat()
    called = members.redis.hget(GroupKeys(members.name).member(waiting.member), "called")
    return int(str(called or 0)) > LOOKS


@pytest.mark.parametrize("queries", [("q-1", "q-2"), ("", "")], ids=["known queries", "unknown queries"])
def test_a_query_waits_for_the_long_batch_of_another_one(
    members: Group, tp: TopicPartition, queries: tuple[str, str]
) -> None:
    one, two = (started(members, tp, query) for query in queries)
    long = batch(one, StreamOffset(members.name))
    with ThreadPoolExecutor(1) as own_thread:
        waiting = own_thread.submit(lambda: [*batches(two, StreamOffset(members.name))])
        eventually(lambda: waiting.done() or looks_again(members, two, one), "the second looks for ranges")
        ended = waiting.done()
        rest = [*batches(one, long)]
        found = waiting.result()
    assert not ended, "it waits for what the first has not confirmed"
    assert records(long, *rest, *found) == read(tp, 0, 5)
    assert members.state.stable == {tp: 5}


def test_a_query_waits_for_another_one_that_is_slow_to_begin_its_batch(members: Group, tp: TopicPartition) -> None:
    one, two = started(members, tp, "q-1"), started(members, tp, "q-2")
    planned = one.next_offset(StreamOffset(members.name), UNLIMITED)
    assert planned
    with ThreadPoolExecutor(1) as own_thread:
        waiting = own_thread.submit(lambda: [*batches(two, StreamOffset(members.name))])
        eventually(lambda: waiting.done() or looks_again(members, two, one), "the second looks for ranges")
        one.tasks(planned)
        rest = [*batches(one, planned)]
        found = waiting.result()
    assert records(planned, *rest, *found) == read(tp, 0, 5)


def test_a_query_that_starts_again_is_another_query_of_the_same_member(members: Group, tp: TopicPartition) -> None:
    before = started(members, tp, "q-1")
    done = batch(before, StreamOffset(members.name))
    after = started(members, tp, "q-2")
    members.kafka.produce(tp.topic, keyed(2, first=5))
    after.set_targets()
    assert records(*batches(after, done)) == read(tp, 5, 7)
    assert members.state.members[before.member]["query"] == "q-2"


# -- which query a process reads for ---------------------------------------------------------------


def queries_of_readers(thread_name: str, count: int) -> list[str]:
    """The queries that processes find if one new thread of this name starts them."""
    found: list[str] = []

    def start() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(thread_name)
        command = [sys.executable, "-c", WHICH_QUERY]
        found.extend(subprocess.check_output(command, cwd=ROOT, text=True).strip() for _ in range(count))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a thread")
def test_readers_that_one_thread_of_spark_started_are_of_one_query() -> None:
    one, other = (queries_of_readers(SPARKS_THREAD, 2) for _ in range(2))
    assert len(set(one)) == len(set(other)) == 1
    assert all(len(query) == 16 for query in (one[0], other[0]))
    assert one[0] != other[0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a thread")
def test_a_thread_that_is_no_query_of_spark_names_no_query() -> None:
    assert queries_of_readers("pool-1-thread-1", 1) == [""]
