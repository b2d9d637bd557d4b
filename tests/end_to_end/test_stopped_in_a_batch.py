"""Drivers that end politely in the middle of a batch: their ranges are free within seconds, not after their lease."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import processes
from bench.functions import PASSED, wait_4_ms
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from drivers import points
from drivers.driver import Driver
from drivers.fleet import HAND_OVER_S, Fleet
from spark_coop_source import map_keys
from topics import Record
from verdict import require

SESSION_S = 120  # far longer than a batch of another driver on a busy machine

IN_THE_READ = {**map_keys(wait_4_ms, PASSED)}
BATCH_S = 10  # of the other driver, which may have begun one just before
RECORDS = 6_000  # a batch of twelve seconds or more
FLEET = {"options": {"sessionTimeout": str(SESSION_S * 1000), "heartbeatInterval": "3000"}}


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
    before_s = processes.stalled_s()
    before, process = len(fleet.events_of(driver)), driver.running
    driver.disturbed.append(len(driver.lines))
    end(driver)
    process.wait(60)
    ended_ms = time.time_ns() // 1_000_000
    fleet.until(lambda: fleet.without(driver.member), "others own its ranges")
    events = {event.kind: event for event in fleet.events_of(driver)[before:]}
    assert events["leave"].why.endswith("Spark may still write records that its tasks have read")
    took_s, busy_s = (events["lost"].at_ms - ended_ms) / 1000, processes.stalled_s() - before_s
    assert took_s - busy_s <= HAND_OVER_S + BATCH_S, "the lease that is left, and a batch of the other driver"


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


def test_a_driver_gets_sigterm_in_a_large_batch__another_one_owns_its_ranges_within_seconds(fleet: Fleet) -> None:
    """The other driver is idle, so only the hand-over takes time: Spark's end, the tasks' ends, and its next look.

    Time in which this machine let something wait for a core does not count: other tests run beside this one.
    """
    more = {"heartbeatInterval": "500", "batchTimeBudget": "60s", **IN_THE_READ}
    two = replace(fleet, partitions=2, options={**fleet.options, **more})
    ends, stays = two.join("ends"), two.join("stays")
    two.until(lambda: two.shared(ends, stays), "each has a partition")
    (partition,) = (p for p, hashes in two.held(ends).ranges.items() if hashes)
    two.kafka.produce(two.topic, [Record(b"%d" % i, b"key-%d" % (i % 97), partition) for i in range(RECORDS)])
    two.sent[partition] = [(f"key-{i % 97}", str(i)) for i in range(RECORDS)]
    two.until(lambda: two.at_work(ends), "its tasks are at work")
    began_ms, before_s = time.time_ns() // 1_000_000, processes.stalled_s()
    ends.running.terminate()
    took_s = two.handed_over(ends, began_ms)
    assert took_s < SESSION_S / 2
    assert took_s - (processes.stalled_s() - before_s) <= HAND_OVER_S
    assert ends.in_a_batch
    two.until(lambda: two.everything_arrived, "every record is in a sink")
    with closing(RedisClient(two.redis_url)) as client:
        assert OperatorVerbs.of_group(client, two.group).poison.strikes() == ()
    require(two.outcome().good, two.outcome())
