"""Every error that this project raises, in one tree.

Each class has a docstring, its meaning, and a `usual_remedy`. docs/reference.md is made of both. A class without a
`usual_remedy` is never raised itself: it is there for `except`. No message holds a secret: `redacted` shows urls.
"""

from coordinator.errors.base import CoopKafkaError
from coordinator.errors.command import OutputError, WrongUsageError
from coordinator.errors.commits import (
    CommitBeyondReadError,
    CommitError,
    CorruptCommitError,
    OrderedCommitRefusedError,
    TooManyRangesError,
)
from coordinator.errors.configuration import (
    CheckpointMismatchError,
    ConfigurationError,
    ConflictingOptionsError,
    EnvironmentMismatchError,
    FunctionNotAllowedError,
    InvalidOptionError,
    MissingOptionError,
    SchemaMismatchError,
    SinkSkippedBatchError,
    UnknownOptionError,
)
from coordinator.errors.function import MapInReadError
from coordinator.errors.group import (
    FencedMemberError,
    GroupBusyError,
    GroupError,
    GroupRecoveringError,
    InconsistentGroupProtocolError,
    InvalidAssignmentError,
    UnknownGroupError,
    UnknownStrikeError,
)
from coordinator.errors.kafka import (
    BatchTooLargeError,
    DataLossError,
    DeadlinePassedError,
    FetchTimeoutError,
    KafkaAccessError,
    KafkaUnavailableError,
    LogError,
    StartingOffsetError,
    UnknownTopicError,
)
from coordinator.errors.policies import (
    CodedError,
    ConsumerRangeFetchNotAcceptedError,
    IndividualCommitNotAllowedError,
    IndividualCommitTooOldError,
    MaxIndividualCommitReachedError,
    TopicRangeFetchNotAllowedError,
)
from coordinator.errors.redis import (
    RedisAccessError,
    RedisConfigurationError,
    RedisTlsError,
    RedisUnavailableError,
    StateFormatError,
    StateLostError,
    StoreError,
)
from coordinator.errors.urls import redacted

__all__ = [
    "BatchTooLargeError",
    "CheckpointMismatchError",
    "CodedError",
    "CommitBeyondReadError",
    "CommitError",
    "ConfigurationError",
    "ConflictingOptionsError",
    "ConsumerRangeFetchNotAcceptedError",
    "CoopKafkaError",
    "CorruptCommitError",
    "DataLossError",
    "DeadlinePassedError",
    "EnvironmentMismatchError",
    "FencedMemberError",
    "FetchTimeoutError",
    "FunctionNotAllowedError",
    "GroupBusyError",
    "GroupError",
    "GroupRecoveringError",
    "InconsistentGroupProtocolError",
    "IndividualCommitNotAllowedError",
    "IndividualCommitTooOldError",
    "InvalidAssignmentError",
    "InvalidOptionError",
    "KafkaAccessError",
    "KafkaUnavailableError",
    "LogError",
    "MapInReadError",
    "MaxIndividualCommitReachedError",
    "MissingOptionError",
    "OrderedCommitRefusedError",
    "OutputError",
    "RedisAccessError",
    "RedisConfigurationError",
    "RedisTlsError",
    "RedisUnavailableError",
    "SchemaMismatchError",
    "SinkSkippedBatchError",
    "StartingOffsetError",
    "StateFormatError",
    "StateLostError",
    "StoreError",
    "TooManyRangesError",
    "TopicRangeFetchNotAllowedError",
    "UnknownGroupError",
    "UnknownOptionError",
    "UnknownStrikeError",
    "UnknownTopicError",
    "WrongUsageError",
    "redacted",
]
