"""Feeds records at a steady rate while a query runs. The value of each is the microseconds of its work.

Knows Kafka's producer; nothing of Spark.
"""

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate

from confluent_kafka import Producer

_TICK_S = 0.02
_SEED = 7

Work = Mapping[bytes, int]
"""Microseconds of work of each key's records."""


def keys(count: int, us: int, **slow_us: int) -> Work:
    """This many keys whose records take `us`, except the keys in the arguments."""
    return {b"k%d" % i: us for i in range(count)} | {key.encode(): us for key, us in slow_us.items()}


def backlog(bootstrap: str, topic: str, work: Work, records: int, weights: Sequence[float] | None = None) -> None:
    """This many records at once, of random keys: all equally frequent, or by their `weights`."""
    producer = _producer(bootstrap)
    for key in random.Random(_SEED).choices(list(work), weights, k=records):  # noqa: S311  not for secrets
        producer.produce(topic, b"%d" % work[key], key)
        producer.poll(0)
    producer.flush(60)


class Feed:
    """Feeds records of random keys at a rate, all alike or by their `weights`. `work` may change during the run."""

    def __init__(
        self, bootstrap: str, topic: str, work: Work, per_second: float, weights: Sequence[float] | None = None
    ) -> None:
        self.work, self._topic, self._rate, self._weights = dict(work), topic, per_second, weights
        self._producer = _producer(bootstrap)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    @contextmanager
    def running(self) -> Iterator["Feed"]:
        """Feeds in a thread of its own until the block ends."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()
            self._producer.flush(60)

    def _run(self) -> None:
        chance, keys = random.Random(_SEED), list(self.work)  # noqa: S311  not for secrets
        weights = None if self._weights is None else list(accumulate(self._weights))
        began, given = time.monotonic(), 0
        while not self._ended.wait(_TICK_S):
            due = int((time.monotonic() - began) * self._rate)
            self._give(chance.choices(keys, cum_weights=weights, k=due - given))
            given = due

    def _give(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._producer.produce(self._topic, b"%d" % self.work[key], key)
        self._producer.poll(0)


def _producer(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 10, "queue.buffering.max.messages": 1_000_000})
