"""The reader process beside the driver: its connections, its heartbeat thread, and its end.

The process can end in three ways. In each, Spark's runner calls `stop()`, and the member leaves its group:

    query.stop()   SIGTERM, twice; `exit_on_sigterm` turns the first into SystemExit
    the JVM dies   the runner's input ends (EOFError); in a call, the heartbeat thread sends SIGTERM
    Ctrl-C         KeyboardInterrupt

`query.stop()` may also end the input just before its SIGTERM. So no signal interrupts a leave.

First the process ends the connections of its tasks, which stop then, and waits until they have closed theirs. So it
knows whether a task may still read, and the leave says so: ranges with an unconfirmed slice are free after some
seconds, or when the lease ends (rule: leave-keeps-unconfirmed). After a SIGKILL of this process all its ranges wait
until the lease ends.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from types import FrameType

from coordinator.errors import MissingOptionError
from coordinator.kafka.connection import servers_of
from coordinator.member.cooperative import Cooperative
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.member.standalone import Standalone
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.packing import Task
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.replies import Joining, Leaving
from coordinator.redis.store import store_of
from coordinator.values.clock import BootClock
from coordinator.values.subscription import Assigned
from spark_coop_source.driver.identity import application
from spark_coop_source.driver.query_thread import query_of
from spark_coop_source.driver.task_server import GONE_S, TaskServer
from spark_coop_source.driver.wiring import cutting, group_settings, kafka_log, member_fields, standalone_settings
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.task.partition import TaskEnding
from spark_coop_source.telemetry.report import ReportTo

log = logging.getLogger(__name__)


def exit_on_sigterm() -> None:
    """Turn the first SIGTERM into SystemExit, ignore further ones; only on the main thread, which is Spark's."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, frame: FrameType | None) -> None:
    _ignore_signals()
    sys.exit(0)


def let_nothing_interrupt() -> None:
    """Ignore SIGTERM and SIGINT from now on, in a process that `exit_on_sigterm` was called in."""
    if signal.getsignal(signal.SIGTERM) is _exit:
        _ignore_signals()


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _task_server(options: SourceOptions, ending: Service | None = None) -> TaskServer:
    towards = servers_of(options.kafka).split(",")
    guessed = None if "slots" in options.given else options.slots
    return TaskServer(towards, options.concurrency, ending, options.report_ports, guessed_slots=guessed)


