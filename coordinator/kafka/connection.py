"""One connection to Kafka: opened at first use, patient with brokers that are away, closed once.

    a broker says no, for now       ask for leaders and coordinators again, then these
    no answer, or no connection     close, connect by another bootstrap server, ask again
    anything else                   an error that the user can read

`error_codes` decides which.
Knows how to open kafka-python, and how it fails; nothing of offsets or groups. Only one thread at a time may use it;
kafka-python does the IO in a daemon thread of its own.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

from kafka import KafkaAdminClient
from kafka.errors import (
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    NotControllerError,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
)
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection as KafkaNetConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from coordinator.errors import CoopKafkaError, KafkaUnavailableError, UnknownTopicError
from coordinator.kafka import internals
from coordinator.kafka.client import arguments_of
from coordinator.kafka.error_codes import row_of
from coordinator.kafka.errors import explained, is_refusal, unreachable, unusable_settings
from coordinator.values.subscription import TopicPartition

_log = logging.getLogger(__name__)

SHORT_PATIENCE_MS = 10_000
"""The patience of commands, which a person waits for. They end with one line, and say nothing before."""

FIRST_CONTACT_MS = 60_000
"""The most patience with an address that never answered: it is more likely wrong than away."""

BOOTSTRAP_MS = 5_000
"""The longest attempt to connect, unless `bootstrap_timeout_ms` is set."""

NEXT_SERVER_MS = 1_000
"""The wait for the first answer of one of several bootstrap servers: it may be frozen. Each later attempt gets as much
more. A server that has answered is not frozen: its login has all the time that is left."""

REQUEST_MS = 8_000
"""The wait for an answer, unless `request_timeout_ms` is set: then the broker is taken for away. A line follows,
so no call waits for 10 s without one."""

BACKOFF_MS = 1_000
"""Longest pause between two attempts to connect. It is Java's default; kafka-python's is 30 s."""

IN_TIME: Mapping[str, object] = {
    "bootstrap_timeout_ms": BOOTSTRAP_MS,
    "reconnect_backoff_max_ms": BACKOFF_MS,
    "request_timeout_ms": REQUEST_MS,
}
"""Settings of each client that a member waits for."""

BRIEF_S = 1.0
"""The wait for an answer that is not worth more: of the group in which stable offsets are mirrored."""

SHORTLY_S = 3.0
"""An outage that is over by then is not worth a line."""

ENDED_LOGINS = 3
"""This many connections in a row that end during the login mean wrong credentials. Fewer may be a broker that stops."""

ANSWER_BYTES_MAX = 2**31 - 1
"""The longest answer of Kafka's protocol, for clients that read records: one record batch always comes whole.

