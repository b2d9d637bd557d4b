"""Lets kafka-python's consumer pass the batch of a transaction's marker that Kafka's cleaner has emptied.

The cleaner keeps the last batch of each producer that may be alive, if need be without a record. kafka-python takes
the first record of every batch of markers and does not ask whether there is one: under read_committed it would never
get past. Java's client asks. `PartitionRecords` and its method are private names: where they are not as they were,
nothing is changed.
"""

from functools import cache
from typing import Any

from kafka import KafkaConsumer


def install(consumer: KafkaConsumer) -> None:
    """Have `consumer` pass such batches."""
    fetcher = getattr(consumer, "_fetcher", None)
    if hasattr(fetcher, "PartitionRecords"):
        fetcher.PartitionRecords = passing(fetcher.PartitionRecords)  # type: ignore[union-attr]


@cache
def passing(partition_records: Any) -> type:
    """kafka-python's class of what one answer holds of a partition, but for such batches."""

    class PassingEmptyMarkers(partition_records):  # type: ignore[misc]
        def _contains_abort_marker(self, batch: Any) -> bool:
            if not batch.is_control_batch or not batch.records_count:
                return False
            return bool(super()._contains_abort_marker(batch))

    return PassingEmptyMarkers
