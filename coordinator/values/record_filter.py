"""Which records a query hands over: a value, and its canonical text.

`spark_coop_source/select/filtering.py` applies it. A record that the filter drops counts as done
(rule: filtered-is-done). Pure: knows no record, no chunk and no option.
Imports no package: a worker that unpickles a task loads it first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from coordinator.values.ranges import OFFSET_MAX, WHOLE, HashRange

Key = bytes | None
"""A record's key; None for a record without a key."""


@dataclass(frozen=True)  # without slots, for its cached properties
class RecordFilter:
    """A record is handed over if its key hash is in `ranges`, its key in `allow` and not in `deny`, and its size fits.

    The size is the bytes of key and value as they are in the record. A null has none, and headers do not count.
    """

    ranges: tuple[HashRange, ...] = (WHOLE,)  # of the key hash: ascending, without overlaps
    allow: frozenset[Key] | None = None  # None: any key
    deny: frozenset[Key] = frozenset()
    least_bytes: int = 0
    most_bytes: int = OFFSET_MAX

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