class GroupSession:
    """A member of a group: its service, and the thread that keeps its lease."""

    def __init__(self, options: SourceOptions) -> None:
        exit_on_sigterm()
        self._group = str(options.group)
        self._clock = BootClock()
        self._client = RedisClient(str(options.redis_url))
        self._checked = False
        self._kafka = kafka_log(options)
        settings = group_settings(options, self._group)
        store = store_of(ScriptCalls.of(self._client, settings))
        self._driver = os.getppid()
        host, driver = socket.gethostname(), str(self._driver)
        made = Cooperative if settings.ordering == "none" else Service
        self._service = made(
            settings,
            options.subscription,
            options.starting,
            cutting(options),
            store=store,
            log=self._kafka,
            clock=self._clock,
            me=Joining(
                {"host": host, "driver_pid": driver, "pid": str(os.getpid()), "query": query_of(self._driver)}
                | member_fields(options),
                application="" if options.several_queries else application(host, self._driver),
            ),
        )
        self._tasks = _task_server(options, self._service)
        self._stopped = threading.Event()
        self._beating = threading.Thread(
            target=self._beat, args=(options.heartbeat_ms / 1000,), name="coop-kafka-heartbeat", daemon=True
        )

    def initial(self) -> StreamOffset:
        """A constant offset. First positions of the group exist when it returns."""
        self._ready()
        self._service.first_positions()
        return StreamOffset(self._group)

    def set_targets(self) -> None:
        """See `Service.set_targets`."""
        self._ready()
        self._service.set_targets()

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """See `Service.next_offset`."""
        self._ready()
        self._tasks.next_batch()
        self._service.receive(self._reports())
        return self._service.next_offset(start, limits)

    def tasks(self, end: StreamOffset) -> tuple[Task, ...]:
        """See `Service.tasks`."""
        self._ready()
        return self._service.tasks(end)

    def report_to(self, slices: Iterable[Slice]) -> ReportTo | None:
        """See `TaskServer.report_to`."""
        to = self._tasks.report_to(slices)
        if to is None:
            self._service.no_task_connects()
        return to

    def ending(self, tasks: Sequence[Task]) -> TaskEnding | None:
        """How tasks of the batch under way end: perhaps slices early, and perhaps before keys that they defer."""
        batch, on_error = self._service.state.batch, self._service.setup.settings.on_error
        if batch is None:
            return None
        defers = on_error and batch.may_defer
        if not (batch.may_end_early or defers):
            return TaskEnding(batch.end.digest, by_time=False, required=False, early=False)
        ending = TaskEnding(batch.end.digest, by_time=batch.may_end_early, required=not batch.sealed)
        if not defers:
            return ending
        records, room = self._service.failing_of(tasks)
        return replace(ending, failing=tuple(chain.from_iterable(records.values())), room=room)

    @property
    def query(self) -> Service:
        """What this process knows of its query."""
        return self._service

    def settle(self, start: StreamOffset) -> None:
        """See `Service.settle`."""
        self._ready()
        self._service.receive(self._reports())
        self._service.settle(start)

    def close(self) -> None:
        """Let nothing interrupt the end of this process any more, and end."""
        let_nothing_interrupt()
        self.end()

    def end(self) -> None:
        """Stop the tasks and the heartbeat, leave, drop the connections."""
        began = time.monotonic()
        self._stopped.set()
        self._clock.close()
        writers = self._tasks.close(GONE_S)
        if self._beating.is_alive():
            self._beating.join()
        self._service.leave(Leaving.of(writers, round((time.monotonic() - began) * 1000)))
        self._kafka.close()
        self._client.close()

    def _ready(self) -> None:
        if not self._checked:
            self._service.check_store(self._client.require_noeviction)
            self._service.check_policies()
            self._beating.start()
            self._checked = True

    def _beat(self, every_s: float) -> None:
        while not self._stopped.wait(every_s):
            if os.getppid() != self._driver:
                os.kill(os.getpid(), signal.SIGTERM)
                return
            try:
                self._service.receive(self._reports())
                self._service.heartbeat()
            except Exception:  # the thread must live: it renews the lease
                log.exception("a heartbeat of group %s failed; the next one is due in %s s", self._group, every_s)

    def _reports(self) -> Iterator[SliceCost]:
        """New reports, taken one by one. Both threads call this, and the inbox keeps the order of reports."""
        yield from self._tasks.take()


class StandaloneSession:
    """No group and no Redis: positions live in the checkpoint only."""

    def __init__(self, options: SourceOptions) -> None:
        exit_on_sigterm()
        if not isinstance(options.subscription, Assigned):
            raise MissingOptionError(
                "a stream without the option group needs the option assign",
                "add the options group and redisUrl, or use assign",
            )
        self._kafka = kafka_log(options)
        self._tasks = _task_server(options)
        self.query = Standalone(
            standalone_settings(options),
            options.subscription,
            options.starting,
            cutting(options),
            log=self._kafka,
            clock=BootClock(),
        )
        self.initial = self.query.initial
        self.set_targets = self.query.set_targets
        self.tasks = self.query.tasks

    def report_to(self, slices: Iterable[Slice]) -> ReportTo | None:
        """See `TaskServer.report_to`."""
        return self._tasks.report_to(slices)

    def ending(self, tasks: Sequence[Task]) -> None:
        """No task ends early: no Redis keeps the ends."""

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """See `Standalone.next_offset`."""
        self.query.receive(self._tasks.take())
        return self.query.next_offset(start, limits)

    def close(self) -> None:
        """Drop the connections."""
        self._tasks.close()
        self._kafka.close()


StreamSession = GroupSession | StandaloneSession
"""The calls of a stream reader, with a group or without."""
