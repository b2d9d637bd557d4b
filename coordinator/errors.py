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
    |   +-- SinkSkippedBatchError     the sink completed a batch that nobody read
    |   +-- FunctionNotAllowedError   of mapInRead, by whoever set up the driver
    +-- LogError                      Kafka
    |   +-- KafkaUnavailableError     (retriable)
    |   +-- KafkaAccessError
    |   +-- UnknownTopicError
    |   +-- StartingOffsetError
    |   +-- DataLossError
    |   +-- BatchTooLargeError
    |   +-- FetchTimeoutError         (retriable)
    |   +-- DeadlinePassedError       (retriable)
    +-- StoreError                    Redis
    |   +-- RedisUnavailableError     (retriable)
    |   +-- RedisAccessError
    |   +-- RedisTlsError
    |   +-- RedisConfigurationError
    |   +-- StateFormatError
    |   +-- StateLostError
    +-- MapInReadError                the user's function inside the read
    +-- GroupError                    membership
    |   +-- UnknownGroupError
    |   +-- UnknownStrikeError
    |   +-- GroupBusyError
    |   +-- FencedMemberError
    |   +-- GroupRecoveringError      (retriable)
    |   +-- InconsistentGroupProtocolError
    |   +-- InvalidAssignmentError
    +-- CodedError                    policies and limits, with K's numbers (spec 6)
    |   +-- IndividualCommitNotAllowedError      88
    |   +-- TopicRangeFetchNotAllowedError       89
    |   +-- ConsumerRangeFetchNotAcceptedError   90, an InvalidAssignmentError too
    |   +-- IndividualCommitTooOldError          91
    |   +-- MaxIndividualCommitReachedError      92
    +-- OutputError                   the output of the command coop-kafka
    +-- CommitError                   a call of the Commit API
        +-- CorruptCommitError
        +-- CommitBeyondReadError
        +-- TooManyRangesError
        +-- OrderedCommitRefusedError

Each says what happened and to what, and how to mend it. No message holds a secret: urls are
shown by `redacted`. Every message is bounded here, whatever it repeats. Knows nothing of the rest of the project.
"""

from typing import ClassVar
from urllib.parse import urlsplit

from coordinator.quoting import bounded


class CoopKafkaError(Exception):
    """The root: what happened, and the remedy.

    `name` is the stable text that programs and log searches rely on; `retriable` says whether the
    same call can succeed later without anybody changing anything. Both texts are at most
    `quoting.MESSAGE` characters long: what is longer is cut in its middle.
    """

    name: ClassVar[str] = "COOP_KAFKA_ERROR"
    retriable: ClassVar[bool] = False

    def __init__(self, what: str, remedy: str = "") -> None:
        self.what, self.remedy = bounded(what), bounded(remedy)
        super().__init__(self.what, self.remedy)

    @property
    def headline(self) -> str:
        """The name and what happened, without the remedy."""
        return f"{self.name}: {self.what.rstrip('.')}"

    def __str__(self) -> str:
        return f"{self.headline}. Remedy: {self.remedy.rstrip('.')}." if self.remedy else f"{self.headline}."


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


class SinkSkippedBatchError(ConfigurationError):
    """The sink completed a batch without reading it, so its records stay unread and are not committed."""

    name = "SINK_SKIPPED_BATCH"


class FunctionNotAllowedError(ConfigurationError):
    """The administrator of the driver's host allows no such function of mapInRead."""

    name = "FUNCTION_NOT_ALLOWED"


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


class BatchTooLargeError(LogError):
    """A compressed record batch, or a record in it, is larger than a task may decompress."""

    name = "BATCH_TOO_LARGE"


class FetchTimeoutError(LogError):
    """A read made no progress within its time limit."""

    name = "FETCH_TIMEOUT"
    retriable = True


class DeadlinePassedError(LogError):
    """A task began so late that its key ranges may be another member's by now."""

    name = "DEADLINE_PASSED"
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


class RedisTlsError(StoreError):
    """No TLS with Redis: a certificate that is not trusted or for another host, or a server without TLS."""

    name = "REDIS_TLS_FAILED"


class RedisConfigurationError(StoreError):
    """The Redis server is set up in a way that can lose state."""

    name = "REDIS_CONFIGURATION"


class StateFormatError(StoreError):
    """Redis holds something under our keys that we cannot read; nothing of it was overwritten."""

    name = "STATE_FORMAT"

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy or "look at the keys coop:v1:{group}:*; restore or delete the group's state")


