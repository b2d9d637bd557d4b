"""Every error this project raises, in one tree.

    CoopKafkaError
    +-- ConfigurationError            what the user wrote; nothing was read, nothing committed
    |   +-- UnknownOptionError
    |   +-- InvalidOptionError
    |   +-- ConflictingOptionsError
    |   +-- MissingOptionError
    |   +-- SchemaMismatchError
    |   +-- EnvironmentMismatchError  a wrong interpreter, a missing package, two versions in one group
    |   +-- CheckpointMismatchError
    +-- LogError                      Kafka
    |   +-- KafkaUnavailableError     (retriable)
    |   +-- KafkaAccessError
    |   +-- UnknownTopicError
    |   +-- StartingOffsetError
    |   +-- DataLossError
    |   +-- FetchTimeoutError         (retriable)
    +-- StoreError                    Redis
    |   +-- RedisUnavailableError     (retriable)
    |   +-- RedisAccessError
    |   +-- RedisConfigurationError
    |   +-- StateFormatError
    |   +-- StateLostError
    +-- GroupError                    membership
        +-- UnknownGroupError
        +-- GroupBusyError
        +-- FencedMemberError
        +-- InvalidAssignmentError
            +-- ConsumerRangeFetchNotAcceptedError

Each says what happened and to what, and how to mend it. No message holds a secret: urls are
shown by `redacted`. Knows nothing of the rest of the project.
"""

from typing import ClassVar
from urllib.parse import urlsplit


class CoopKafkaError(Exception):
    """The root: what happened, and the remedy.

    `name` is the stable text that programs and log searches rely on; `retriable` says whether the
    same call can succeed later without anybody changing anything.
    """

    name: ClassVar[str] = "COOP_KAFKA_ERROR"
    retriable: ClassVar[bool] = False

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.name}: {self.what.rstrip('.')}."
        return f"{text} Remedy: {self.remedy.rstrip('.')}." if self.remedy else text


class ConfigurationError(CoopKafkaError):
    """Something the user wrote cannot be used."""

    name = "INVALID_CONFIGURATION"


class UnknownOptionError(ConfigurationError):
    """An option nobody knows; the message suggests the nearest one."""

    name = "UNKNOWN_OPTION"


class InvalidOptionError(ConfigurationError):
    """A known option with a value that cannot be used."""

    name = "INVALID_OPTION"


class ConflictingOptionsError(ConfigurationError):
    """Two options that exclude one another."""

    name = "CONFLICTING_OPTIONS"


class MissingOptionError(ConfigurationError):
    """A required option is absent."""

    name = "MISSING_OPTION"


class SchemaMismatchError(ConfigurationError):
    """The user gave a schema that is not this source's."""

    name = "SCHEMA_MISMATCH"


class EnvironmentMismatchError(ConfigurationError):
    """The Python of a Spark process is not the one this project needs."""

    name = "ENVIRONMENT_MISMATCH"


class CheckpointMismatchError(ConfigurationError):
    """The checkpoint belongs to another group, other topics, or a newer version."""

    name = "CHECKPOINT_MISMATCH"


class LogError(CoopKafkaError):
    """Kafka refused or could not answer."""

    name = "KAFKA_ERROR"


class KafkaUnavailableError(LogError):
    """No broker answered in time."""

    name = "KAFKA_UNAVAILABLE"
    retriable = True


class KafkaAccessError(LogError):
    """Kafka refused the credentials or the permission."""

    name = "KAFKA_ACCESS_DENIED"


class UnknownTopicError(LogError):
    """A subscribed topic or partition does not exist."""

    name = "UNKNOWN_TOPIC_OR_PARTITION"


class StartingOffsetError(LogError):
    """A starting or ending offset cannot be resolved against the log."""

    name = "OFFSET_NOT_AVAILABLE"


class DataLossError(LogError):
    """Records that had not been read are gone: retention, truncation, a re-created topic."""

    name = "DATA_LOSS"


class FetchTimeoutError(LogError):
    """A read made no progress within its time limit."""

    name = "FETCH_TIMEOUT"
    retriable = True


class StoreError(CoopKafkaError):
    """Redis refused or could not answer."""

    name = "REDIS_ERROR"


class RedisUnavailableError(StoreError):
    """Redis did not answer for longer than `redis.max.outage`."""

    name = "REDIS_UNAVAILABLE"
    retriable = True


class RedisAccessError(StoreError):
    """Redis refused the credentials or the permission."""

    name = "REDIS_ACCESS_DENIED"


class RedisConfigurationError(StoreError):
    """The Redis server is set up in a way that can lose state."""

    name = "REDIS_CONFIGURATION"


class StateFormatError(StoreError):
    """Redis holds something under our keys that we cannot read."""

    name = "STATE_FORMAT"


class StateLostError(StoreError):
    """Redis lost the group's state and nothing proves a position."""

    name = "STATE_LOST"


class GroupError(CoopKafkaError):
    """Membership of the group forbids it."""

    name = "GROUP_ERROR"


class UnknownGroupError(GroupError):
    """No such group in this Redis."""

    name = "UNKNOWN_GROUP"


class GroupBusyError(GroupError):
    """Another live member holds the group."""

    name = "GROUP_BUSY"


class FencedMemberError(GroupError):
    """Another life of this member, or another member, has taken over (FENCED_MEMBER, spec 4.2)."""

    name = "FENCED_MEMBER"


class InvalidAssignmentError(GroupError):
    """An assignor's result cannot be used: a hole, an overlap, or a member it does not fit."""

    name = "INVALID_ASSIGNMENT"


class ConsumerRangeFetchNotAcceptedError(InvalidAssignmentError):
    """A member that does not share was given a part of a partition (K's code 90, spec 6)."""

    name = "CONSUMER_RANGE_FETCH_NOT_ACCEPTED"
    code: ClassVar[int] = 90


def redacted(url: str) -> str:
    """The url without user, password and query, safe to show; `(url not shown)` if its parts are not certain.

    An `@` behind the host means that the password holds an unescaped `/`, `?` or `#`: what looks like
    host and path are pieces of it then.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "(url not shown)"
    if "@" in parts.path + parts.query + parts.fragment or not (host or parts.scheme == "unix"):
        return "(url not shown)"
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path}"
