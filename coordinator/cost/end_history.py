"""When a member saw the log ends pass which offsets: how old the oldest unread record of a lane is.

    seen     12:00:00 end 100     12:00:10 end 150     12:00:20 end 300
    position 120  behind since 12:00:10 (then offset 120 was there), within a look
    position  90  behind since 12:00:00 or longer: at least

Asks nobody. Never tells less than it is; more by the time between two looks, or a sixth of it.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from coordinator.subscription import TopicPartition

MOST_LOOKS = 128
"""Looks kept of a partition, about as many as a month needs; with more, those that lie close become one."""

EVERY_MS = 250
"""Looks of less time are one."""

CLOSE = 1 / 6
"""Looks are close that lie apart by no more than this part of the time since."""


@dataclass(slots=True)
class _Looks:
    """What was seen of one partition's end: when a stretch of offsets began to come, where it ended, and when."""

    seen: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, now_ms: int, end: int) -> None:
        if self.seen and end <= self.seen[-1][1]:
            return
        close = len(self.seen) > 1 and now_ms - self.seen[-1][0] < EVERY_MS
        began_ms = self.seen.pop()[0] if close else now_ms
        self.seen.append((began_ms, end, now_ms))
        if len(self.seen) > MOST_LOOKS:
            self.seen = self._thinned(now_ms)

    def _thinned(self, now_ms: int) -> list[tuple[int, int, int]]:
        first, *rest = self.seen  # what is older than the first is older by nobody knows how much
        kept: list[tuple[int, int, int]] = []
        for began_ms, end, ended_ms in rest:
            close = bool(kept) and ended_ms - kept[-1][0] <= CLOSE * (now_ms - ended_ms)
            kept.append((kept.pop()[0] if close else began_ms, end, ended_ms))
        return [first, *kept]


@dataclass(slots=True)
class EndHistory:
    """The looks at all partitions; times are of one clock."""

    _looks: dict[TopicPartition, _Looks] = field(default_factory=dict)

    def saw(self, ends: Mapping[TopicPartition, int], now_ms: int) -> None:
        """The log ends as they are now."""
        self._looks = {tp: self._looks.get(tp) or _Looks() for tp in ends}
        for tp, end in ends.items():
            self._looks[tp].add(now_ms, end)

    def behind_ms(self, tp: TopicPartition, position: int, now_ms: int) -> tuple[int, bool] | None:
        """Since when there has been something to read at `position`, and whether it may be longer.

        0 where the position is at the end; None for a partition that was never looked at.
        """
        looks = self._looks.get(tp)
        if looks is None or not looks.seen:
            return None
        since = bisect_right(looks.seen, position, key=itemgetter(1))
        return (0, False) if since == len(looks.seen) else (max(0, now_ms - looks.seen[since][0]), since == 0)
