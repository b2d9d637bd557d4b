"""The error for a batch that is too large to decompress: its offsets, and the remedy.

Knows options by name; nothing of the reading of batches.
"""

from collections.abc import Mapping

from coordinator.errors import BatchTooLargeError
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.decode.sizes import TooLarge, UndividedUnit

_OR_SKIP = "or set failOnDataLoss=false to skip it"
ROOM: Mapping[UndividedUnit, str] = {
    UndividedUnit.BATCH: f"raise maxBatchUncompressedBytes, {_OR_SKIP}",
    UndividedUnit.RECORD: f"raise fetchMemory and the memory of Python workers, {_OR_SKIP}",
    UndividedUnit.MESSAGE_SET: f"have it written again with message format v2, {_OR_SKIP}",
}
"""The remedy for each kind of unit."""


def refusal(tp: TopicPartition, offsets: OffsetRange, too_large: TooLarge) -> BatchTooLargeError:
    """The error for these offsets, which are the wanted ones of `too_large`."""
    return BatchTooLargeError(f"{tp}: offsets {offsets}: {too_large.what}", ROOM[too_large.of])
