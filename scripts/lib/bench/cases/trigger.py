"""The cost of a trigger for the driver: our stream reader, called as Spark does, on 1,000 partitions x 10 lanes."""

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import redis

from bench.loader import Load, produce
from bench.streaming import our_stream
from bench.table import Result, duration
from bench.world import World
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.options.options import validate

LANES = 10
IDLE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Round:
    """One trigger."""

    latest: float  # seconds of `latestOffset`: commit, look at the log, plan
    partitions: float  # seconds of `partitions`: authorise, pack
    cpu: float  # CPU seconds of both, of this process alone
    to_redis: int  # bytes
    offset: int  # bytes of the offset as JSON


def trigger(world: World) -> Iterator[Result]:
    """Every lane has records to read in every round."""
    count = 200 if world.quick else 1_000
    topic = world.kafka.create_topic("wide", count)
    options = our_stream(world, topic, lanes=str(LANES), startingOffsets="earliest", **{"fetchOffset.numRetries": "30"})
    reader = CoopKafkaStreamReader(validate(options, streaming=True))
    with redis.Redis.from_url(world.redis.address) as client:
        start = reader.initialOffset()
        rounds = []
        for _ in range(world.times + 1):
            produce(world.broker.address, topic, Load(count, partitions=count))
            start, measured = _round(reader, start, client)
            rounds.append(measured)
        yield from _figures(f"{count} partitions x {LANES} lanes", rounds[1:])
        yield _idle(reader, start, client, count)
    reader.stop()


def _round(reader: CoopKafkaStreamReader, start: dict[str, Any], client: redis.Redis) -> tuple[dict[str, Any], _Round]:
    before, cpu, began = _sent(client), time.process_time(), time.perf_counter()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    planned = time.perf_counter()
    reader.partitions(start, end)
    done = time.perf_counter()
    cpu = time.process_time() - cpu
    return end, _Round(planned - began, done - planned, cpu, _sent(client) - before, len(json.dumps(end)))


def _figures(work: str, rounds: list[_Round]) -> Iterator[Result]:
    latest, partitions = median(r.latest for r in rounds), median(r.partitions for r in rounds)
    total, sent = latest + partitions, median(r.to_redis for r in rounds)
    note = f"latestOffset {duration(latest)}, partitions {duration(partitions)}"
    note += f", CPU {duration(median(r.cpu for r in rounds))}, offset {rounds[0].offset / 1e6:.2f} MB"
    yield Result(
        "trigger", f"{work}: commit, look, plan, authorise", "", duration(total), "200 ms", total / 0.2, 1.0, note
    )
    yield Result("trigger", f"{work}: bytes to Redis", "", f"{sent / 1e6:.2f} MB", "1 MB", sent / 1e6, 1.0)


def _idle(reader: CoopKafkaStreamReader, start: dict[str, Any], client: redis.Redis, count: int) -> Result:
    start = reader.latestOffset(start, reader.getDefaultReadLimit())  # this call commits
    requests = _Requests()
    asked, began, cpu = _requests(client), time.perf_counter(), time.process_time()
    while time.perf_counter() - began < IDLE_S:
        start = reader.latestOffset(start, reader.getDefaultReadLimit())
    seconds = time.perf_counter() - began
    requests.close()
    kafka, to_redis = requests.count / seconds, (_requests(client) - asked) / seconds
    busy = (time.process_time() - cpu) / seconds
    note = f"{to_redis:.1f}/s to Redis, {busy:.0%} of a core"
    return Result("trigger", f"{count} partitions, idle: requests to Kafka", "", f"{kafka:.1f}/s", "", note=note)


class _Requests(logging.Handler):
    """Counts the requests that kafka-python sends, by its log lines."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.count = 0
        self._logger = logging.getLogger("kafka.net.connection")
        self._logger.addHandler(self)
        self._level, self._spreads = self._logger.level, self._logger.propagate
        self._logger.setLevel(logging.DEBUG)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Whether it is a request."""
        self.count += " Request " in str(record.msg)

    def close(self) -> None:
        """Stop counting."""
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
        self._logger.propagate = self._spreads
        super().close()


def _sent(client: redis.Redis) -> int:
    return int(client.info("stats")["total_net_input_bytes"])


def _requests(client: redis.Redis) -> int:
    return int(client.info("stats")["total_reads_processed"])
