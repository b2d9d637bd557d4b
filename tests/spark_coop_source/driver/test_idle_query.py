"""A query with nothing to read asks Kafka and Redis a few times a second, however often Spark asks it."""

import logging
import time

import pytest
import redis

from own_valkey import OwnValkey
from spark_coop_source.driver import reader_process
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.options.options import validate
from topics import Kafka

IDLE_S = 2.0


def test_an_idle_query_looks_a_few_times_a_second(
    kafka: Kafka, valkey: OwnValkey, group: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reader_process, "exit_on_sigterm", lambda: None)  # this process is pytest's
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": kafka.create_topic(partitions=20),
        "group": group,
        "redisUrl": valkey.address,
    }
    reader = CoopKafkaStreamReader(validate(options, streaming=True))
    start = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    with redis.Redis.from_url(valkey.address) as client, caplog.at_level(logging.DEBUG, "kafka.net.connection"):
        caplog.clear()
        asked, calls, began = _asked(client), 0, time.monotonic()
        while time.monotonic() - began < IDLE_S:
            start = reader.latestOffset(start, reader.getDefaultReadLimit())
            calls += 1
        asked = _asked(client) - asked
        seconds = time.monotonic() - began
    requests = sum(" Request " in message for message in caplog.messages)
    reader.stop()
    assert 0 < calls / seconds <= 5, "each call waits for something new"
    assert 0 < requests / seconds <= 15
    assert 0 < asked / seconds <= 40


def _asked(client: redis.Redis) -> int:
    return int(client.info("stats")["total_reads_processed"])
