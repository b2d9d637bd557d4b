"""Acknowledgements of rows, by their definition: for tests that read no records."""

from zlib import crc32

from coordinator.progress.acknowledgement import check_of, strips_of
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition


def sealed(head: str, since: int, last: int) -> str:
    """A text with a sound check."""
    return f"{head}/{since}/{last}/{check_of(crc32(head.encode()), since, last)}"


def text_of(end: StreamOffset, tp: TopicPartition, offsets: str, hashes: HashRange = WHOLE) -> str:
    """The text of a record in the strip of a batch that begins at this hash: `100-110` covers ten holes."""
    head = next(s.head for s in strips_of(end, end.slices)[tp] if s.area.hashes.lo == hashes.lo)
    covered = OffsetRange.parse(offsets)
    return sealed(head, covered.start, covered.until - 1)
