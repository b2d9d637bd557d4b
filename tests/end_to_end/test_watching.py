"""The page and the exporter beside real drivers: ranges of a killed driver, and the lag while no driver lives."""

import uuid
from collections.abc import Iterator

import pytest

from drivers.fleet import Fleet
from exporters import Exporter, exporter
from sites import CHROMIUM, NO_CHROMIUM, chromium, looking, site
from topics import Kafka, Record

GROUP = "coop_kafka_consumer_group_"


@pytest.fixture(scope="module")
def fleet(kafka: Kafka, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two drivers at work on one partition, in a group whose name is hostile."""
    group = f'g"}} \\evil <b>группа-🦊 {{{{ $labels }}}} {uuid.uuid4().hex[:8]}'
    made = Fleet(kafka, redis_url, group, tmp_path_factory.mktemp("fleet"), pace="1 second")
    try:
        with made.producing():
            drivers = made.join("one"), made.join("two")
            made.until(lambda: made.shared(*drivers), "both work")
        made.until(lambda: made.everything_confirmed, "all is confirmed")
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def running(fleet: Fleet, kafka: Kafka, redis_url: str) -> Iterator[Exporter]:
    with exporter(redis_url, kafka.bootstrap) as made:
        yield made


@pytest.mark.skipif(not CHROMIUM, reason=NO_CHROMIUM)
def test_the_ranges_of_a_killed_driver_change_their_colour(fleet: Fleet, kafka: Kafka, redis_url: str) -> None:
    with (
        site(redis_url, "--bootstrap-server", kafka.bootstrap) as running,
        chromium() as browser,
        looking(browser, running.url) as page,
    ):
        page.select_option("#groups", fleet.group)
        page.wait_for_selector("#plane rect.done.m0")
        page.wait_for_selector("#plane rect.done.m1")
        fleet.drivers["one"].kill()
        page.wait_for_selector("#plane rect.done.m1", state="detached", timeout=60_000)
        page.wait_for_selector("#members tbody tr:only-child:has-text('working')", timeout=60_000)


def test_the_lag_grows_while_no_driver_lives(fleet: Fleet, running: Exporter) -> None:
    labels = {"group_id": fleet.group, "topic_name": fleet.topic, "partition_id": "0"}
    assert running.scrape()(f"{GROUP}members", group_id=fleet.group) in (1, 2)
    for driver in fleet.drivers.values():
        if driver.process is not None and driver.process.poll() is None:  # the page's test has killed one
            driver.kill()
    lag = running.scrape()(f"{GROUP}topic_partition_lag", **labels)
    assert lag == 0
    fleet.kafka.produce(fleet.topic, [Record(b"%d" % n, b"key-%d" % (n % 20), 0) for n in range(1_000)])
    assert running.scrape()(f"{GROUP}topic_partition_lag", **labels) == lag + 1_000
    fleet.until(lambda: running.scrape()(f"{GROUP}members", group_id=fleet.group) == 0, "their leases end")
    after = running.scrape()
    assert after(f"{GROUP}topic_partition_lag", **labels) == lag + 1_000
    assert (after(f"{GROUP}topic_partition_lane_lag_seconds", **labels) or 0) > 0
    owned = after.labels(f"{GROUP}topic_partition_owned_ratio")
    assert fleet.group not in {of_sample["group_id"] for of_sample in owned}
