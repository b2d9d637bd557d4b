"""Log ends of Kafka in place of those that a member saw last. So lag grows also while no member lives.

`EndsOfKafka` waits for an answer only for `PATIENCE_S`, so that a watcher sees the rest in time.

Redis        stable 50    end 80 at 12:00      lag 30, at 12:00
Kafka now                 end 1080             lag 1030
"""

import re
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.errors import KafkaUnavailableError
from coordinator.redis.group_state import GroupState
from coordinator.values.subscription import Pattern, TopicPartition

if TYPE_CHECKING:  # most commands need no Kafka client
    from coordinator.kafka.log import KafkaLog

LogEnds = dict[TopicPartition, int]
"""The log end of each partition that Kafka has."""

PATIENCE_S = 5.0
"""The time of Kafka for an answer. Prometheus waits 10 s for a scrape by default."""


def log_ends(log: "KafkaLog", partitions: Iterable[TopicPartition]) -> LogEnds:
    """Ask Kafka for the log ends of those partitions that it has. Raises `LogError`s.

    If a leader does not answer, those of the other partitions; an error if there is none. An end is the last stable
    offset if `log` has the isolation level read_committed.
    """
    wanted = set(partitions)
    if not wanted:
        return {}
    names = "|".join(re.escape(topic) for topic in sorted({tp.topic for tp in wanted}))
    topics = log.topics(Pattern(f"^(?:{names})$"))
    there = [tp for tp in sorted(wanted) if tp.topic in topics and tp.partition in topics[tp.topic].partitions]
    if not there:
        return {}
    try:
        return {tp: bounds.end for tp, bounds in log.bounds(there, dict.fromkeys(there, 0)).items()}
    except KafkaUnavailableError:
        if not (found := log.ends_now(there)):
            raise
        return found


def with_ends(state: GroupState, ends: LogEnds) -> GroupState:
    """The group with these log ends of now. Without an end: partitions that Kafka lacks or no leader has. Pure."""
    mine = {tp: ends[tp] for tp in state.segments if tp in ends}
    return replace(state, ends=mine, ends_ms={tp.topic: state.now_ms for tp in mine})


def age_s(state: GroupState, tp: TopicPartition) -> float | None:
    """The age of the partition's log end in seconds; None if it is not known. Pure."""
    seen_ms = state.ends_ms.get(tp.topic)
    return None if seen_ms is None or tp not in state.ends else max(0, state.now_ms - seen_ms) / 1_000


class EndsOfKafka:
    """Asks for log ends in a thread of its own. For one caller at a time."""

    def __init__(self, log: "KafkaLog") -> None:
        self._log, self._pool = log, ThreadPoolExecutor(1, "coop-kafka-log-ends")
        self._asked: Future[LogEnds] | None = None

    def __call__(self, partitions: Iterable[TopicPartition]) -> LogEnds:
        """The log ends. Raises `LogError`s, and `TimeoutError` while a question is unanswered."""
        if self._asked is not None and not self._asked.done():
            raise TimeoutError
        self._asked = self._pool.submit(log_ends, self._log, frozenset(partitions))
        return self._asked.result(PATIENCE_S)

    def close(self) -> None:
        """End the thread once its question is answered."""
        self._pool.shutdown(wait=False, cancel_futures=True)
