"""Drivers that end politely in the middle of a batch: their ranges are free within seconds, not after their lease."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from drivers import points
from drivers.driver import Driver
from drivers.fleet import Fleet
from topics import Kafka
from verdict import require

SESSION_S = 120  # far longer than a batch of another driver on a busy machine


@pytest.fixture
def fleet(kafka: Kafka, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """Drivers-to-be on one partition."""
    made = Fleet(kafka, redis_url, f"stopped-{uuid.uuid4().hex[:8]}", tmp_path, pace="1 second")
    made.options = {"session.timeout.ms": str(SESSION_S * 1000), "heartbeat.interval.ms": "3000"}
    yield made
    made.end()


def stop(driver: Driver) -> None:
    """`query.stop()`."""
    driver.ask_to_stop()


def terminate(driver: Driver) -> None:
    """SIGTERM, as a container gets it."""
    driver.running.terminate()


def kill_jvm(driver: Driver) -> None:
    """SIGKILL of the JVM alone: the reader process lives."""
    driver.kill_jvm()


def end_in_a_batch(fleet: Fleet, driver: Driver, point: str, end: Callable[[Driver], None]) -> None:
    """End a driver that stands at a point of its batch; another one owns its ranges after a batch of its own."""
    points.arm(driver.folder, point)
    fleet.until(driver.stands, "it is in a batch")
    before, process = len(fleet.events_of(driver)), driver.running
    driver.disturbed.append(len(driver.lines))
    end(driver)
    process.wait(60)
    ended_ms = time.time_ns() // 1_000_000
    fleet.until(lambda: fleet.without(driver.member), "others own its ranges")
    events = {event.kind: event for event in fleet.events_of(driver)[before:]}
    assert events["leave"].why.endswith("Spark may still write records that its tasks have read")
    assert (events["lost"].at_ms - ended_ms) / 1000 < SESSION_S / 2


@pytest.mark.timeout(900)
def test_the_ranges_of_a_driver_that_ends_in_a_batch_wait_for_no_session(fleet: Fleet) -> None:
    with fleet.producing():
        ends, stays = fleet.join("ends"), fleet.join("stays")
        for point, end in ((points.READ, stop), (points.READ, terminate), (points.BEFORE_SINK, kill_jvm)):
            fleet.until(lambda: fleet.shared(ends, stays), "both share the partition")
            end_in_a_batch(fleet, ends, point, end)
            ends.start()
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    with closing(RedisClient(fleet.redis_url)) as client:
        assert OperatorVerbs.of_group(client, fleet.group).poison.strikes() == ()
    require(fleet.outcome().good, fleet.outcome())