kafka-python's own limit of 100 MB stays where none are read. It tells another server's answer from Kafka's.
"""

T = TypeVar("T")


@dataclass(slots=True)
class Session:
    """An open connection, the known leaders of partitions, and questions that leaders have not answered yet.

    Also which brokers have the log of a partition without a leader, and where brokers are, or were when they lived.
    """

    admin: KafkaAdminClient
    manager: KafkaConnectionManager
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    pending: dict[object, Future] = field(default_factory=dict)
    copies: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    addresses: dict[int, str] = field(default_factory=dict)


class KafkaConnection:
    """Sends requests to Kafka, again and again while brokers are away."""

    def __init__(
        self,
        kafka: Mapping[str, object],
        *,
        retries: int,
        retry_interval_ms: int,
        patience_ms: int = SHORT_PATIENCE_MS,
    ) -> None:
        self._kafka = kafka
        self._retries = retries
        self._retry_interval_s = retry_interval_ms / 1000
        self._patience_ms = patience_ms
        self._session: Session | None = None
        self._addresses: dict[int, str] = {}
        self._answered_before = False

    def ask(self, what: str, question: Callable[[Session], T], *, patient: bool = True) -> T:
        """The result of `question`; `what` names the requested thing in errors.

        After a passing failure it asks again, `retries` times at least, and for `patience_ms` at least. It also retries
        an unknown topic, because a new topic may not have reached that broker. If not `patient`, it asks once, and
        waits for `BRIEF_S`: the answer is not worth that a batch waits for it.
        """
        began, retries, warned = time.monotonic(), self._retries, False
        patience_s = (self._patience_ms if self._answered_before else min(self._patience_ms, FIRST_CONTACT_MS)) / 1000
        while True:
            try:
                session = self._open()
                asked = partial(_asked, question, session)
                answer = asked() if patient else _briefly(asked)
            except (CoopKafkaError, KafkaError, OSError) as error:
                failure = self._after(error, what)
            else:
                if warned:
                    _log.warning("Kafka answers again, after %.0f s", time.monotonic() - began)
                return answer
            away = isinstance(failure, KafkaUnavailableError)
            passing = patient and (away or isinstance(failure, UnknownTopicError))
            if not passing or (retries <= 0 and not (away and time.monotonic() - began < patience_s)):
                raise failure from None
            if away and not warned and time.monotonic() - began >= SHORTLY_S and patience_s > SHORT_PATIENCE_MS / 1000:
                warned = True
                _log.warning("%s; asked again for up to %.0f s", failure.what, patience_s)
            retries -= 1
            time.sleep(self._retry_interval_s)

    @property
    def leaders(self) -> Mapping[TopicPartition, int]:
        """The leaders of partitions by the last answers; none while no connection is open."""
        return self._session.leaders if self._session else {}

    def _after(self, error: BaseException, what: str) -> CoopKafkaError:
        """This project's error. Whatever is asked next is asked another way."""
        session = self._session
        if not isinstance(error, CoopKafkaError) and row_of(type(error)).anew:
            self.close()
        elif session is not None:
            session.leaders.clear()
            internals.forget_coordinators(session.manager)
        if isinstance(error, CoopKafkaError):
            return error
        return explained(error, what, servers_of(self._kafka))

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        session, self._session = self._session, None
        if session is not None:
            session.admin.close()

    def _open(self) -> Session:
        """The open connection, or a new one."""
        if self._session is None:
            opened = open_client(KafkaAdminClient, {**IN_TIME, **arguments_of(KafkaAdminClient, self._kafka)}, ())
            self._session = Session(*opened, addresses=self._addresses)
            self._answered_before = True
        return self._session


def _asked(question: Callable[[Session], T], session: Session) -> T:
    """The result of `question`. kafka-python raises a bare error if the controller moves twice meanwhile."""
    try:
        return question(session)
    except RuntimeError as error:
        if str(error) != internals.NO_CONTROLLER:
            raise
        raise NotControllerError(str(error)) from None


