"""How much a compressed batch may become, and what is known of one that would become more.

Values only; knows nothing of formats.
"""

from dataclasses import dataclass
from enum import Enum, auto

from kafka.errors import CorruptRecordError

from spark_coop_source.decode.byte_column import MOST_BYTES


class Whole(Enum):
    """What is too large: it is decoded as a whole or not at all."""

    BATCH = auto()
    RECORD = auto()  # or a block of snappy: neither is cut
    MESSAGE_SET = auto()  # of a format before v2


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a compressed batch may hold, in bytes: in all, decoded piece by piece; and in a record."""

    batch: int = MOST_BYTES
    record: int = MOST_BYTES // 2


UNBOUNDED = Sizes()
"""As much as Arrow can hold."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Offsets [start, until) that are not decoded."""

    start: int
    until: int
    what: str
    of: Whole


def refuse(too_large: TooLarge) -> None:
    """What becomes of it where nobody knows better."""
    raise CorruptRecordError(f"offsets {too_large.start} to {too_large.until - 1}: {too_large.what}")
