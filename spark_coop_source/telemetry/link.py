"""The connection of one attempt of a task to the reader process of the driver: reports of costs, and its ends.

A task whose driver cannot be reached reads all of its slices, and reports nothing: the planner guesses worse. It fails
if its batch requires its ends (rule: seal-as-planned). A task whose connection ends fails before it gets or hands over
another record: its driver has left the group or has ended, and others are about to read (rule:
leave-keeps-unconfirmed).
Runs in executor workers. `send` may be called on any thread, but not while the task asks.
"""

import logging
import select
import socket
import time
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

from pyspark import TaskContext

from coordinator.errors import TaskNotEndedError
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.progress.ends import Ends
from coordinator.progress.failing import NO_FAILURES, Failures
from spark_coop_source.telemetry.frames import framed, next_text
from spark_coop_source.telemetry.questions import TaskAnswer, TaskQuestion
from spark_coop_source.telemetry.report import HELLO, Report, ReportTo, encoded

log = logging.getLogger(__name__)

CONNECT_S = 5.0
SEND_S = 5.0
"""A driver that takes a report no sooner counts as gone."""


class TaskLink:
    """See the module; a context manager, which closes the connection."""

    def __init__(self, to: ReportTo) -> None:
        self._to = to
        task = TaskContext.get()
        self._attempt = task.taskAttemptId() if task else 0  # unique in an application, and grows
        self._number = 0
        self._questions = count(1)
        self._socket: socket.socket | None = None
        self._lost = False
        self._heard_of = select.poll()
        try:
            self._socket = socket.create_connection((to.host, to.port), CONNECT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._answers = self._socket.makefile("rb")
            self._heard_of.register(self._socket, select.POLLIN)
        except OSError as error:
            log.warning("the reader process of the driver cannot be reached at port %d (%s)", to.port, error)
        self._send(HELLO)

    @property
    def connected(self) -> bool:
        """Whether the driver could be reached so far."""
        return self._socket is not None

    def send(self, cost: SliceCost) -> None:
        """Report a cost, if the driver takes it soon."""
        self._number = max(self._number + 1, time.monotonic_ns())  # a task may read a partition again
        self._send(encoded(Report(self._to.plan, self._attempt, self._number, cost)))

    def check(self) -> None:
        """Raise `TaskNotEndedError` if the connection has ended (rule: leave-keeps-unconfirmed)."""
        connection = self._socket  # a sign of life on another thread may close it
        if connection is not None and self._heard_of.poll(0) and self._at_its_end(connection):
            self._lose()
        if self._lost:
            raise TaskNotEndedError("a task stops: the reader process of the driver has left its group, or has ended")

    @staticmethod
    def _at_its_end(connection: socket.socket) -> bool:
        try:
            return not connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def agreed(self, batch: str, task: int) -> Ends | None:
        """The ends of an earlier attempt of this task; None if none has ended. Raises `TaskNotEndedError`."""
        return self._ask(TaskQuestion(next(self._questions), batch, task))

    def end(self, batch: str, task: int, ends: Ends, failures: Failures = NO_FAILURES) -> None:
        """End the task here. Raises `TaskNotEndedError` if the driver does not take it (rule: first-end-wins)."""
        if self._ask(TaskQuestion(next(self._questions), batch, task, ends, failures)) != ends:
            raise TaskNotEndedError("a task could not end: another attempt of it has ended at other offsets")

    def _ask(self, question: TaskQuestion) -> Ends | None:
        self._send(question.text)
        answer = None
        if self._socket is not None:
            self._socket.settimeout(None)  # the last task waits until the batch is sealed
            with suppress(OSError):
                text = next_text(self._answers, self._to.key)
                answer = TaskAnswer.parse(text) if text else None
        if answer is None or answer.number != question.number:
            where = f"{self._to.host}, port {self._to.port}"
            raise TaskNotEndedError(
                f"a task could not end: the reader process of the driver does not answer at {where}"
            )
        if answer.refused:
            raise TaskNotEndedError(f"a task could not end: {answer.refused}")
        return answer.ends

    def _send(self, text: bytes) -> None:
        if self._socket is None:
            return
        try:
            self._socket.settimeout(SEND_S)
            self._socket.sendall(framed(text, self._to.key))
        except OSError:
            self._lose()

    def _lose(self) -> None:
        self._lost = True
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._answers.close()
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
