"""Real drivers of one group, by spark-submit: killed, stopped, added, frozen; judged by what all of them wrote."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import points
from drivers.fleet import SESSION_S, Fleet
from topics import Kafka
from verdict import require

SPARE_S = 10  # an assignment and an acquisition, on a machine that is busy otherwise


@pytest.fixture
def fleet(kafka: Kafka, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """Drivers-to-be on a topic of one partition."""
    made = Fleet(kafka, redis_url, f"fleet-{uuid.uuid4().hex[:8]}", tmp_path)
    yield made
    made.end()


@pytest.mark.timeout(900)
def test_three_drivers_on_one_partition_survive_what_is_done_to_them_and_keep_every_key_in_order(fleet: Fleet) -> None:
    with fleet.producing():
        killed, stopped, stays = (fleet.join(name) for name in ("killed", "stopped", "stays"))
        fleet.until(lambda: fleet.working(killed, stopped, stays), "three drivers share one partition")

        killed.kill()
        seconds = fleet.until(lambda: fleet.without(killed.member), "others work on the ranges of the killed one")
        assert seconds <= SESSION_S + fleet.longest_batch_s + SPARE_S

        added = fleet.start("added")
        stopped.ask_to_stop()
        fleet.until(stopped.stopped, "a polite stop")
        fleet.until(lambda: fleet.working(stays, added), "the added one has its share, beside the one that stays")

        points.arm(stays.folder, points.AFTER_PARTITIONS)
        fleet.until(lambda: points.reached(stays.folder), "it is in a batch")
        points.disarm(stays.folder)
        stays.freeze()
        fleet.until(lambda: fleet.without(stays.member), "others work on the ranges of the frozen one")
        stays.wake()
        fleet.until(lambda: fleet.working(stays, added), "the one that woke is fenced, and joins again")

        for driver, point in ((stays, points.AFTER_SINK), (added, points.BEFORE_PARTITIONS)):
            points.arm(driver.folder, point)
            fleet.until(lambda driver=driver: points.reached(driver.folder), point)  # type: ignore[misc]
            driver.kill()
            driver.start()
        fleet.until(lambda: fleet.working(stays, added), "both are back on their checkpoints")
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    require(fleet.outcome().good, fleet.outcome())
