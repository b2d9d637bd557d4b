"""Errors of Kafka: the broker refused or did not answer, or the log lacks what should be read."""

from coordinator.errors.base import CoopKafkaError


class LogError(CoopKafkaError):
    """Kafka refused a request, or a record of the log cannot be read."""

    name = "KAFKA_ERROR"
    usual_remedy = "look for the cause in the broker's log, then start the query again"


class KafkaUnavailableError(LogError):
    """No broker answered in time, or none could yet: an election, a start, too few copies in sync."""

    name = "KAFKA_UNAVAILABLE"
    retriable = True
    usual_remedy = "check that the brokers run, and check kafka.bootstrap.servers and kafka.security.protocol"


class KafkaAccessError(LogError):
    """Kafka refused the credentials, the certificate or the permission."""

    name = "KAFKA_ACCESS_DENIED"
    usual_remedy = "check the kafka.sasl.* and kafka.ssl.* options; grant READ and DESCRIBE on topics and group"


class UnknownTopicError(LogError):
    """A topic or a partition does not exist in Kafka, or the group has no position in it."""

    name = "UNKNOWN_TOPIC_OR_PARTITION"
    usual_remedy = "correct the name, or create the topic"


class StartingOffsetError(LogError):
    """The log has no such starting or ending offset, or no record as late as the timestamp."""

    name = "OFFSET_NOT_AVAILABLE"
    usual_remedy = "name an offset within the log, or an earlier time"


class DataLossError(LogError):
    """Unread records are gone: retention deleted them, the log was truncated, or the topic was created again."""

    name = "DATA_LOSS"
    usual_remedy = (
        "move the positions with coop-kafka reset-offsets, or set failOnDataLoss=false to continue with the records "
        "that are left"
    )


class BatchTooLargeError(LogError):
    """A compressed record batch, or a record in it, is larger than a task may decompress."""

    name = "BATCH_TOO_LARGE"
    usual_remedy = "raise the option that the message names, or set failOnDataLoss=false to skip the batch"


class FetchTimeoutError(LogError):
    """A task received no records within kafkaConsumer.pollTimeoutMs, although the log has some."""

    name = "FETCH_TIMEOUT"
    retriable = True
    usual_remedy = "check whether brokers are overloaded or throttle this client; or raise kafkaConsumer.pollTimeoutMs"


class TaskNotEndedError(LogError):
    """The reader process of the driver has ended, or did not take the end of a task. Spark repeats the task."""

    name = "TASK_NOT_ENDED"
    retriable = True
    usual_remedy = (
        "look for an error of the driver, and let each executor connect to its host; if Spark repeats the task, no "
        "action is needed"
    )


class DeadlinePassedError(LogError):
    """A task began so late that another member may own its key ranges. It read nothing."""

    name = "DEADLINE_PASSED"
    retriable = True
    usual_remedy = "raise longestBatch or lower batchTimeBudget, and compare the clocks of driver and executors"


class RecordRefusedError(LogError):
    """Kafka refused a record that coop-kafka wrote: a dead letter, or a record that was redriven."""

    name = "RECORD_REFUSED"
    usual_remedy = "change the setting of the topic that the message names; nothing is lost, the records are read again"
