"""Every error of kafka-python has a row: our error, its words, a remedy, and what differs at the next try."""

from collections import Counter
from contextlib import closing

import pytest
from kafka import errors

from coordinator.errors import CoopKafkaError, KafkaUnavailableError, LogError
from coordinator.kafka.connection import KafkaConnection, Session
from coordinator.kafka.error_codes import ROWS, FailureKind, row_of
from coordinator.kafka.errors import explained, is_passing, is_refusal
from coordinator.kafka.tokens import TokenEndpointError
from coordinator.values.subscription import TopicPartition
from topics import Kafka

KINDS: dict[str, type[BaseException]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BaseException)
}
OTHERS = {kind.__name__: kind for kind in (OSError, TimeoutError, TokenEndpointError)}
NAMED = Counter(name for row in ROWS for name in row.kinds.split())


def made(kind: type[BaseException]) -> BaseException:
    return kind({}) if kind is errors.LogTruncationError else kind()


def ours(kind: type[BaseException]) -> CoopKafkaError:
    return explained(made(kind), "ends", "b:9092")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_class_of_kafka_pythons_list_has_a_row_of_its_own(kind: type[BaseException]) -> None:
    assert kind.__name__ in NAMED, "no generic text stands for it"
    row, error = row_of(kind), ours(kind)
    assert type(error) is row.error
    assert error.what.startswith(f"Kafka at b:9092 {row.what}, asked for ends ({kind.__name__}")
    assert error.remedy == row.remedy
    assert is_passing(made(kind)) == isinstance(error, KafkaUnavailableError)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS.values() if getattr(kind, "retriable", False)], ids=lambda kind: kind.__name__
)
def test_what_kafka_python_calls_passing_is_asked_again_unless_we_never_send_it(kind: type[BaseException]) -> None:
    assert is_passing(made(kind)) or row_of(kind).what.startswith(
        ("gave an answer to a request", "does not know a topic")
    )


def test_each_name_stands_once_and_is_a_class() -> None:
    assert Counter([*KINDS, *OTHERS]) == NAMED


BAD_HOUR: dict[type[BaseException], tuple[bool, str, str]] = {
    errors.KafkaConnectionError: (True, "did not answer", "brokers run"),
    errors.RequestTimedOutError: (True, "did not answer", "brokers run"),
    TimeoutError: (False, "did not answer", "brokers run"),
    errors.BrokerNotAvailableError: (True, "does not know the broker", "start all brokers"),
    errors.NotControllerError: (True, "new controller", "election"),
    TokenEndpointError: (True, "token", "kafka.sasl.oauthbearer.token.endpoint.url"),
    errors.NotLeaderForPartitionError: (False, "leader", "copies"),
    errors.FencedLeaderEpochError: (False, "leader", "copies"),
    errors.OffsetNotAvailableError: (False, "end of its log", "fetched"),
    errors.ListenerNotFoundError: (False, "listener", "advertised.listeners"),
    errors.KafkaStorageError: (False, "disk", "stop the broker"),
    errors.CoordinatorNotAvailableError: (False, "coordinator", "__consumer_offsets"),
    errors.CoordinatorLoadInProgressError: (False, "still loads", "wait"),
    errors.UnstableOffsetCommitError: (False, "transaction", "transaction.timeout.ms"),
    errors.NotEnoughReplicasError: (False, "min.insync.replicas", "start the brokers"),
    errors.ThrottlingQuotaExceededError: (False, "throttles", "quotas"),
    errors.UnknownError: (False, "an error of its own", "broker's log"),
}


