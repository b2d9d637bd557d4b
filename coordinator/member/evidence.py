"""What this very process has seen of its offsets, and so may assert, and must not give away when it leaves.

authorised    the last offset that was authorised, and which parts of it
known         the last offset that reached this process, and what it proves
unconfirmed   hashes with a slice that the sink may not have completed: `stop` keeps them (spec 4.2, Leave)
"""

from collections.abc import Mapping

from coordinator.assignment.rebalance import union
from coordinator.progress.ownership import Facts, Ownership, asserted
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition


class Evidence:
    """A record of offsets; part of the service's state, on its thread."""

    def __init__(self) -> None:
        self._authorised: tuple[StreamOffset, Ownership] | None = None
        self.known = StreamOffset(None)
        self._witnessed: Ownership | None = None
        self._arrived: list[StreamOffset] = []  # whose slices may be unconfirmed

    def arrived(self, end: StreamOffset) -> None:
        """An offset came as the end of a batch: its slices may be written from now on."""
        self.known, self._witnessed = end, None
        self.add_unconfirmed(end)

    def returned(self, start: StreamOffset) -> Ownership | None:
        """An offset came back as start: the sink has completed it. What this process authorised of it, if it did."""
        self.known, self._witnessed = start, self.authorised(start)
        self.add_unconfirmed(start)
        return self._witnessed

    @property
    def facts(self) -> Facts:
        """What the last offset that reached this process proves."""
        return asserted(self.known, self._witnessed)

    def authorised(self, offset: StreamOffset) -> Ownership | None:
        """The verdict this process was given on `offset`, None if it never asked."""
        return self._authorised[1] if self._authorised and self._authorised[0] == offset else None

    def authorise(self, offset: StreamOffset, ownership: Ownership) -> None:
        """Remember the verdict on an offset."""
        self._authorised = (offset, ownership)

    def forget(self) -> None:
        """Positions were moved on purpose: what was seen before proves nothing any more."""
        self.known, self._witnessed = StreamOffset(None), None

    def add_unconfirmed(self, offset: StreamOffset) -> None:
        """The non-empty slices of `offset` may be half written."""
        if not any(known is offset for known in self._arrived):
            self._arrived.append(offset)

    def confirmed(self) -> None:
        """Everything that had reached this process is committed or refused."""
        self._arrived.clear()

    @property
    def unconfirmed(self) -> Mapping[TopicPartition, tuple[HashRange, ...]]:
        """Hash ranges with an unconfirmed slice, disjoint and ascending."""
        hashes: dict[TopicPartition, list[HashRange]] = {}
        for offset in self._arrived:
            for tp, lane in offset:
                if lane.offsets:
                    hashes.setdefault(tp, []).append(lane.hashes)
        return {tp: union(ranges) for tp, ranges in hashes.items()}
