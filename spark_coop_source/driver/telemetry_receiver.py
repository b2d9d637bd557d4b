"""Receives the reports of tasks in the reader process: a UDP socket, and a thread that reads it.

Reports come over a network. The receiver drops each report that this reader's key did not sign; `telemetry_reports`
checks the others. Without a socket no report arrives, and the planner guesses more.
"""

import logging
import os
import secrets
import socket
from collections.abc import Iterable
from threading import Lock, Thread
from time import monotonic

from coordinator.progress.slices import Slice
from coordinator.telemetry import SliceCost
from spark_coop_source.driver.telemetry_reports import LatestReports
from spark_coop_source.telemetry.report import MOST_BYTES, ReportTo, decoded

log = logging.getLogger(__name__)

_BUFFER = 4 * 1024 * 1024  # or the system's limit: the reports of many small slices come at once


class TelemetryReceiver:
    """Receives the reports of one reader's tasks. One thread listens; the reader's own calls the methods."""

    def __init__(self, towards: Iterable[str], concurrency: int) -> None:
        """`towards`: host:port of servers that executors also reach. The route to them decides the announced address.

        `concurrency`: threads of the user's function in each task.
        """
        self._towards = tuple(towards)
        self._key = secrets.token_bytes(32)
        self._tried = False
        self._closed = False
        self._socket: socket.socket | None = None
        self._host = ""
        self._thread = Thread(target=self._listen, name="coop-kafka-telemetry", daemon=True)
        self._lock = Lock()
        self._latest = LatestReports(concurrency)  # guarded by the lock

    def report_to(self, slices: Iterable[Slice], *, trial: bool = False) -> ReportTo | None:
        """The address for the reports of tasks that read `slices`; None if no socket can be opened."""
        if not self._tried:
            self._tried = True
            self._open()
        if self._socket is None:
            return None
        with self._lock:
            plan = self._latest.open(slices, _now_ms())
        return ReportTo(self._host, self._socket.getsockname()[1], plan, self._key, trial)

    def take(self) -> list[SliceCost]:
        """The latest cost of each slice that was reported since the last call, in the order of slices."""
        with self._lock:
            return self._latest.take()

    def close(self) -> None:
        """Close the socket and end the thread."""
        if self._socket is None:
            return
        self._closed = True
        here = "::1" if self._socket.family == socket.AF_INET6 else "127.0.0.1"
        self._socket.sendto(b"", (here, self._socket.getsockname()[1]))  # wakes the thread
        self._thread.join()
        self._socket.close()
        self._socket = None

    def _open(self) -> None:
        try:
            self._host, family = announced(self._towards)
            opened = socket.socket(family, socket.SOCK_DGRAM)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            opened.bind(("", 0))
        except OSError as error:
            log.warning("tasks cannot report the costs of slices: no UDP socket (%s)", error)
            return
        self._socket = opened
        self._thread.start()

    def _listen(self) -> None:
        while self._socket is not None:
            datagram = self._socket.recv(MOST_BYTES)
            if self._closed:
                return
            report = decoded(datagram, self._key)
            if report is not None:
                with self._lock:
                    self._latest.note(report, _now_ms())


def announced(towards: Iterable[str]) -> tuple[str, socket.AddressFamily]:
    """An address at which others reach this host: Spark's own choice, or the address on the route to a server.

    Asks the routing table and sends nothing. Raises `OSError` if it can resolve no server's name.
    """
    chosen = os.environ.get("SPARK_LOCAL_IP")
    places = [(chosen, "9")] if chosen else [_split(server) for server in towards]
    failure: OSError = OSError("no server to look towards")
    for host, port in places:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0]), family
        except OSError as error:
            failure = error
    raise failure


def _split(server: str) -> tuple[str, str]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), port


def _now_ms() -> float:
    return monotonic() * 1000
