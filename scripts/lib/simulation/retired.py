"""A topic of the group that no member reads any more: when Redis forgets it, and when it must not."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import redis

from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import Topic, TopicPartition
from simulation.sink import Violation

RETIRED = TopicPartition("retired", 0)
TOPICS = {RETIRED.topic: Topic(RETIRED.topic, "id-retired", (0,))}
RETENTION_MS = 10_000
_TIME_OR_STATE_JUMPS = ("clock_jump", "restore_redis", "empty_redis", "operator_deletes")


class Retired:
    """Compares the topic in Redis with the last time at which it got first positions."""

    def __init__(self, text: redis.Redis, keys: GroupKeys, seen: Counter[str]) -> None:
        self._text, self._keys, self._seen = text, keys, seen
        self._placed_ms: int | None = None  # of Redis TIME; None: the group does not have it

    def placed(self, now_ms: int) -> None:
        """The group has positions of it."""
        self._placed_ms = now_ms

    def check(self, topics: Collection[str], now_ms: int, retentions: Callable[[], Sequence[int]]) -> None:
        """Raise `Violation` if it is gone before its retention is over, or gone in part (rule: topic-expiry).

        `topics`: of the group. `retentions`: of the members that live; the longest counts (rule: settings-that-differ).
        """
        if self._placed_ms is None or RETIRED.topic in topics:
            return
        placed_ms, self._placed_ms = self._placed_ms, None
        if any(self._seen[fault] for fault in _TIME_OR_STATE_JUMPS):
            return
        self._seen["forgotten"] += 1
        if now_ms - placed_ms < max(retentions(), default=RETENTION_MS):
            raise Violation(f"FORGOTTEN: {RETIRED} after {now_ms - placed_ms} ms")
        if left := self._text.exists(*self._keys.of_topic(RETIRED.topic, [RETIRED])):
            raise Violation(f"FORGOTTEN: {left} keys of {RETIRED} are left")
