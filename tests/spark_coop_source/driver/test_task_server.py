"""Tasks report costs and ends to the server in the reader process; forged messages are dropped."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from threading import Thread

import pytest

from coordinator.errors import FencedMemberError, TaskNotEndedError
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.progress.ends import Ends
from coordinator.progress.failing import NO_FAILURES, FailingRecord, Failures
from coordinator.progress.slices import Slice
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from log_lines import own_lines
from slice_costs import COST, OTHER, SLICE
from spark_coop_source.driver.task_server import UNHEARD, TaskServer, announced
from spark_coop_source.telemetry.frames import framed
from spark_coop_source.telemetry.link import TaskLink
from spark_coop_source.telemetry.report import ReportTo
from streams import eventually

KEY = b"k" * 32


@pytest.fixture
def receiver() -> Iterator[TaskServer]:
    with closing(TaskServer(["127.0.0.1:9092"], 1)) as made:
        yield made


def heard(receiver: TaskServer, count: int) -> list[SliceCost]:
    found: list[SliceCost] = []

    def all_here() -> bool:
        found.extend(receiver.take())
        return len(found) >= count

    eventually(all_here, f"{count} costs are heard", 20)
    return found


def test_costs_come_from_a_task_to_its_reader(receiver: TaskServer) -> None:
    assert receiver.take() == []
    to = receiver.report_to([SLICE, OTHER])
    assert to is not None
    assert to.host == "127.0.0.1"
    with TaskLink(to) as sender:
        sender.send(COST)
        sender.send(SliceCost.nothing(OTHER))
    found = heard(receiver, 2)
    assert {found[0].slice, found[1].slice} == {SLICE, OTHER}
    assert next(c for c in found if c.slice == SLICE).rows == 50


@pytest.mark.parametrize(("guessed", "warnings"), [(2, 1), (None, 0)])
def test_tasks_on_other_hosts_than_the_guessed_slots_are_named_once(
    caplog: pytest.LogCaptureFixture, guessed: int | None, warnings: int
) -> None:
    with closing(TaskServer(["127.0.0.1:9092"], 1, guessed_slots=guessed)) as server:
        for address in ("127.0.0.1", "10.0.0.7", "10.0.0.8"):
            server.heard_from(address)
    lines = [line for line in own_lines(caplog) if "tasks run on 10.0.0.7" in line]
    assert len(lines) == len(own_lines(caplog)) == warnings


def test_a_message_with_another_key_ends_its_connection(receiver: TaskServer) -> None:
    to = receiver.report_to([SLICE, OTHER])
    assert to is not None
    with TaskLink(replace(to, key=KEY)) as forger, TaskLink(replace(to, plan=9)) as lost, TaskLink(to) as ours:
        forger.send(COST)
        lost.send(COST)
        texts = b"[" * 4_000, b"{", b'{"number":1e999,"batch":"digest","task":0}'
        for junk in (b"", b"junk", b"\xff" * 40, *(framed(text, to.key) for text in texts)):
            with closing(socket.create_connection((to.host, to.port))) as connection:
                connection.sendall(junk)
        ours.send(SliceCost.nothing(OTHER))
        assert heard(receiver, 1) == [SliceCost.nothing(OTHER)]
        with pytest.raises(TaskNotEndedError, match="does not answer"):
            forger.agreed("digest", 0)


def test_a_report_after_the_end_of_the_reader_costs_the_task_nothing(receiver: TaskServer) -> None:
    to = receiver.report_to([SLICE])
    assert to is not None
    with TaskLink(to) as link:
        link.send(COST)
        receiver.close()
        for _ in range(50):
            link.send(COST)
    for gone in (to, replace(to, host="0.0.0.1"), replace(to, host="::1")):
        with TaskLink(gone) as link:
            link.send(COST)
            assert not link.connected
    assert receiver.report_to([SLICE]) is None


def _read(to: ReportTo, stopped: threading.Event) -> None:
    """A task that checks its connection before each record."""
    with TaskLink(to) as link, suppress(TaskNotEndedError):
        link.send(COST)
        while not stopped.wait(0.001):
            link.check()


@pytest.fixture
def task(receiver: TaskServer) -> Iterator[Callable[[], Thread]]:
    """Start a task that is connected; it ends with the test."""
    stopped, began = threading.Event(), list[Thread]()

    def start() -> Thread:
        to = receiver.report_to([SLICE])
        began.append(Thread(target=_read, args=(to, stopped)))
        began[-1].start()
        heard(receiver, 1)
        return began[-1]

    yield start
    stopped.set()
    for each in began:
        each.join()


def test_the_end_of_a_reader_stops_its_tasks_and_knows_that_they_have_stopped(
    receiver: TaskServer, task: Callable[[], Thread]
) -> None:
    """Rule: leave-keeps-unconfirmed."""
    running = [task(), task()]
    assert receiver.close(30) == ""
    assert receiver.close(30) == "", "once more"
    for each in running:
        each.join(30)
        assert not each.is_alive()


def test_the_end_of_a_reader_names_the_hosts_of_tasks_that_do_not_stop(receiver: TaskServer) -> None:
    to = receiver.report_to([SLICE])
    assert to is not None
    with TaskLink(to) as cut_off, TaskLink(to) as ended:
        cut_off.send(COST)
        ended.send(COST)
        heard(receiver, 1)
        ended.close()
        assert receiver.close(0.1) == "a task on 127.0.0.1 has not stopped, and may still read"


def test_nobody_knows_the_tasks_of_a_reader_that_none_has_reached(receiver: TaskServer) -> None:
    assert receiver.report_to([SLICE]) is not None
    assert receiver.close(0.1) == "no task has reached this process, so some may still read"


def test_a_reader_without_a_batch_has_no_tasks(receiver: TaskServer) -> None:
    assert receiver.close(0.1) == ""


def test_the_next_batch_ends_the_tasks_of_the_last_one(receiver: TaskServer, task: Callable[[], Thread]) -> None:
    """Of two attempts, the second may read on after the end of the batch: it does not count when the reader ends."""
    running = task()
    receiver.next_batch()
    running.join(30)
    assert not running.is_alive()
    assert receiver.close() == ""


def test_a_task_that_never_reached_its_driver_reads_on() -> None:
    with TaskLink(ReportTo("127.0.0.1", 1, 1, KEY)) as link:
        link.check()
        assert not link.connected


def test_a_task_that_waits_for_its_function_stays_connected(receiver: TaskServer) -> None:
    """It says at once that it is there: a connection without a message is closed after some seconds."""
    to = receiver.report_to([SLICE])
    assert to is not None
    with TaskLink(to):
        eventually(lambda: receiver._heard, "the task has said that it is there", 20)


TO_5: Ends = {TopicPartition("orders", 0): HashMap.of(WHOLE, 5)}


class Ended:
    """A member whose first attempt of task 1 has ended at offset 5. The batch `over` is over."""

    def __init__(self) -> None:
        self.failures: list[Failures] = []

    def agreed_ends(self, digest: str, task: int) -> Ends | None:
        if digest == "over":
            raise KeyError(digest)
        return TO_5 if task == 1 else None

    def end_task(self, digest: str, task: int, ends: Ends, failures: Failures = NO_FAILURES) -> Ends:
        self.failures.append(failures)
        if digest == "fenced":
            raise FencedMemberError("another driver has taken over", "stop it")
        return self.agreed_ends(digest, task) or ends


@pytest.fixture
def member() -> Ended:
    return Ended()


@pytest.fixture
def link(member: Ended) -> Iterator[TaskLink]:
    with closing(TaskServer(["127.0.0.1:9092"], 1, member)) as server:
        to = server.report_to([SLICE])
        assert to is not None
        with TaskLink(to) as link:
            yield link


def test_a_task_asks_for_the_ends_of_an_earlier_attempt(link: TaskLink) -> None:
    assert link.agreed("digest", 0) is None
    assert link.agreed("digest", 1) == TO_5


def test_a_task_ends_where_the_first_attempt_ended_or_it_fails(link: TaskLink) -> None:
    link.end("digest", 0, {})
    link.end("digest", 1, TO_5)
    with pytest.raises(TaskNotEndedError, match="another attempt of it has ended at other offsets"):
        link.end("digest", 1, {})


def test_the_failures_of_a_task_come_with_its_end(link: TaskLink, member: Ended) -> None:
    """Also those with a message of several lines, or of other letters."""
    record = FailingRecord(TopicPartition("orders", 0), 5, 4, 2, 7, True, "ValueError", "no\nsuch \u00e9 order")
    failures = Failures((record, replace(record, key_hash=2**63 - 1, parked=False)), 3, 4, kafka_away=True)
    link.end("digest", 0, {}, failures)
    link.end("digest", 0, {})
    assert member.failures == [failures, NO_FAILURES]


@pytest.mark.parametrize(
    ("digest", "words"), [("over", "its batch is over"), ("fenced", "another driver has taken over")]
)
def test_a_task_that_is_refused_names_the_reason(link: TaskLink, digest: str, words: str) -> None:
    with pytest.raises(TaskNotEndedError, match=words):
        link.end(digest, 1, TO_5)


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(ReportTo("127.0.0.1", 9, 1, b"secret"))


@pytest.mark.parametrize(
    ("towards", "host"),
    [
        pytest.param(["127.0.0.1:9092"], "127.0.0.1", id="a broker on this host"),
        pytest.param(["no.such.host.invalid:9092", "127.0.0.1:9092"], "127.0.0.1", id="the first that is known"),
        pytest.param(["[127.0.0.1]:9092"], "127.0.0.1", id="brackets as of IPv6"),
    ],
)
def test_the_address_announced_is_that_on_the_way_to_a_broker(towards: list[str], host: str) -> None:
    assert announced(towards) == (host, socket.AF_INET)


def test_sparks_own_address_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert announced(["192.0.2.1:9092"]) == ("127.0.0.1", socket.AF_INET)


def test_where_no_address_can_be_had_nothing_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with closing(TaskServer(["no.such.host.invalid:9092"], 1)) as deaf:
        assert deaf.report_to([SLICE]) is None
        assert deaf.take() == []


def test_the_first_free_port_of_a_range_is_used(caplog: pytest.LogCaptureFixture) -> None:
    """Behind a firewall, administrators open some ports; each query needs one."""
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with closing(TaskServer(["127.0.0.1:9092"], 1, ports=range(port, port + 1))) as none_left:
            assert none_left.report_to([SLICE]) is None
        (line,) = own_lines(caplog)
        assert line.endswith(f" at reportPort {port}-{port}; name more ports")
        with closing(TaskServer(["127.0.0.1:9092"], 1, ports=range(port, port + 50))) as server:
            to = server.report_to([SLICE])
            assert to is not None
            assert port < to.port < port + 50
            with TaskLink(to) as sender:
                sender.send(COST)
                heard(server, 1)
    with closing(TaskServer(["127.0.0.1:9092"], 1, ports=[to.port])) as later:
        assert later.report_to([SLICE]) is not None, "the port of a query that has just ended is free"


def test_a_reader_that_no_task_reaches_is_named_once_and_lets_no_task_wait(caplog: pytest.LogCaptureFixture) -> None:
    with closing(TaskServer(["127.0.0.1:9092"], 1)) as server:
        asked = [server.report_to([SLICE]) for _ in range(UNHEARD + 3)]
    assert [to is not None for to in asked] == [True] * UNHEARD + [False] * 3
    (line,) = own_lines(caplog)
    assert line.startswith("no task has reached the reader process at 127.0.0.1 port ")


def test_a_reader_that_a_task_has_reached_goes_on_to_listen(receiver: TaskServer) -> None:
    to = receiver.report_to([SLICE])
    assert to is not None
    with TaskLink(to) as sender:
        sender.send(COST)
        heard(receiver, 1)
    assert all(receiver.report_to([SLICE]) for _ in range(2 * UNHEARD))


def test_cuts_of_one_partition_are_told_apart(receiver: TaskServer) -> None:
    slices = [Slice(TopicPartition("orders", 0), hashes, OffsetRange(0, 9)) for hashes in cuts(50)]
    to = receiver.report_to(slices)
    assert to is not None
    with TaskLink(to) as sender:
        for s in slices:
            sender.send(SliceCost.nothing(s))
            assert heard(receiver, 1) == [SliceCost.nothing(s)]
