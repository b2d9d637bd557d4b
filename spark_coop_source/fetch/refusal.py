"""The error for a batch that is too large to be decompressed: which offsets it costs, and what to do about it.

Knows options by name; nothing of how batches are read.
"""

from collections.abc import Mapping

from coordinator.errors import BatchTooLargeError
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition
from spark_coop_source.decode.sizes import TooLarge, Whole

_OR_SKIP = "or set failOnDataLoss=false to skip it"
ROOM: Mapping[Whole, str] = {
    Whole.BATCH: f"raise max.batch.uncompressed.bytes, {_OR_SKIP}",
    Whole.RECORD: f"raise max.bytes.fetcher.filtering and the memory of Python workers, {_OR_SKIP}",
    Whole.MESSAGE_SET: f"have it written again with message format v2, {_OR_SKIP}",
}
"""What to do about each kind of what is too large."""


def refusal(tp: TopicPartition, offsets: OffsetRange, too_large: TooLarge) -> BatchTooLargeError:
    """The error that names these offsets, which are those of `too_large` that somebody wants."""
    return BatchTooLargeError(f"{tp}: offsets {offsets}: {too_large.what}", ROOM[too_large.of])
