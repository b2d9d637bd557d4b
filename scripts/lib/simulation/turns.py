"""The reservations of all drivers, and the promise that an ordered commit waits for those below it.

See rule: ordered-commit.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from simulation.kafka import HASHES
from simulation.sink import Violation
from simulation.state import State


@dataclass(frozen=True)
class Reserved:
    """Offsets of a lane that a member has reserved, and the number of states of the group before that."""

    tp: TopicPartition
    hashes: HashRange
    offsets: OffsetRange
    member: str
    since: int

    def __str__(self) -> str:
        return f"{self.offsets} x {self.hashes} of {self.tp}"

    def done(self, before: int, states: Sequence[State]) -> bool:
        """Whether its offsets below `before` were done in one of these states."""
        until = min(before, self.offsets.until)
        cells = [(h, offset) for h in HASHES if h in self.hashes for offset in range(self.offsets.start, until)]
        return any(all(state.has(self.tp, h, offset) for h, offset in cells) for state in states)


class Turns:
    """Reservations, as their drivers know them."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states
        self._reserved: list[Reserved] = []

    def others(self, mine: Reserved) -> list[Reserved]:
        """The reservations of other members below a commit that begins now."""
        lower = (r for r in self._reserved if r.tp == mine.tp and r.offsets.start < mine.offsets.start)
        return [r for r in lower if r.member != mine.member]

    def add(self, tp: TopicPartition, hashes: HashRange, offsets: OffsetRange, member: str) -> Reserved:
        """A driver has the answer that it has reserved these offsets. It takes over the same reservation of another."""
        same = (tp, hashes, offsets)
        self._reserved = [r for r in self._reserved if (r.tp, r.hashes, r.offsets) != same]
        self._reserved.append(Reserved(tp, hashes, offsets, member, len(self._states) - 1))
        return self._reserved[-1]

    def end(self, tp: TopicPartition, hashes: Collection[HashRange], offsets: OffsetRange, member: str) -> None:
        """A commit ends the reservations of its worker that begin in its offsets and share some of its hashes.

        The next life of a member has the same worker.
        """
        ended = {
            r
            for r in self._reserved
            if (r.tp, r.member) == (tp, member) and offsets.start <= r.offsets.start < offsets.until
            if any(r.hashes.intersection(h) for h in hashes)
        }
        self._reserved = [r for r in self._reserved if r not in ended]

    def check(self, mine: Reserved, others: Sequence[Reserved]) -> None:
        """The commit was accepted: so no offset of the `others` below it is missing. A loss of state loses them."""
        now = self._states[-1]
        for other in (r for r in others if r in self._reserved):
            then = self._states[other.since]
            lasts = (then.nonce, then.reset) == (now.nonce, now.reset)
            if lasts and not other.done(mine.offsets.start, self._states[other.since :]):
                raise Violation(f"TURN: {mine} is committed before {other}, reserved by {other.member}")
