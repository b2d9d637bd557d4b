"""Answers the tasks of a query in the reader process: a TCP server, with a thread for each task that is connected.

Tasks report costs, and ask for their ends. Messages come over a network: the server drops each connection whose frame
this reader's key did not sign, and `telemetry_reports` checks the reports. Without a server, the planner guesses more
and no task ends early.
"""

import logging
import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Protocol, cast

from coordinator.errors import CoopKafkaError
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.progress.ends import Ends
from coordinator.progress.failing import NO_FAILURES, Failures
from coordinator.progress.slices import Slice
from spark_coop_source.driver.telemetry_reports import LatestReports
from spark_coop_source.telemetry.frames import framed, next_text
from spark_coop_source.telemetry.questions import TaskAnswer, TaskQuestion
from spark_coop_source.telemetry.report import ReportTo, decoded

log = logging.getLogger(__name__)

FIRST_FRAME_S = 10.0
"""A connection without a signed frame for so long is closed."""

GONE_S = 3.0
"""How long the end of a reader waits for its tasks. Spark kills the Python worker of a cancelled task after 2 s."""

UNHEARD = 4
"""After so many plans without a message no task is asked to connect: a firewall lets each wait for seconds."""


class TaskEndings(Protocol):
    """The member's part in the ends of tasks; see `Service`."""

    def agreed_ends(self, digest: str, task: int) -> Ends | None:
        """The ends at which an attempt of a task must stop."""

    def end_task(self, digest: str, task: int, ends: Ends, failures: Failures = NO_FAILURES) -> Ends:
        """An attempt of a task has ended its slices here."""


class TaskServer:
    """Serves the tasks of one reader. Its threads receive and answer; the reader's own calls the methods."""

    def __init__(
        self,
        towards: Iterable[str],
        concurrency: int,
        ending: TaskEndings | None = None,
        ports: Sequence[int] = (0,),
        *,
        guessed_slots: int | None = None,
    ) -> None:
        """`towards`: host:port of servers that executors also reach. The route to them decides the announced address.

        `concurrency`: threads of the user's function in each task. `ports`: the first free one is used; 0 is any.
        `guessed_slots`: the cores of this host, if the user named no slots.
        """
        self._key = secrets.token_bytes(32)
        self._lock = Lock()
        self._latest = LatestReports(concurrency)  # guarded by the lock
        self._heard, self._unheard = False, 0
        self._guessed_slots = guessed_slots
        self._ending = ending
        self._server: _Server | None = None
        try:
            self._host, family = announced(tuple(towards))
            self._server = _first_free(self, family, ports)
            self._port = int(self._server.server_address[1])
        except OSError as error:
            named = "" if ports[0] == 0 else f" at reportPort {ports[0]}-{ports[-1]}; name more ports"
            log.warning("tasks cannot reach the reader process: no TCP socket (%s)%s", error, named)
            return
        Thread(target=self._server.serve_forever, args=(0.1,), name="coop-kafka-tasks", daemon=True).start()

    def report_to(self, slices: Iterable[Slice]) -> ReportTo | None:
        """The address for tasks that read `slices`; None if the server is closed, or tasks do not reach it."""
        if not self._reached() or self._server is None:
            return None
        with self._lock:
            plan = self._latest.open(slices, _now_ms())
        return ReportTo(self._host, self._port, plan, self._key)

    def _reached(self) -> bool:
        """Whether a task has sent a message, or may still do so."""
        self._unheard += not self._heard
        if self._unheard == UNHEARD + 1 and not self._heard:
            log.warning(
                "no task has reached the reader process at %s port %d: batches keep to batchTimeBudget less well, and"
                " the cost of keys is unknown. Remedy: let executors connect to this host, or set SPARK_LOCAL_IP to an"
                " address that they reach.",
                self._host,
                self._port,
            )
        return self._heard or self._unheard <= UNHEARD

    def take(self) -> list[SliceCost]:
        """The latest cost of each slice that was reported since the last call, in the order of slices."""
        with self._lock:
            return self._latest.take()

    def next_batch(self) -> None:
        """Drop the connections that are left of the last batch: from now on, the tasks are those of the next one."""
        if self._server is not None:
            self._server.drop()

    def close(self, within_s: float = 0.0) -> str:
        """Close all connections and end the threads. Returns who may read on, in words; empty if all have stopped.

        A task whose connection ends stops, and closes it too (rule: leave-keeps-unconfirmed).
        """
        open_still: list[str] = []
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            open_still = self._server.end(within_s)
            self._server = None
        if open_still:
            return f"a task on {', '.join(sorted(set(open_still)))} has not stopped, and may still read"
        return "no task has reached this process, so some may still read" if self._unheard and not self._heard else ""

    # -- threads of connections --------------------------------------------------------------------

    def heard_from(self, address: str) -> None:
        """Warn once if tasks run on another host, and the slots are only the cores of this one."""
        if self._guessed_slots is not None and address != self._host and not ip_address(address).is_loopback:
            log.warning(
                "tasks run on %s and perhaps on more hosts, and slots is %d, the cores of this host: executors beyond "
                "them stay idle. Remedy: set slots to the number of tasks that all executors run at once.",
                address,
                self._guessed_slots,
            )
            self._guessed_slots = None

    def receive(self, text: bytes) -> bytes | None:
        """Take one message of a task; the answer, if it is a question."""
        self._heard = True
        if text.startswith(b"["):
            report = decoded(text)
            if report is not None:
                with self._lock:
                    self._latest.note(report, _now_ms())
            return None
        question = TaskQuestion.parse(text)
        return None if question is None else self._answer(question).text

    def next_text(self, handler: StreamRequestHandler) -> bytes | None:
        """The next message of a connection; None at its end."""
        return next_text(handler.rfile, self._key)

    def framed(self, text: bytes) -> bytes:
        """The frame of an answer."""
        return framed(text, self._key)

    def _answer(self, question: TaskQuestion) -> TaskAnswer:
        if self._ending is None:
            return TaskAnswer(question.number, refused="no task of this query ends early")
        try:
            if question.ends is None:
                return TaskAnswer(question.number, self._ending.agreed_ends(question.batch, question.task))
            batch, task = question.batch, question.task
            return TaskAnswer(question.number, self._ending.end_task(batch, task, question.ends, question.failures))
        except KeyError:
            return TaskAnswer(question.number, refused="its batch is over")
        except CoopKafkaError as error:
            return TaskAnswer(question.number, refused=str(error))


