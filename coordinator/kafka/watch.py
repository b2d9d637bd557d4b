"""Waits for new records: a fetch to each leader stays open at the ends of the logs, and returns with the first record.

    idle query    look at Redis every 250 ms; Kafka is asked nothing while the fetches are open
    new record    a fetch returns, and the query looks at once

The fetches have connections of their own, since a broker answers the requests of a connection one after the other.
They are a convenience: if one fails, the query looks at Kafka every 250 ms, as without them.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.consumer import FetchRequest, IsolationLevel

from coordinator.errors import CoopKafkaError
from coordinator.kafka.client import client_arguments
from coordinator.kafka.connection import IN_TIME, open_client
from coordinator.values.subscription import Bounds, TopicPartition

_log = logging.getLogger(__name__)

WATCH_MS = 2_000
"""The longest that a fetch stays open. Then Kafka is asked again, since a frozen leader returns nothing."""

AGAIN_S = 30.0
"""The pause before the next attempt after no broker could be reached."""

LAST_VERSION = 12
"""The last version of the request that names topics instead of their ids."""

_Topic = FetchRequest.FetchTopic
_Partition = FetchRequest.FetchTopic.FetchPartition


@dataclass(frozen=True, slots=True)
class _Open:
    """A fetch that a leader has not answered, and the bounds of the logs at whose ends it waits."""

    answer: Future
    at: Mapping[TopicPartition, Bounds]


class LogWatch:
    """The open fetches of a query. Used by the main thread; `wake` is called in kafka-python's thread."""

    def __init__(self, kafka: Mapping[str, object], isolation: IsolationLevel) -> None:
        """`kafka` holds kafka-python's keyword arguments. It connects at the first `begin`."""
        self._kafka, self._isolation = kafka, isolation
        self._client: tuple[KafkaAdminClient, KafkaConnectionManager] | None = None
        self._open: dict[int, _Open] = {}
        self._not_before_s = 0.0

    def begin(
        self, leaders: Mapping[TopicPartition, int], at: Mapping[TopicPartition, Bounds], wake: Callable[[], None]
    ) -> None:
        """Open a fetch to each leader that has none. `wake` is called once one of them has returned records."""
        if time.monotonic() < self._not_before_s or self.bounds(at) == at:
            return
        by_leader = defaultdict[int, dict[TopicPartition, Bounds]](dict)
        for tp, bounds in at.items():
            by_leader[leaders.get(tp, -1)][tp] = bounds
        wanted = {leader: of_it for leader, of_it in by_leader.items() if leader >= 0 and not self._waits(leader)}
        try:
            for leader, of_it in wanted.items():
                (answer,) = self._manager().run(_sent, self._manager(), leader, self._request(of_it))
                self._open[leader] = _Open(answer, of_it)
                answer.add_callback(lambda answer: wake() if _has_records(answer) else None)
        except (CoopKafkaError, KafkaError, OSError) as error:
            _log.debug("no fetch waits for new records: %s", error)
            self.close()
            self._not_before_s = time.monotonic() + AGAIN_S

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Bounds] | None:
        """The bounds of these logs, if an open fetch says of each that nothing has come; else None."""
        known = {tp: b for leader, asked in self._open.items() if self._waits(leader) for tp, b in asked.at.items()}
        return {tp: known[tp] for tp in partitions} if known.keys() >= set(partitions) else None

    def close(self) -> None:
        """Close the connections; a later `begin` opens others."""
        client, self._client = self._client, None
        self._open.clear()
        if client is not None:
            client[0].close()

    def _waits(self, leader: int) -> bool:
        return leader in self._open and not self._open[leader].answer.is_done

    def _manager(self) -> KafkaConnectionManager:
        if self._client is None:
            known = {k: v for k, v in client_arguments(self._kafka).items() if k in KafkaAdminClient.DEFAULT_CONFIG}
            self._client = open_client(KafkaAdminClient, {**IN_TIME, **known}, ())
        return self._client[1]

    def _request(self, at: Mapping[TopicPartition, Bounds]) -> FetchRequest:
        topics = defaultdict[str, list[Any]](list)
        for tp, bounds in at.items():
            topics[tp.topic].append(_Partition(partition=tp.partition, fetch_offset=bounds.end, partition_max_bytes=1))
        return FetchRequest(
            max_wait_ms=WATCH_MS,
            min_bytes=1,
            max_bytes=1,
            isolation_level=self._isolation,
            topics=[_Topic(topic=name, partitions=of_topic) for name, of_topic in topics.items()],
            min_version=FetchRequest.min_version_for_isolation_level(self._isolation),
            max_version=LAST_VERSION,
        )


async def _sent(manager: KafkaConnectionManager, leader: int, request: FetchRequest) -> tuple[Future]:
    """The answer to come. Runs in kafka-python's thread."""
    return (manager.send(request, node_id=leader),)


def _has_records(answer: Any) -> bool:
    return any(partition.records for topic in answer.responses for partition in topic.partitions)
