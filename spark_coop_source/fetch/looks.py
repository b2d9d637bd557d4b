"""Looks at logs whose records do not come. All looks of a task use one connection, which waits once for a broker.

Runs in executor workers, one thread. Knows Kafka; nothing of stretches or slices.
"""

from collections.abc import Mapping

from coordinator.kafka.log import KafkaLog
from coordinator.values.subscription import Bounds, TopicPartition, Topics

RETRIES, RETRY_MS = 2, 500


class LogLooks:
    """Connects at the first look."""

    def __init__(self, kafka: Mapping[str, object]) -> None:
        """`kafka` holds the arguments of the task's consumer."""
        everything = {**kafka, "isolation_level": "read_uncommitted"}  # records of open transactions are in the log too
        self._log = KafkaLog(everything, retries=RETRIES, retry_interval_ms=RETRY_MS, patience_ms=0)

    def bounds(self, tp: TopicPartition) -> Bounds:
        """The log now.

        Raises `UnknownTopicError` if the partition is gone, `KafkaUnavailableError` if its leader does not answer.
        """
        self._log.topics(Topics((tp.topic,)))
        return self._log.bounds_now([tp])[tp]

    def leader(self, tp: TopicPartition) -> int:
        """The broker that has answered last about this partition."""
        return self._log.leader(tp)

    def close(self) -> None:
        """Close the connection."""
        self._log.close()
