"""A stream reader of one group, called as Spark calls it, without Spark."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupState
from coordinator.redis.snapshot import read_group
from coordinator.values.subscription import TopicPartition
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.options.options import validate
from topics import Kafka

EVERYTHING = ReadAllAvailable()


class Calls:
    """A reader of one group, called as Spark calls it; and the group as Redis shows it."""

    def __init__(self, options: Mapping[str, str], client: RedisClient) -> None:
        self._options = validate(options, streaming=True)
        self.reader = CoopKafkaStreamReader(self._options)
        self._group, self._client = options["group"], client

    @property
    def state(self) -> GroupState:
        return read_group(self._client, self._group)

    def batch(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the batch after `start`, as Spark reads it from its WAL."""
        end: dict[str, Any] = json.loads(json.dumps(self.reader.latestOffset(start, EVERYTHING)))
        return end

    def restart(self, **changed: Any) -> None:
        """The reader stops; the next one goes on from the same checkpoint, with changed options."""
        self.reader.stop()
        self.reader = CoopKafkaStreamReader(replace(self._options, **changed))


@contextmanager
def calls_of(kafka: Kafka, redis_url: str, group: str, tp: TopicPartition) -> Iterator[Calls]:
    """A reader of a new group and of that partition."""
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": tp.topic,
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
        "slots": "2",
        "heartbeatInterval": "500",
    }
    with closing(RedisClient(redis_url)) as client:
        made = Calls(options, client)
        yield made
        made.reader.stop()
