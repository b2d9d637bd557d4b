"""Limits on the size of decompressed batches, and the description of a batch that exceeds them.

Values only; knows nothing of formats.
"""

from dataclasses import dataclass
from enum import Enum, auto

from kafka.errors import CorruptRecordError

from spark_coop_source.decode.byte_column import MOST_BYTES


class UndividedUnit(Enum):
    """The unit that is too large: it is decoded whole or not at all."""

    BATCH = auto()
    RECORD = auto()  # or a block of snappy: neither can be cut
    MESSAGE_SET = auto()  # of a format before v2


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Limits in bytes: of all records of a compressed batch, which are decoded piece by piece, and of one record."""

    batch: int = MOST_BYTES
    record: int = MOST_BYTES // 2


UNBOUNDED = DecodeLimits()
"""The most that Arrow can hold."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Offsets [start, until) that are not decoded."""

    start: int
    until: int
    what: str
    of: UndividedUnit


def refuse(too_large: TooLarge) -> None:
    """Raises an error: the default for callers without a handler of their own."""
    raise CorruptRecordError(f"offsets {too_large.start} to {too_large.until - 1}: {too_large.what}")