@pytest.mark.parametrize(("kind", "wanted"), BAD_HOUR.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_bad_hour_is_named_with_its_remedy_and_asked_again(
    kind: type[BaseException], wanted: tuple[bool, str, str]
) -> None:
    anew, what, remedy = wanted
    error = ours(kind)
    assert isinstance(error, KafkaUnavailableError)
    assert (row_of(kind).anew, what in error.what, remedy in error.remedy) == (anew, True, True)


ENDS: dict[type[BaseException], tuple[str, str, str]] = {
    errors.SaslAuthenticationFailedError: ("KAFKA_ACCESS_DENIED", "refused the credentials", "sasl"),
    errors.GroupAuthorizationFailedError: ("KAFKA_ACCESS_DENIED", "does not permit", "READ on the group"),
    errors.ClusterAuthorizationFailedError: ("KAFKA_ACCESS_DENIED", "cluster", "IDEMPOTENT_WRITE"),
    errors.TransactionalIdAuthorizationFailedError: ("KAFKA_ACCESS_DENIED", "transactional id", "WRITE"),
    errors.UnknownTopicOrPartitionError: ("UNKNOWN_TOPIC_OR_PARTITION", "topic", "correct the name"),
    errors.OffsetMetadataTooLargeError: ("KAFKA_ERROR", "metadata", "offset.metadata.max.bytes"),
    errors.MessageSizeTooLargeError: ("RECORD_REFUSED", "size", "max.message.bytes"),
    errors.ProducerFencedError: ("GROUP_BUSY", "another redrive", "again"),
    errors.UnsupportedVersionError: ("KAFKA_ERROR", "too old", "docs/deployment.md"),
    errors.KafkaProtocolError: ("KAFKA_ERROR", "not Kafka's", "kafka.security.protocol"),
    errors.InvalidReplicationFactorError: ("KAFKA_ERROR", "does not create", "default.replication.factor"),
}


@pytest.mark.parametrize(("kind", "wanted"), ENDS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_no_retry_cures_ends_by_name(kind: type[BaseException], wanted: tuple[str, str, str]) -> None:
    name, what, remedy = wanted
    error = ours(kind)
    assert (error.name, what in error.what, remedy in error.remedy) == (name, True, True)
    assert is_refusal(made(kind)) == (name == "KAFKA_ACCESS_DENIED")


def test_a_code_that_kafka_python_does_not_know_is_shown_and_asked_again() -> None:
    error = ours(errors.for_code(999))
    assert isinstance(error, KafkaUnavailableError)
    assert "(UnrecognizedBrokerError 999" in error.what


PASSING = {row.what + str(row.anew): row for row in ROWS if row.error is KafkaUnavailableError}


@pytest.mark.parametrize("row", PASSING.values(), ids=PASSING)
def test_the_next_try_differs(kafka: Kafka, row: FailureKind) -> None:
    """By a new connection; or by leaders and coordinators that are asked for again."""
    failure = {**KINDS, **OTHERS}[row.kinds.split()[0]]()
    tries, tp = list[tuple[Session, int, int]](), TopicPartition("t", 0)

    def question(session: Session) -> None:
        coordinators = session.manager.cluster._coordinators
        tries.append((session, len(session.leaders), len(coordinators)))
        if len(tries) == 1:
            session.leaders[tp] = 1
            coordinators["group", "g"] = 1
            raise failure

    with closing(KafkaConnection({"bootstrap_servers": kafka.bootstrap}, retries=1, retry_interval_ms=0)) as opened:
        opened.ask("ends", question)
    (first, *_), (second, *known) = tries
    assert (second is not first) == row.anew
    assert known == [0, 0], "nothing of the first try is used again"


def test_what_ends_is_asked_once(kafka: Kafka) -> None:
    tries = list[Session]()

    def question(session: Session) -> None:
        tries.append(session)
        raise kafka_error

    kafka_error = KINDS["OffsetMetadataTooLargeError"]()
    with (
        closing(KafkaConnection({"bootstrap_servers": kafka.bootstrap}, retries=3, retry_interval_ms=0)) as opened,
        pytest.raises(LogError, match="metadata"),
    ):
        opened.ask("ends", question)
    assert len(tries) == 1
