"""Lets kafka-python's consumer pass a batch of transaction markers that Kafka's cleaner has emptied.

The cleaner keeps the last batch of each producer that may be alive, even without a record. kafka-python reads the first
record of every batch of markers without a check. So under read_committed it would never get past an empty batch. Java's
client does check.
"""

from functools import cache
from typing import Any

from kafka import KafkaConsumer

from coordinator.kafka import internals


def install(consumer: KafkaConsumer) -> None:
    """Let `consumer` pass such batches."""
    internals.replace_parser(consumer, passing)


@cache
def passing(partition_records: Any) -> type:
    """kafka-python's class for one answer's records of a partition, with this check added."""

    class PassingEmptyMarkers(partition_records):  # type: ignore[misc]
        def _contains_abort_marker(self, batch: Any) -> bool:
            if not batch.is_control_batch or not batch.records_count:
                return False
            return bool(super()._contains_abort_marker(batch))

    return PassingEmptyMarkers
