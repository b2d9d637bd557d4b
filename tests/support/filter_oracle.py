"""The definition of a record filter, record by record: the oracle of its tests."""

from coordinator.values.key_hash import hash_record
from coordinator.values.record_filter import Key, RecordFilter


def keeps(of: RecordFilter, key: Key, value: bytes | None, offset: int) -> bool:
    """Whether the record is handed over."""
    size = len(key or b"") + len(value or b"")
    named = key not in of.deny and (of.allow is None or key in of.allow)
    return named and of.least_bytes <= size <= of.most_bytes and any(hash_record(key, offset) in r for r in of.ranges)
