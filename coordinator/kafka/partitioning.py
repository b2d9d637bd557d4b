"""The partition that Kafka's default partitioner chooses for a key. Pure."""

from kafka.partitioner.default import murmur2


def partition_for(key: bytes | None, partitions: int, *, keyless: int) -> int:
    """The partition of a record, as Java's producer chooses it; by the number `keyless` where it has no key."""
    number = keyless if key is None else murmur2(key) & 0x7FFFFFFF
    return int(number % partitions)
