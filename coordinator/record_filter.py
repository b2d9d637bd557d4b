"""Which records a query hands over, by the hash of the key, the key, and the size. A value; `select.filtering` applies it.

A record that the filter drops counts as done (rule: filtered-is-done). Pure: knows no record, no chunk and no option.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from coordinator.key_hash import hash_record
from coordinator.ranges import OFFSET_MAX, WHOLE, HashRange

Key = bytes | None
"""A record's key; None for a record without a key."""


@dataclass(frozen=True)  # without slots, for its cached properties
class RecordFilter:
    """All of its conditions hold for a record that is handed over; without a condition, every record is."""

    ranges: tuple[HashRange, ...] = (WHOLE,)  # of the key hash: ascending, without overlaps
    allow: frozenset[Key] | None = None  # None: any key
    deny: frozenset[Key] = frozenset()
    least_bytes: int = 0  # of key and value together; a null has none, and headers do not count
    most_bytes: int = OFFSET_MAX

    def keeps(self, key: Key, value: bytes | None, offset: int) -> bool:
        """Whether the record is handed over: the definition, record by record."""
        size = len(key or b"") + len(value or b"")
        named = key not in self.deny and (self.allow is None or key in self.allow)
        key_hash = hash_record(key, offset)
        return named and self.least_bytes <= size <= self.most_bytes and any(key_hash in r for r in self.ranges)

    @cached_property
    def digest(self) -> str:
        """16 hex digits, equal for equal filters only; empty for a filter that drops nothing."""
        if self == EVERYTHING:
            return ""
        text = "\n".join((*map(str, self.ranges), *_names(self.allow), "deny", *_names(self.deny), self._sizes))
        return blake2b(text.encode(), digest_size=8).hexdigest()

    @cached_property
    def text(self) -> str:
        """The filter for people and for Redis, at most 120 characters: its conditions, and its digest. May be empty.

        It names no key: keys may be confidential.
        """
        return " ".join((*self._conditions(), f"digest={self.digest}")) if self.digest else ""

    @property
    def _sizes(self) -> str:
        return f"{self.least_bytes}-{self.most_bytes}"

    def _conditions(self) -> Iterator[str]:
        if self.ranges != (WHOLE,):
            yield f"ranges={len(self.ranges)}"
        if self.allow is not None:
            yield f"allow={len(self.allow)}"
        if self.deny:
            yield f"deny={len(self.deny)}"
        if (self.least_bytes, self.most_bytes) != (0, OFFSET_MAX):
            yield f"bytes={self._sizes}"


EVERYTHING = RecordFilter()
"""The filter that drops nothing."""


def _names(keys: frozenset[Key] | None) -> Iterator[str]:
    """The keys as text, sorted; one word where any key is allowed."""
    if keys is None:
        yield "any"
    else:
        yield from sorted("null" if key is None else f"={key.hex()}" for key in keys)