def _briefly(question: Callable[[], T]) -> T:
    """The result of `question`. After `BRIEF_S` a `TimeoutError`; then a thread still waits for the answer."""
    answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put((question(), None))
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            answers.put((None, error))

    threading.Thread(target=ask, name="coop-kafka-brief", daemon=True).start()
    try:
        answer, error = answers.get(timeout=BRIEF_S)
    except Empty:
        raise TimeoutError(f"no answer within {BRIEF_S:g} s") from None
    if error is not None:
        raise error
    return cast(T, answer)


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's connections, with the reason of the last failed attempt.

    If a start fails, kafka-python reports only a timeout. Until then it repeats wrong credentials, which can lock an
    account. Here a refusal ends the start at once. Often kafka-python drops the refusal, when it arrives together with
    the end of the connection. So several ends during the login count as a refusal.

    kafka-python gives all its time to one bootstrap server, which may be frozen. Here the others get their turn.
    """

    def __init__(self, net: NetworkSelector, **settings: object) -> None:
        super().__init__(net, **settings)
        self.last_failure: BaseException | None = None
        self._ended_logins = 0

    def get_connection(self, node_id: object, timeout_ms: float | None = None, **how: object) -> object:
        if self.last_failure is not None and is_refusal(self.last_failure):
            raise self.last_failure
        first_answer_ms = None if timeout_ms is None else self._its_turn(node_id)
        connection = super().get_connection(node_id, timeout_ms, **how)
        if first_answer_ms is not None:
            self._net.call_at(time.monotonic() + first_answer_ms / 1000, lambda: _close_if_frozen(connection))
        if not connection.init_future.is_done:
            connection.init_future.add_callback(self._forget)
            connection.init_future.add_errback(lambda failure: self._remember(failure, connection))
        return connection

    def _its_turn(self, node_id: object) -> float | None:
        """The time for the first answer of one of several servers. Raises while another one has failed less often."""
        servers = [broker.node_id for broker in self.cluster.bootstrap_brokers()]
        failed = {server: self._backoff.get(server, (0,))[0] for server in servers}
        if failed.get(node_id, 0) > min(failed.values()):
            raise NodeNotReadyError(node_id)
        return NEXT_SERVER_MS * (1 + failed.get(node_id, 0)) if len(servers) > 1 else None

    def _forget(self, _: object) -> None:
        self.last_failure, self._ended_logins = None, 0

    def _remember(self, failure: BaseException, connection: KafkaNetConnection) -> None:
        self.last_failure = failure
        asked_for_versions = connection.broker_version_data is not None  # sent before a login
        if connection.sasl_enabled and asked_for_versions and isinstance(failure, KafkaConnectionError):
            self._ended_logins += 1
            if self._ended_logins == ENDED_LOGINS:
                self.last_failure = SaslAuthenticationFailedError("the broker ends the connection during the login")


def _close_if_frozen(connection: KafkaNetConnection) -> None:
    """End an attempt to connect without a first answer, which comes before the login."""
    if connection.initializing and connection.broker_version_data is None:
        connection.close(KafkaTimeoutError("no first answer"))


def open_client(
    kind: Callable[..., T], own: Mapping[str, object], topics: Iterable[str]
) -> tuple[T, KafkaConnectionManager]:
    """A client of kafka-python, of class `kind`, after a first answer; `own` are its keyword arguments.

    That answer names the leaders of `topics`; without it a client asks any broker for them, and that one may be frozen.
    Raises a failure after `bootstrap_timeout_ms` at most, a refusal at once.
    """
    settings = {**kind.DEFAULT_CONFIG, **own}  # type: ignore[attr-defined]
    try:
        net = NetworkSelector(**settings)
        manager = _Manager(net, **settings)
    except (KafkaError, ValueError, TypeError) as error:
        raise unusable_settings(error, servers_of(own)) from None
    # kafka-python 3.0.12 does not pass on this setting; without it a deleted topic would be created again, empty.
    manager.cluster.config["allow_auto_create_topics"] = settings.get("allow_auto_create_topics", False)
    internals.request_first(manager, topics)
    client = KafkaNetClient(net, manager)
    try:
        return kind(**{**own, "kafka_client": lambda **_: client}), manager
    except (KafkaError, OSError, ValueError, TypeError) as error:
        client.close()  # kafka-python leaves its thread behind
        if isinstance(error, KafkaConfigurationError | ValueError | TypeError):
            raise unusable_settings(error, servers_of(own)) from None
        timeout_s = settings["bootstrap_timeout_ms"] / 1000
        raise unreachable(servers_of(own), timeout_s, manager.last_failure or error) from None


def sent(manager: KafkaConnectionManager, request: object, leader: int, timeout_ms: float | None = None) -> Future:
    """The answer to come. Runs in kafka-python's thread.

    kafka-python reads which brokers live after a failure, and then not for five minutes.
    """
    try:
        return manager.send(request, node_id=leader, request_timeout_ms=timeout_ms)
    except UnknownBrokerIdError as error:  # a leader that lives again since then
        manager.cluster.request_update()
        return Future().failure(error)
    except (KafkaError, OSError) as error:
        return Future().failure(error)


def servers_of(kafka: Mapping[str, object]) -> str:
    """The bootstrap servers as text; the argument may be text or a list."""
    servers = kafka.get("bootstrap_servers", "localhost:9092")
    return ",".join(map(str, servers)) if isinstance(servers, list | tuple) else str(servers)
