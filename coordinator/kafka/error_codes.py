"""Every error of kafka-python, and so every code of a broker: what it means, and what the user does. One table, no IO.

The class of a row decides what we do. `KafkaUnavailableError`: ask again, for as long as the caller is patient.
`UnknownTopicError`: ask again a few times, because a new topic may not have reached that broker. Any other class: the
call ends with that error. `anew` decides what differs at the next try: a new connection, by a bootstrap server
that may be the same one. Without it the same connection asks who leads or coordinates now, and may meet another broker.
"""

from dataclasses import dataclass

from coordinator.errors import (
    CoopKafkaError,
    DataLossError,
    GroupBusyError,
    GroupTypeError,
    InvalidOptionError,
    KafkaAccessError,
    KafkaUnavailableError,
    LogError,
    RecordRefusedError,
    UnknownTopicError,
)


@dataclass(frozen=True, slots=True)
class FailureKind:
    """One kind of failure. `what` follows the words "Kafka at SERVERS"."""

    kinds: str  # names of classes; also for their subclasses, unless these have a row of their own
    error: type[CoopKafkaError]
    what: str
    remedy: str
    anew: bool = False  # the next try needs a new connection


ROWS = (
    # -- nobody answers: over as soon as another broker is asked, or this one is back
    FailureKind(
        "OSError KafkaConnectionError NetworkExceptionError KafkaTimeoutError RequestTimedOutError "
        "NodeNotReadyError TooManyInFlightRequests Cancelled CorrelationIdError RetriableError "
        "InvalidMetadataError",
        KafkaUnavailableError,
        "did not answer",
        KafkaUnavailableError.usual_remedy,
        anew=True,
    ),
    FailureKind(
        "TimeoutError",  # of a short wait: the broker may be well
        KafkaUnavailableError,
        "did not answer",
        KafkaUnavailableError.usual_remedy,
    ),
    FailureKind(
        "UnknownBrokerIdError BrokerNotAvailableError BrokerIdNotRegisteredError MetadataEmptyBrokerList StaleMetadata",
        KafkaUnavailableError,
        "does not know the broker that must be asked",
        "start all brokers; kafka-broker-api-versions.sh lists those that the cluster knows",
        anew=True,
    ),
    FailureKind(
        "NotControllerError",
        KafkaUnavailableError,
        "has a new controller",
        "wait for the end of its election; kafka-metadata-quorum.sh describe --status shows it",
        anew=True,
    ),
    FailureKind(
        "TokenEndpointError",
        KafkaUnavailableError,
        "needs a token, and there is none",
        "check that the token endpoint, or the file, of kafka.sasl.oauthbearer.token.endpoint.url can be read",
        anew=True,
    ),
    # -- a broker answers that it cannot yet: over with an election, a start, or enough copies
    FailureKind(
        "LeaderNotAvailableError NotLeaderForPartitionError ReplicaNotAvailableError FencedLeaderEpochError "
        "UnknownLeaderEpochError PreferredLeaderNotAvailableError EligibleLeadersNotAvailableError",
        KafkaUnavailableError,
        "has no leader for a partition, or a new one",
        "start the brokers that have its copies: kafka-topics.sh --describe names leader and replicas",
    ),
    FailureKind(
        "OffsetNotAvailableError",
        KafkaUnavailableError,
        "has a new leader that does not know the end of its log yet",
        "start the brokers that have its copies: the leader waits until one of them has fetched",
    ),
    FailureKind(
        "ListenerNotFoundError",
        KafkaUnavailableError,
        "has a leader without the listener that we use",
        "let advertised.listeners of all brokers name the listener of kafka.bootstrap.servers",
    ),
    FailureKind(
        "KafkaStorageError LogDirNotFoundError",
        KafkaUnavailableError,
        "cannot use a log on a broker's disk",
        "look at the disk of that broker, and at its log; if it stays, stop the broker, so that another one leads",
    ),
    FailureKind(
        "NotCoordinatorError CoordinatorNotAvailableError",
        KafkaUnavailableError,
        "has no coordinator for the group or transaction, or a new one",
        "start the brokers that have copies of __consumer_offsets and __transaction_state",
    ),
    FailureKind(
        "CoordinatorLoadInProgressError",
        KafkaUnavailableError,
        "has a coordinator that still loads its groups or transactions",
        "wait: it takes longer the larger __consumer_offsets and __transaction_state are",
    ),
    FailureKind(
        "UnstableOffsetCommitError ConcurrentTransactionsError",
        KafkaUnavailableError,
        "has a transaction that has not ended",
        "wait for its end: the broker aborts one of a dead process after its transaction.timeout.ms",
    ),
    FailureKind(
        "NotEnoughReplicasError NotEnoughReplicasAfterAppendError",
        KafkaUnavailableError,
        "takes no records: it has fewer copies in sync than min.insync.replicas",
        "start the brokers that have the other copies, or lower min.insync.replicas",
    ),
    FailureKind(
        "FetchSessionIdNotFoundError InvalidFetchSessionEpochError FetchSessionTopicIdError",
        KafkaUnavailableError,
        "has forgotten what this client was reading",
        "raise max.incremental.fetch.session.cache.slots of the brokers if it comes often",
    ),
    FailureKind(
        "ThrottlingQuotaExceededError QuotaViolationError",
        KafkaUnavailableError,
        "throttles this client",
        "raise its quotas: kafka-configs.sh --describe shows those of users and clients",
    ),
    FailureKind(
        "UnknownError",  # and codes that this version of kafka-python does not know
        KafkaUnavailableError,
        "failed with an error of its own, or a code that kafka-python does not know",
        "look for the cause in the broker's log",
    ),
    # -- rights
    FailureKind(
        "SaslAuthenticationFailedError UnsupportedSaslMechanismError IllegalSaslStateError "
        "SecurityDisabledError DelegationTokenExpiredError DelegationTokenNotFoundError "
        "DelegationTokenAuthDisabledError DelegationTokenOwnerMismatchError "
        "DelegationTokenRequestNotAllowedError InvalidPrincipalTypeError UnacceptableCredentialError "
        "PrincipalDeserializationFailureError",
        KafkaAccessError,
        "refused the credentials",
        "check kafka.security.protocol, kafka.sasl.mechanism and kafka.sasl.jaas.config",
    ),
    FailureKind(
        "AuthorizationError TopicAuthorizationFailedError GroupAuthorizationFailedError",
        KafkaAccessError,
        "does not permit it",
        "grant this user READ and DESCRIBE on the topics and READ on the group",
    ),
    FailureKind(
        "ClusterAuthorizationFailedError DelegationTokenAuthorizationFailedError",
        KafkaAccessError,
        "does not permit it, because this user lacks a right on the cluster",
        "grant this user DESCRIBE on the cluster, to write before Kafka 2.8 also IDEMPOTENT_WRITE",
    ),
    FailureKind(
        "TransactionalIdAuthorizationFailedError",
        KafkaAccessError,
        "does not permit it, because this user lacks a right on the transactional id",
        "grant this user WRITE and DESCRIBE on that transactional id",
    ),
    # -- names, groups, offsets
    FailureKind(
        "UnknownTopicOrPartitionError UnknownTopicIdError InconsistentTopicIdError InvalidTopicError",
        UnknownTopicError,
        "does not know a topic or partition of that name",
        "correct the name; after a topic was deleted, its query needs a new checkpoint",
    ),
    FailureKind(
        "GroupIdNotFoundError InvalidGroupIdError InconsistentGroupProtocolError UnsupportedAssignorError",
        GroupTypeError,
        "has no group of consumers of that name",
        GroupTypeError.usual_remedy,
    ),
    FailureKind(
        "UnknownMemberIdError IllegalGenerationError RebalanceInProgressError StaleMemberEpochError "
        "FencedMemberEpochError FencedInstanceIdError UnreleasedInstanceIdError MemberIdRequiredError "
        "GroupMaxSizeReachedError NonEmptyGroupError GroupSubscribedToTopicError CommitFailedError",
        LogError,
        "has plain consumers in the group of that name",
        "end the consumers of Kafka's group of that name, or choose another option group",
    ),
    FailureKind(
        "OffsetMetadataTooLargeError InvalidCommitOffsetSizeError",
        LogError,
        "takes no commit with our metadata text",
        "raise offset.metadata.max.bytes of the brokers to its default, 4096, or more",
    ),
    FailureKind(
        "OffsetOutOfRangeError PositionOutOfRangeError NoOffsetForPartitionError "
        "OffsetMovedToTieredStorageError LogTruncationError",
        DataLossError,
        "has no records at these offsets",
        DataLossError.usual_remedy,
    ),
    FailureKind(
        "CorruptRecordError UnsupportedCodecError",
        LogError,
        "has records that cannot be read",
        "check with Kafka's console consumer whether the log is damaged there, or start after these records",
    ),
    # -- records that we write
    FailureKind(
        "MessageSizeTooLargeError RecordListTooLargeError",
        RecordRefusedError,
        "takes no record of this size",
        "raise max.message.bytes of the topic above its size, and segment.bytes if it is smaller",
    ),
    FailureKind(
        "InvalidRecordError",
        RecordRefusedError,
        "does not take this record",
        "set cleanup.policy=delete on the topic: a compacted topic takes no record without a key",
    ),
    FailureKind(
        "InvalidTimestampError UnsupportedForMessageFormatError UnsupportedCompressionTypeError "
        "InvalidRequiredAcksError",
        RecordRefusedError,
        "does not take records as this topic is set",
        "compare message.timestamp.*, message.format.version and compression.type of the topic with their defaults",
    ),
    FailureKind(
        "ProducerFencedError InvalidProducerEpochError",
        GroupBusyError,
        "has a newer producer: another redrive of this group and topic has begun",
        "let the other one end, then run the command again; no record is redriven twice",
    ),
    FailureKind(
        "TransactionAbortedError TransactionAbortableError TransactionCoordinatorFencedError "
        "TransactionalIdNotFoundError InvalidTxnStateError InvalidTransactionTimeoutError "
        "InvalidProducerIdMappingError UnknownProducerIdError OutOfOrderSequenceNumberError "
        "DuplicateSequenceNumberError",
        LogError,
        "has ended the transaction, or lost the producer's state",
        "run the command again, or start the query again: what was not committed is written again",
    ),
    FailureKind(
        "PolicyViolationError InvalidConfigurationError InvalidPartitionsError InvalidReplicationFactorError "
        "InvalidReplicationAssignmentError TopicAlreadyExistsError",
        LogError,
        "does not create the topic",
        "start all brokers, lower default.replication.factor, or create the topic by yourself as the docs say",
    ),
    # -- the wrong kind of server, or of request
    FailureKind(
        "KafkaProtocolError InvalidReceiveError",
        LogError,
        "gave an answer that is not Kafka's, or is above 100 MB",
        "correct kafka.bootstrap.servers and kafka.security.protocol: another service may listen there",
        anew=True,
    ),
    FailureKind(
        "UnsupportedVersionError IncompatibleBrokerVersion UnrecognizedBrokerVersion",
        LogError,
        "is too old for this request, or has switched it off",
        "use a broker that docs/deployment.md names; after an upgrade, also raise its features (metadata.version)",
    ),
    FailureKind(
        "KafkaConfigurationError",
        InvalidOptionError,
        "cannot be asked with these settings",
        "check the kafka.* options",
    ),
    FailureKind(
        "KafkaError BrokerResponseError NoError IllegalArgumentError IllegalStateError InvalidRequestError "
        "InvalidFetchRequestError InvalidSessionTimeoutError",
        LogError,
        "was asked in a way that it, or kafka-python, does not take",
        "report this with the versions of broker and kafka-python; name a broker, not a proxy, in "
        "kafka.bootstrap.servers",
    ),
    # -- answers to requests that we do not send: of brokers, controllers, share groups, administrators
    FailureKind(
        "DuplicateBrokerRegistrationError DuplicateResourceError DuplicateVoterError ElectionNotNeededError "
        "FeatureUpdateFailedError FencedStateEpochError InconsistentClusterIdError InconsistentVoterSetError "
        "IneligibleReplicaError InvalidRecordStateError InvalidRegistrationError "
        "InvalidShareSessionEpochError InvalidUpdateVersionError InvalidVoterKeyError "
        "MismatchedEndpointTypeError NewLeaderElectedError NoReassignmentInProgressError "
        "OperationNotAttemptedError ReassignmentInProgressError ResourceNotFoundError "
        "ShareSessionNotFoundError SnapshotNotFoundError StaleBrokerEpochError StaleControllerEpochError "
        "TelemetryTooLargeError TopicDeletionDisabledError UnknownControllerIdError "
        "UnknownSubscriptionIdError UnsupportedEndpointTypeError VoterNotFoundError",
        LogError,
        "gave an answer to a request that coop-kafka does not send",
        "let kafka.bootstrap.servers name brokers, not controllers or a proxy; else report this with their version",
    ),
)
_BY_KIND = {kind: row for row in ROWS for kind in row.kinds.split()}


def row_of(kind: type[BaseException]) -> FailureKind:
    """The row of a class of errors, or of its nearest base; of no answer for all other errors."""
    return next((_BY_KIND[each.__name__] for each in kind.__mro__ if each.__name__ in _BY_KIND), ROWS[0])