class _Connection(StreamRequestHandler):
    """The connection of one task."""

    def handle(self) -> None:
        server = cast(_Server, self.server).of
        with suppress(OSError):
            self.connection.settimeout(FIRST_FRAME_S)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # else a lost host keeps a thread
            while (text := server.next_text(self)) is not None:
                self.connection.settimeout(None)  # a task may work on one record for hours
                server.heard_from(self.client_address[0])
                answer = server.receive(text)
                if answer is not None:
                    self.wfile.write(server.framed(answer))


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    disable_nagle_algorithm = True
    request_queue_size = 1_024  # all tasks of a batch begin at once

    def __init__(self, of: TaskServer, family: socket.AddressFamily, port: int) -> None:
        self.of = of
        self.allow_reuse_address = port != 0  # else the port of a driver that has just ended is busy for a minute
        self.address_family = family
        self._open = dict[socket.socket, str]()  # with the address of the task
        self._closed = Condition()
        super().__init__(("", port), _Connection)

    def process_request(self, request: object, client_address: object) -> None:
        with self._closed:
            self._open[cast(socket.socket, request)] = str(cast(tuple[object, ...], client_address)[0])
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def shutdown_request(self, request: object) -> None:
        super().shutdown_request(request)  # type: ignore[arg-type]
        with self._closed:
            self._open.pop(cast(socket.socket, request), None)
            self._closed.notify_all()

    def end(self, within_s: float) -> list[str]:
        """Tell every task to stop; the addresses of those that have not closed their connections in time."""
        self._shut(socket.SHUT_WR)
        with self._closed:
            self._closed.wait_for(lambda: not self._open, within_s)
            left = list(self._open.values())
        self.drop()
        return left

    def drop(self) -> None:
        """End all connections."""
        self._shut(socket.SHUT_RDWR)

    def _shut(self, how: int) -> None:
        with self._closed:
            connections = tuple(self._open)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(how)  # wakes its thread


def _first_free(of: TaskServer, family: socket.AddressFamily, ports: Sequence[int]) -> _Server:
    for port in ports[:-1]:
        with suppress(OSError):
            return _Server(of, family, port)
    return _Server(of, family, ports[-1])


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
