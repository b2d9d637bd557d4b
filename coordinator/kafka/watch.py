"""Waits for new records: a fetch to each leader stays open at the ends of the logs, and returns with the first record.

    idle query    looks at Redis and Kafka every second; every 250 ms where a fetch is missing
    new record    a fetch returns, and the query looks at once

The fetches have connections of their own, since a broker answers the requests of a connection one after the other.
They only end waits: what a query reads never depends on them.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.consumer import FetchRequest, IsolationLevel

from coordinator.errors import CoopKafkaError
from coordinator.kafka.client import arguments_of
from coordinator.kafka.connection import IN_TIME, open_client, sent
from coordinator.kafka.offsets import OfTopics, by_leader
from coordinator.values.subscription import TopicPartition

_log = logging.getLogger(__name__)

WATCH_MS = 5_000
"""The longest that a fetch stays open; the next wait opens another."""

CONNECT_MS = 1_000
"""The longest attempt to connect: it holds up the query, which could look at Kafka meanwhile."""

AGAIN_S = 300.0
"""The pause after an attempt that failed."""

LAST_VERSION = 12
"""The last version of the request that names topics instead of their ids."""

_Topic = FetchRequest.FetchTopic
_Partition = FetchRequest.FetchTopic.FetchPartition


@dataclass(frozen=True, slots=True)
class _OpenFetch:
    """A fetch at one leader: its answer to come, and how long it waits for records at which ends.

    `counts` is False after one that the leader answered at once and without records: it may do so again.
    """

    answer: Future
    ends: OfTopics
    until_s: float
    counts: bool


class LogWatch:
    """The open fetches of a query. Used by the main thread; `wake` is called in kafka-python's thread."""

    def __init__(self, kafka: Mapping[str, object], isolation: IsolationLevel) -> None:
        """`kafka` holds kafka-python's keyword arguments. It connects at the first `begin`."""
        self._kafka, self._isolation = kafka, isolation
        self._client: tuple[KafkaAdminClient, KafkaConnectionManager] | None = None
        self._open: dict[int, _OpenFetch] = {}  # by leader
        self._not_before_s = 0.0

    def begin(
        self, leaders: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], wake: Callable[[], None]
    ) -> int:
        """Open a fetch to each leader that has none. `wake` is called once one of them has returned records.

        Returns the milliseconds until the first of them ends; 0 if one of the logs is not watched at its end.
        """
        if time.monotonic() < self._not_before_s:
            return 0
        led = {tp: end for tp, end in ends.items() if leaders.get(tp, -1) >= 0}
        topics_of = by_leader(led, leaders)
        try:
            for leader, topics in topics_of.items():
                if not self.waits_for(leader):
                    (answer,) = self._manager().run(_opened, self._manager(), leader, self._request(topics))
                    now_s, before = time.monotonic(), self._open.get(leader)
                    counts = before is None or now_s >= before.until_s or _has_records(before.answer.value)
                    self._open[leader] = _OpenFetch(answer, topics, now_s + WATCH_MS / 1_000, counts)
                    answer.add_callback(lambda answer: wake() if _has_records(answer) else None)
        except (CoopKafkaError, KafkaError, OSError, RuntimeError) as error:
            _log.debug("no fetch waits for new records: %s", error)
            self.close()
            self._not_before_s = time.monotonic() + AGAIN_S
            return 0
        watching = [self._open[leader] for leader in topics_of if self.waits_for(leader)]
        at = [fetch.ends for fetch in watching if fetch.counts]
        if len(led) < len(ends) or at != [*topics_of.values()]:
            return 0
        until_s = min((fetch.until_s for fetch in watching), default=0.0)
        return max(0, int(1_000 * (until_s - time.monotonic())))

    def waits_for(self, leader: int) -> bool:
        """Whether this leader has a fetch that it has not answered."""
        return leader in self._open and not self._open[leader].answer.is_done

    def close(self) -> None:
        """Close the connections; a later `begin` opens others."""
        client, self._client = self._client, None
        self._open.clear()
        if client is not None:
            client[0].close()

    def _manager(self) -> KafkaConnectionManager:
        if self._client is None:
            known = arguments_of(KafkaAdminClient, self._kafka)
            self._client = open_client(KafkaAdminClient, {**IN_TIME, **known, "bootstrap_timeout_ms": CONNECT_MS}, ())
        return self._client[1]

    def _request(self, ends: OfTopics) -> FetchRequest:
        topics = [
            _Topic(
                topic=name,
                partitions=[_Partition(partition=p, fetch_offset=end, partition_max_bytes=1) for p, end in at.items()],
            )
            for name, at in ends.items()
        ]
        return FetchRequest(
            max_wait_ms=WATCH_MS,
            min_bytes=1,
            max_bytes=1,
            isolation_level=self._isolation,
            topics=topics,
            min_version=FetchRequest.min_version_for_isolation_level(self._isolation),
            max_version=LAST_VERSION,
        )


async def _opened(manager: KafkaConnectionManager, leader: int, request: FetchRequest) -> tuple[Future]:
    """The answer to come, in a tuple, since kafka-python would wait for a bare one. Runs in its thread."""
    return (sent(manager, request, leader, WATCH_MS + CONNECT_MS),)


def _has_records(answer: Any) -> bool:
    """Whether an answer has any. A request that failed has no answer, so None."""
    return answer is not None and any(partition.records for topic in answer.responses for partition in topic.partitions)
