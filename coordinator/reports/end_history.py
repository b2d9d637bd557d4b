"""When a member saw the log ends pass which offsets: how old the oldest unread record of a lane is.

    seen     12:00:00 end 100     12:00:10 end 150     12:00:20 end 300
    position 120  behind since 12:00:10 (then offset 120 was there), within a look
    position  90  behind since 12:00:00 or longer: at least

Asks nobody. Never tells less than it is; more by the time between two looks, or a 32nd of the time looked back on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.subscription import Bounds, TopicPartition

MOST_LOOKS = 64
"""Looks kept of a partition; with more, every two become one, and looks are kept half as often."""


@dataclass(slots=True)
class _Looks:
    """What was seen of one partition's end: when a stretch of offsets began to come, and where it ended."""

    every_ms: int = 250
    seen: list[tuple[int, int]] = field(default_factory=list)

    def add(self, now_ms: int, end: int) -> None:
        if self.seen and end <= self.seen[-1][1]:
            return
        if len(self.seen) > 1 and now_ms - self.seen[-1][0] < self.every_ms:
            now_ms, _ = self.seen.pop()
        self.seen.append((now_ms, end))
        if len(self.seen) > MOST_LOOKS:
            first, rest = self.seen[:1], self.seen[1:]
            pairs = zip(rest[::2], [*rest[1::2], rest[-1]], strict=False)
            self.seen, self.every_ms = first + [(at, later) for (at, _), (_, later) in pairs], 2 * self.every_ms


@dataclass(slots=True)
class EndHistory:
    """The looks at all partitions; times are of one clock."""

    _looks: dict[TopicPartition, _Looks] = field(default_factory=dict)

    def saw(self, bounds: Mapping[TopicPartition, Bounds], now_ms: int) -> None:
        """The log ends as they are now."""
        self._looks = {tp: self._looks.get(tp) or _Looks() for tp in bounds}
        for tp, bound in bounds.items():
            self._looks[tp].add(now_ms, bound.end)

    def behind_ms(self, tp: TopicPartition, position: int, now_ms: int) -> tuple[int, bool] | None:
        """Since when there has been something to read at `position`, and whether it may be longer.

        0 where the position is at the end; None for a partition that was never looked at.
        """
        looks = self._looks.get(tp)
        if looks is None or not looks.seen:
            return None
        since = next((i for i, (_, end) in enumerate(looks.seen) if end > position), None)
        return (0, False) if since is None else (max(0, now_ms - looks.seen[since][0]), since == 0)
