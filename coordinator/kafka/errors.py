"""Translates kafka-python's errors to this project's: the refused request, and the remedy.

Knows kafka-python's exception classes; does no IO and keeps no state. Messages never contain credentials: only server
names, class names and the broker's own text.
"""

import re
import ssl
from collections.abc import Iterable
from difflib import get_close_matches

from kafka import errors as kafka

from coordinator.errors import (
    CoopKafkaError,
    GroupTypeError,
    InvalidOptionError,
    KafkaAccessError,
    KafkaUnavailableError,
    LogError,
    RecordRefusedError,
    UnknownTopicError,
)
from coordinator.kafka.error_codes import row_of
from coordinator.values.subscription import TopicPartition


def is_refusal(error: BaseException) -> bool:
    """Whether a retry with the same settings must fail again: wrong credentials, an unknown certificate."""
    return _bad_certificate(error) or row_of(type(error)).error is KafkaAccessError


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed later, perhaps at another broker."""
    return not _bad_certificate(error) and row_of(type(error)).error is KafkaUnavailableError


def _bad_certificate(error: BaseException) -> bool:
    """kafka-python raises its own connection error while it handles the TLS error."""
    return isinstance(error.__context__, ssl.SSLCertVerificationError)


def explained(error: BaseException, what: str, servers: str) -> CoopKafkaError:
    """This project's error for `error`; `what` is the requested thing, such as `the ends of 3 partitions`."""
    return _named(error, servers, f", asked for {what}")


def _named(error: BaseException, servers: str, asked: str = "") -> CoopKafkaError:
    if _bad_certificate(error):
        return KafkaAccessError(
            f"the certificate of Kafka at {servers} is not trusted ({error_text(error)})",
            "check kafka.ssl.truststore.location, and that the certificate names the host in kafka.bootstrap.servers",
        )
    row = row_of(type(error))
    return row.error(f"Kafka at {servers} {row.what}{asked} ({error_text(error)})", row.remedy)


def unreachable(servers: str, seconds: float, last: BaseException) -> CoopKafkaError:
    """No broker could be reached in time; `last` is the reason of the last failed attempt to connect."""
    if is_refusal(last):
        return _named(last, servers)
    return KafkaUnavailableError(f"no Kafka broker answered at {servers} within {seconds:g} s ({error_text(last)})")


def unusable_settings(error: BaseException, servers: str) -> InvalidOptionError:
    """Settings that kafka-python cannot use at all, detected before any connection."""
    return InvalidOptionError(
        f"the Kafka client cannot be set up for {servers!r} ({error_text(error)})",
        "check kafka.bootstrap.servers, which is host:port[,host:port], and the other kafka.* options",
    )


def unknown_topics(names: Iterable[str], existing: Iterable[str]) -> UnknownTopicError:
    """Topics that were named but do not exist, with the nearest names that do."""
    missing, known = sorted(names), sorted(existing)
    near = sorted({match for name in missing for match in get_close_matches(name, known, n=2)})
    hint = f"did you mean {', '.join(near)}" if near else "create the topic, or check the spelling"
    return UnknownTopicError(f"Kafka has no topic {', '.join(repr(name) for name in missing)}", hint)


def unknown_partitions(partitions: Iterable[TopicPartition]) -> UnknownTopicError:
    """Partitions without a leader because they do not exist."""
    return UnknownTopicError(
        f"Kafka has no partition {', '.join(map(str, sorted(partitions)))}",
        "check the partition numbers; after a topic was deleted, its query needs a new checkpoint",
    )


def other_group_type(group: str, kind: str = "") -> GroupTypeError:
    """A group of Kafka that holds no offsets of consumers."""
    is_one = f"is a {kind} group" if kind else "is no group of consumers"
    return GroupTypeError(
        f"Kafka's group {group!r} {is_one}, so it cannot hold the stable offsets of a group of that name, which prove "
        "positions if Redis is lost"
    )


def forbidden_topic(topic: str) -> KafkaAccessError:
    """The user may not describe or read a topic."""
    return KafkaAccessError(f"Kafka does not permit to read topic {topic!r}", "grant this user READ and DESCRIBE on it")


def no_right_to_write(topic: str) -> KafkaAccessError:
    """The user lacks the right WRITE on a topic."""
    return KafkaAccessError(
        f"Kafka does not permit this user to write to topic {topic!r}",
        f"grant this user WRITE and DESCRIBE on topic {topic!r}; before Kafka 2.8 also IDEMPOTENT_WRITE on the cluster",
    )


def not_written(error: BaseException, record: str, topic: str, size: int, servers: str) -> CoopKafkaError:
    """The error for a `record` of `size` bytes that Kafka did not take."""
    if isinstance(error, kafka.TopicAuthorizationFailedError | kafka.ClusterAuthorizationFailedError):
        return no_right_to_write(topic)
    found = explained(error, f"a write of {record} ({size} bytes) to topic {topic!r}", servers)
    return found if type(found) is not LogError else RecordRefusedError(found.what, found.remedy)


def error_text(error: BaseException) -> str:
    """Class and text of an error in one line; kafka-python repeats the class, and a number, in some texts."""
    name, text = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, kafka.UnknownError) and error.errno != kafka.UnknownError.errno:
        name = f"{name} {error.errno}"
    text = re.sub(rf"^(\[Error -?\d+\]\s*)?({name}\b:?\s*)?", "", text).rstrip(".")
    return f"{name}: {text}" if text else name
