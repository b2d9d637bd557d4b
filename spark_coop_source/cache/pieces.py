"""Cuts a shared stretch into pieces, so that several tasks publish at once. Pure.

    stretch   |=======================================|
    pieces    |1|==== 2 ====|==== 3 ====|==== 4 ====|5|

The first piece is short. Its first block shows how many offsets have about the wanted bytes. If tasks see different
first blocks, they cut in different ways, and some records may be fetched twice.
"""

from dataclasses import dataclass, replace

from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache.blocks import Block

FIRST = 10_000
"""Offsets of the first piece. A stretch that is no longer is fetched by one task."""

LONGEST = 1 << 18
"""Offsets of a piece at most: a filter may drop nearly all records."""


@dataclass(frozen=True, slots=True)
class SharedPieces:
    """The pieces of a stretch; `length` is that of each but the first and the last one, 0 while it is not known."""

    stretch: OffsetRange
    length: int = 0

    def at(self, position: int) -> OffsetRange:
        """The piece with this offset of the stretch. While the length is not known, there are only two."""
        start, until = self.stretch.start + FIRST, self.stretch.until
        if position < start:
            return OffsetRange(self.stretch.start, min(start, until))
        length = self.length or len(self.stretch)
        start += (position - start) // length * length
        return OffsetRange(start, min(start + length, until))

    def behind(self, position: int) -> range:
        """Where the pieces begin that lie behind the one with this offset; none while their length is not known."""
        if not self.length:
            return range(0)
        start = self.stretch.start + FIRST
        passed = (position - start) // self.length + 1  # 0 from the first piece, which is no longer than others
        return range(start + passed * self.length, self.stretch.until, self.length)

    def learned(self, block: Block, most_bytes: int) -> "SharedPieces":
        """The same after its task has read a block: if it is the first one, a piece has about `most_bytes`."""
        if self.length or block.offsets.start != self.stretch.start:
            return self
        length = len(block.offsets) * most_bytes // max(1, block.size)
        return replace(self, length=min(LONGEST, max(FIRST, length)))
