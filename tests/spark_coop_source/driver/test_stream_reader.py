"""Spark's calls on the stream reader, one by one, without Spark: the effect of each on the group."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from coordinator.errors import TaskNotEndedError, UnknownGroupError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.members import RedisMembers
from coordinator.redis.positions import RedisPositions
from coordinator.redis.replies import SETTLE_MS
from coordinator.values.subscription import TopicPartition
from reader_calls import Calls
from spark_coop_source.driver import reader_process
from spark_coop_source.driver.reader_process import exit_on_sigterm
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.telemetry.link import TaskLink
from topics import Kafka, Record


@pytest.fixture
def handlers() -> Iterator[None]:
    """The signal handlers of a reader process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    exit_on_sigterm()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_reader_that_is_constructed_and_never_called_leaves_no_trace(calls: Calls) -> None:
    with pytest.raises(UnknownGroupError):
        _ = calls.state


def test_the_initial_offset_is_a_constant_that_creates_first_positions_and_joins_no_group(
    calls: Calls, group: str, tp: TopicPartition
) -> None:
    offsets = [calls.reader.initialOffset() for _ in range(2)]
    assert offsets == [StreamOffset(group).to_json()] * 2
    assert (calls.state.stable, calls.state.leases_ms, calls.state.members) == ({tp: 0}, {}, {})


def test_a_batch_depends_only_on_its_end_not_on_the_start_that_spark_passes(calls: Calls) -> None:
    start = calls.reader.initialOffset()
    end = calls.batch(start)
    planned = [[p.slices for p in calls.reader.partitions(each, end)] for each in (start, end, {})]
    assert planned[0] != []
    assert planned == [planned[0]] * 3


def test_tasks_connect_to_the_port_that_the_user_names(calls: Calls) -> None:
    with socket.create_server(("", 0)) as taken:
        port: int = taken.getsockname()[1]
    calls.restart(report_ports=range(port, port + 1))
    start = calls.reader.initialOffset()
    planned = calls.reader.partitions(start, calls.batch(start))
    assert {p.report.port for p in planned if p.report} == {port}


def test_a_polite_stop_leaves_at_once_when_everything_is_confirmed(calls: Calls, tp: TopicPartition) -> None:
    end = calls.batch(calls.reader.initialOffset())
    calls.reader.partitions({}, end)
    calls.batch(end)
    calls.reader.stop()
    assert (calls.state.leases_ms, calls.state.owners.get(tp, ())) == ({}, ())


def test_a_polite_stop_in_a_batch_commits_nothing_and_keeps_ranges_that_tasks_may_write(
    calls: Calls, tp: TopicPartition
) -> None:
    end = calls.batch(calls.reader.initialOffset())
    calls.reader.partitions({}, end)
    before = calls.state
    calls.reader.stop()
    assert (calls.state.stable, calls.state.owners) == (before.stable, before.owners)
    assert calls.state.leases_ms.keys() == before.leases_ms.keys()


@pytest.mark.parametrize(
    ("stops", "least_ms", "most_ms"),
    [
        pytest.param(True, -30_000, SETTLE_MS, id="its task has stopped: others wait a moment"),
        pytest.param(False, 10_000, 45_000, id="its task may read on: others wait for the lease"),
    ],
)
def test_others_wait_for_a_stop_in_a_batch_as_long_as_its_tasks_may_read(
    calls: Calls,
    kafka: Kafka,
    tp: TopicPartition,
    monkeypatch: pytest.MonkeyPatch,
    stops: bool,
    least_ms: int,
    most_ms: int,
) -> None:
    """Rule: leave-keeps-unconfirmed. An attempt that is left of an earlier batch does not count."""
    monkeypatch.setattr(reader_process, "GONE_S", 0.5)
    first = calls.batch(calls.reader.initialOffset())
    with _connected(calls.reader.partitions({}, first)):
        kafka.produce(tp.topic, [Record(b"6", b"k")])
        second = calls.batch(first)
        with _connected(calls.reader.partitions({}, second)) as link:
            if stops:
                link.close()
            calls.reader.stop()
    (its_end,) = calls.state.leases_ms.values()
    assert least_ms <= its_end - time.time_ns() // 1_000_000 <= most_ms


@contextmanager
def _connected(planned: Sequence[SlicePartition]) -> Iterator[TaskLink]:
    """A task that its reader has heard."""
    to = next(p.report for p in planned if p.report)
    with TaskLink(to) as link:
        with pytest.raises(TaskNotEndedError, match="its batch is over"):
            link.agreed("another", 0)
        yield link


@pytest.mark.parametrize("arrived", [False, True])
def test_a_polite_stop_in_a_commit_confirms_the_completed_batch_and_leaves_at_once(
    calls: Calls, tp: TopicPartition, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    commit = RedisPositions.commit

    def interrupted(*arguments: Any, **named: Any) -> None:
        if arrived:
            commit(*arguments, **named)
        raise SystemExit  # what SIGTERM becomes

    end = calls.batch(calls.reader.initialOffset())
    calls.reader.partitions({}, end)
    monkeypatch.setattr(RedisPositions, "commit", interrupted)
    with pytest.raises(SystemExit):
        calls.batch(end)
    monkeypatch.setattr(RedisPositions, "commit", commit)
    calls.reader.stop()
    assert (calls.state.stable, calls.state.leases_ms, calls.state.owners.get(tp, ())) == ({tp: 5}, {}, ())


def test_a_restart_after_a_stop_in_a_batch_replays_exactly_that_batch(calls: Calls) -> None:
    end = calls.batch(calls.reader.initialOffset())
    planned = [p.slices for p in calls.reader.partitions({}, end)]
    calls.restart()
    assert planned != []
    assert [p.slices for p in calls.reader.partitions({}, end)] == planned


@pytest.mark.timeout(30)
def test_a_call_that_does_not_return_ends_when_the_jvm_is_dead(
    calls: Calls, handlers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = calls.batch(calls.reader.initialOffset())
    monkeypatch.setattr(RedisPositions, "authorize", lambda *_, **__: threading.Event().wait())
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with pytest.raises(SystemExit):
        calls.reader.partitions({}, end)
    calls.reader.stop()
    assert calls.state.leaving == calls.state.leases_ms.keys() != set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_signal_interrupts_a_leave(
    calls: Calls, tp: TopicPartition, handlers: None, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    leave = RedisMembers.leave

    def signalled(*arguments: Any, **named: Any) -> int:
        monkeypatch.setattr(RedisMembers, "leave", leave)
        signal.raise_signal(number)
        return leave(*arguments, **named)

    end = calls.batch(calls.reader.initialOffset())
    calls.reader.partitions({}, end)
    calls.batch(end)
    monkeypatch.setattr(RedisMembers, "leave", signalled)
    with suppress(SystemExit, KeyboardInterrupt):
        calls.reader.stop()
    assert (calls.state.leases_ms, calls.state.owners.get(tp, ())) == ({}, ())
