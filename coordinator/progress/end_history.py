"""Records when log ends passed which offsets. From this follows the age of the oldest unread record of a lane.

    seen     12:00:00 end 100     12:00:10 end 150     12:00:20 end 300
    position 120  behind since 12:00:10 (offset 120 existed then), precise to one look
    position  90  behind since 12:00:00 or longer: "at least"

Makes no request. The reported age is never too small. It may exceed the true age by the time between two looks, or a
sixth of it.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from coordinator.values.subscription import TopicPartition

MOST_LOOKS = 128
"""Most looks at one partition, about as many as a month needs; beyond that, looks that are close are joined."""

RATE_MS = 60_000
"""The time over which arrivals are counted."""

EVERY_MS = 250
"""Looks within this time are joined."""

CLOSE = 1 / 6
"""Two looks are close if the time between them is at most this part of their age."""


@dataclass(slots=True)
class _Looks:
    """The looks at one partition's end: start of a stretch of offsets, its end, and the time."""

    seen: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, now_ms: int, end: int) -> None:
        if self.seen and end <= self.seen[-1][1]:
            return
        close = len(self.seen) > 1 and now_ms - self.seen[-1][0] < EVERY_MS
        began_ms = self.seen.pop()[0] if close else now_ms
        self.seen.append((began_ms, end, now_ms))
        if len(self.seen) > MOST_LOOKS:
            self.seen = self._thinned(now_ms)

    def per_ms(self, since_ms: int, now_ms: int) -> float:
        after = bisect_right(self.seen, since_ms, key=itemgetter(2))
        _, end, at = self.seen[max(0, after - 1)]
        time_ms = now_ms - (since_ms if after else at)
        return (self.seen[-1][1] - end) / time_ms if time_ms >= EVERY_MS else 0.0

    def _thinned(self, now_ms: int) -> list[tuple[int, int, int]]:
        first, *rest = self.seen  # the age of older offsets is unknown
        kept: list[tuple[int, int, int]] = []
        for began_ms, end, ended_ms in rest:
            close = bool(kept) and ended_ms - kept[-1][0] <= CLOSE * (now_ms - ended_ms)
            kept.append((kept.pop()[0] if close else began_ms, end, ended_ms))
        return [first, *kept]


@dataclass(slots=True)
class EndHistory:
    """The looks at all partitions; times are of one clock."""

    _looks: dict[TopicPartition, _Looks] = field(default_factory=dict)
    _times: deque[int] = field(default_factory=deque)  # of the looks of the last minute, and of the one before it

    def saw(self, ends: Mapping[TopicPartition, int], now_ms: int) -> None:
        """Record the current log ends."""
        self._looks = {tp: self._looks.get(tp) or _Looks() for tp in ends}
        for tp, end in ends.items():
            self._looks[tp].add(now_ms, end)
        self._times.append(now_ms)
        while len(self._times) > 1 and self._times[1] <= now_ms - RATE_MS:
            self._times.popleft()

    def per_ms(self, tp: TopicPartition, now_ms: int) -> float:
        """The offsets that were written in a millisecond, since the look before the last minute or the first look."""
        looks = self._looks.get(tp)
        return looks.per_ms(self._times[0], now_ms) if looks and looks.seen else 0.0

    def behind_ms(self, tp: TopicPartition, position: int, now_ms: int) -> tuple[int, bool] | None:
        """The time since when there are records to read at `position`, and whether it may be longer.

        0 where the position is at the end; None for a partition without a look.
        """
        looks = self._looks.get(tp)
        if looks is None or not looks.seen:
            return None
        since = bisect_right(looks.seen, position, key=itemgetter(1))
        return (0, False) if since == len(looks.seen) else (max(0, now_ms - looks.seen[since][0]), since == 0)