class StateLostError(StoreError):
    """Redis lost the group's state and nothing proves a position."""

    name = "STATE_LOST"


class MapInReadError(CoopKafkaError):
    """The user's function inside the read raised, or made something else than its schema says (spec 5)."""

    name = "MAP_IN_READ_FAILED"


class GroupError(CoopKafkaError):
    """Membership of the group forbids it."""

    name = "GROUP_ERROR"


class UnknownGroupError(GroupError):
    """No such group in this Redis."""

    name = "UNKNOWN_GROUP"


class UnknownStrikeError(GroupError):
    """The group has no strike of that place."""

    name = "UNKNOWN_STRIKE"


class GroupBusyError(GroupError):
    """Another live member holds the group."""

    name = "GROUP_BUSY"


class FencedMemberError(GroupError):
    """Another life of this member, or another member, has taken over (FENCED_MEMBER, spec 4.2)."""

    name = "FENCED_MEMBER"


class GroupRecoveringError(GroupError):
    """The group's state was lost and is proven again: for one session only assertions are taken (spec 7)."""

    name = "GROUP_RECOVERING"
    retriable = True


class InconsistentGroupProtocolError(GroupError):
    """A member knows no assignor that all the others know."""

    name = "INCONSISTENT_GROUP_PROTOCOL"


class InvalidAssignmentError(GroupError):
    """An assignor's result cannot be used: a hole, an overlap, or a member it does not fit."""

    name = "INVALID_ASSIGNMENT"


class CodedError(CoopKafkaError):
    """A policy or a limit of K forbids it; `code` is K's number, which the message shows behind the name.

    Today's Kafka uses these numbers for other errors: they are never sent to a broker (spec 6).
    """

    name = "CODED_ERROR"
    code: ClassVar[int] = 0  # each kind has a number of its own

    @property
    def headline(self) -> str:
        """The name, the code and what happened, without the remedy."""
        return f"{self.name}: code {self.code}: {self.what.rstrip('.')}"


class IndividualCommitNotAllowedError(CodedError):
    """The group's policy forbids to share partitions, and so individual commits."""

    name = "INDIVIDUAL_COMMIT_NOT_ALLOWED"
    code = 88


class TopicRangeFetchNotAllowedError(CodedError):
    """The topic's policy forbids to read key ranges of it."""

    name = "TOPIC_RANGE_FETCH_NOT_ALLOWED"
    code = 89


class ConsumerRangeFetchNotAcceptedError(CodedError, InvalidAssignmentError):
    """A member that does not share was given a part of a partition."""

    name = "CONSUMER_RANGE_FETCH_NOT_ACCEPTED"
    code = 90


class IndividualCommitTooOldError(CodedError):
    """A commit that lies wholly below the stable offset: the caller has to catch up to `stable`."""

    name = "INDIVIDUAL_COMMIT_TOO_OLD"
    code = 91

    def __init__(self, what: str, remedy: str = "", stable: int = 0) -> None:
        super().__init__(what, remedy)
        self.stable = stable


class MaxIndividualCommitReachedError(CodedError):
    """A commit that would let a partition hold more individual commits than it may."""

    name = "MAX_INDIVIDUAL_COMMIT_REACHED"
    code = 92


class OutputError(CoopKafkaError):
    """What the command prints cannot be written; what it does is done by then."""

    name = "OUTPUT_FAILED"


class CommitError(CoopKafkaError):
    """A call of the Commit API cannot be used; nothing was committed."""

    name = "COMMIT_REFUSED"


class CorruptCommitError(CommitError):
    """A commit that contradicts itself: ranges and a plain offset, or no ranges at all."""

    name = "CORRUPT_COMMIT"


class CommitBeyondReadError(CommitError):
    """A commit of offsets that nobody can have read: `reach` is the first of them."""

    name = "COMMIT_BEYOND_READ"

    def __init__(self, what: str, remedy: str = "", reach: int = 0) -> None:
        super().__init__(what, remedy)
        self.reach = reach


class TooManyRangesError(CommitError):
    """A commit of more ranges than one call may carry."""

    name = "TOO_MANY_RANGES"


class OrderedCommitRefusedError(CommitError):
    """An ordered commit whose turn will not come: nobody holds what is missing before it any more."""

    name = "ORDERED_COMMIT_REFUSED"


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
