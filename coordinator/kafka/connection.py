"""One connection to Kafka: opened at first use, opened again after a passing failure, closed once.

Knows how to open kafka-python, and how it fails; nothing of offsets or groups. Only one thread at a time may use it;
kafka-python does the IO in a daemon thread of its own.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaError, SaslAuthenticationFailedError
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection as KafkaNetConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from coordinator.errors import UnknownTopicError
from coordinator.kafka import internals
from coordinator.kafka.client import client_arguments
from coordinator.kafka.errors import explained, is_refusal, unreachable, unusable_settings
from coordinator.subscription import TopicPartition

FIRST_CONTACT_MS = 10_000
"""A wrong address fails within this time, unless `bootstrap_timeout_ms` is set."""

RECONNECT_MS = 30_000
"""After a first answer the address is right. From then on a restart of the broker may take this long."""

BACKOFF_MS = 1_000
"""Longest pause between two attempts to connect. It is Java's default; kafka-python's is 30 s."""

ENDED_LOGINS = 3
"""This many connections in a row that end during the login mean wrong credentials. Fewer may be a broker that stops."""

ANSWER_BYTES_MAX = 2**31 - 1
"""The longest answer of Kafka's protocol, for clients that read records: one record batch always comes whole.

kafka-python's own limit of 100 MB stays where none are read. It tells another server's answer from Kafka's.
"""

T = TypeVar("T")


@dataclass(slots=True)
class Session:
    """An open connection, and the known leaders of partitions."""

    admin: KafkaAdminClient
    manager: KafkaConnectionManager
    leaders: dict[TopicPartition, int] = field(default_factory=dict)


class KafkaConnection:
    """Sends requests to Kafka, each retry over a new connection (as Spark's offset reader does)."""

    def __init__(self, kafka: Mapping[str, object], *, retries: int, retry_interval_ms: int) -> None:
        self._kafka = kafka
        self._retries = retries
        self._retry_interval_s = retry_interval_ms / 1000
        self._session: Session | None = None
        self._answered_before = False

    def ask(self, what: str, question: Callable[[Session], T]) -> T:
        """The result of `question`; `what` names the requested thing in errors.

        An unreachable broker ends it after `FIRST_CONTACT_MS`. It retries `retries` times after a passing error of a
        broker. It also retries an unknown topic, because a new topic may not have reached that broker.
        """
        retries_left = self._retries
        while True:
            session = self._open()
            try:
                return question(session)
            except (KafkaError, OSError, UnknownTopicError) as error:
                self.close()
                failure = (
                    error if isinstance(error, UnknownTopicError) else explained(error, what, servers_of(self._kafka))
                )
                if not retries_left or not (failure.retriable or isinstance(failure, UnknownTopicError)):
                    raise failure from None
            retries_left -= 1
            time.sleep(self._retry_interval_s)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        session, self._session = self._session, None
        if session is not None:
            session.admin.close()

    def _open(self) -> Session:
        if self._session is None:
            # The consumer's settings that an admin client does not have are left out.
            known = {k: v for k, v in client_arguments(self._kafka).items() if k in KafkaAdminClient.DEFAULT_CONFIG}
            patience_ms = RECONNECT_MS if self._answered_before else FIRST_CONTACT_MS
            own = {"bootstrap_timeout_ms": patience_ms, "reconnect_backoff_max_ms": BACKOFF_MS, **known}
            self._session = Session(*open_client(KafkaAdminClient, own))
            self._answered_before = True
        return self._session


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's connections, with the reason of the last failed attempt.

    If a start fails, kafka-python reports only a timeout. Until then it repeats wrong credentials, which can lock an
    account. Here a refusal ends the start at once. Often kafka-python drops the refusal, when it arrives together with
    the end of the connection. So several ends during the login count as a refusal.
    """

    def __init__(self, net: NetworkSelector, **settings: object) -> None:
        super().__init__(net, **settings)
        self.last_failure: BaseException | None = None
        self._ended_logins = 0

    def get_connection(self, node_id: object, *args: object, **how: object) -> object:
        if self.last_failure is not None and is_refusal(self.last_failure):
            raise self.last_failure
        connection = super().get_connection(node_id, *args, **how)
        if not connection.init_future.is_done:
            connection.init_future.add_callback(self._forget)
            connection.init_future.add_errback(lambda failure: self._remember(failure, connection))
        return connection

    def _forget(self, _: object) -> None:
        self.last_failure, self._ended_logins = None, 0

    def _remember(self, failure: BaseException, connection: KafkaNetConnection) -> None:
        self.last_failure = failure
        asked_for_versions = connection.broker_version_data is not None  # sent before a login
        if connection.sasl_enabled and asked_for_versions and isinstance(failure, KafkaConnectionError):
            self._ended_logins += 1
            if self._ended_logins == ENDED_LOGINS:
                self.last_failure = SaslAuthenticationFailedError("the broker ends the connection during the login")


def open_client(
    kind: Callable[..., T], own: Mapping[str, object], topics: Iterable[str] = ()
) -> tuple[T, KafkaConnectionManager]:
    """A client of kafka-python, of class `kind`, after a first answer; `own` are its keyword arguments.

    That answer names the leaders of `topics`. Raises a failure after `bootstrap_timeout_ms` at most, a refusal at once.
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


def servers_of(kafka: Mapping[str, object]) -> str:
    """The bootstrap servers as text; the argument may be text or a list."""
    servers = kafka.get("bootstrap_servers", "localhost:9092")
    return ",".join(map(str, servers)) if isinstance(servers, list | tuple) else str(servers)
