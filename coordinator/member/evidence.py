"""The offsets that this process has seen. It may assert them, and it keeps their unconfirmed slices when it leaves."""

from dataclasses import dataclass, replace

from coordinator.assignment.rebalance import union
from coordinator.progress.ownership import Facts, Ownership, asserted
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition

NOTHING = StreamOffset(None)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The offsets that reached this process: it may assert them, and does not free their slices when it leaves."""

    known: StreamOffset = NOTHING  # the last one
    witnessed: Ownership | None = None  # the parts of it that this process read to their end
    unconfirmed: tuple[StreamOffset, ...] = ()  # with slices that the sink may not have completed

    @property
    def facts(self) -> Facts:
        """The facts that the last offset proves (rule: assert-beginnings)."""
        return asserted(self.known, self.witnessed)

    def seen(self, offset: StreamOffset, witnessed: Ownership | None = None) -> "Evidence":
        """An offset has reached this process."""
        return replace(self.with_unconfirmed(offset), known=offset, witnessed=witnessed)

    def with_unconfirmed(self, offset: StreamOffset) -> "Evidence":
        """The slices of this offset may be half written."""
        known = offset in self.unconfirmed
        return self if known else replace(self, unconfirmed=(*self.unconfirmed, offset))

    def confirmed(self) -> "Evidence":
        """Each offset that has reached this process is committed or refused."""
        return replace(self, unconfirmed=())

    def forgotten(self) -> "Evidence":
        """Positions were moved on purpose: older offsets prove nothing."""
        return replace(self, known=NOTHING, witnessed=None)

    @property
    def unconfirmed_ranges(self) -> dict[TopicPartition, tuple[HashRange, ...]]:
        """Hash ranges with an unconfirmed slice, disjoint and ascending."""
        hashes: dict[TopicPartition, list[HashRange]] = {}
        for offset in self.unconfirmed:
            for tp, lane in offset:
                if lane.offsets:
                    hashes.setdefault(tp, []).append(lane.hashes)
        return {tp: union(ranges) for tp, ranges in hashes.items()}
