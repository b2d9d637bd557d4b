"""Sends reports to the reader process: one datagram for each report. The task never waits for it.

If a datagram is lost, the planner guesses worse; the task loses nothing. Knows UDP, and the attempt of this task;
nothing of the measuring. Runs in executor workers.
"""

import socket
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from pyspark import TaskContext

from coordinator.telemetry import SliceCost
from spark_coop_source.telemetry.report import Report, ReportTo, encoded


class ReportSender:
    """The reports of one attempt of a task; a context manager, which closes its socket."""

    def __init__(self, to: ReportTo) -> None:
        self._to = to
        task = TaskContext.get()
        self._attempt = task.taskAttemptId() if task else 0  # unique in an application, and grows
        self._number = 0
        self._socket = socket.socket(socket.AF_INET6 if ":" in to.host else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(self, cost: SliceCost) -> None:
        """Report a cost, if the network takes it at once."""
        self._number = max(self._number + 1, time.monotonic_ns())  # a task may read a partition again
        datagram = encoded(Report(self._to.plan, self._attempt, self._number, cost), self._to.key)
        with suppress(OSError):
            self._socket.sendto(datagram, (self._to.host, self._to.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
