"""Two real drivers, by spark-submit, that share one partition and commit their batches in order."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from coordinator.commits.group_commits import GroupCommits
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.values.key_hash import hash_key
from coordinator.values.subscription import TopicPartition
from drivers import ordered_job
from drivers.driver import Driver
from drivers.fleet import Fleet
from topics import Record
from verdict import require

FLEET = {"options": {"columns": "key,value,topic,partition,offset,acknowledgement"}, "job": Path(ordered_job.__file__)}


def send(fleet: Fleet, driver: Driver) -> None:
    """One record with a key of this driver."""
    ranges = fleet.held(driver).ranges[0]
    keys = (f"key-{i}" for i in range(1_000))
    key = next(k for k in keys if any(hash_key(k.encode()) in hashes for hashes in ranges))
    value = str(len(fleet.sent[0]))
    fleet.kafka.produce(fleet.topic, [Record(value.encode(), key.encode(), 0)])
    fleet.sent[0].append((key, value))


def noted(driver: Driver, step: str) -> Callable[[], bool]:
    """Whether the driver has noted a line with this beginning."""
    file = driver.folder / "ordered"
    return lambda: file.exists() and any(line.startswith(step) for line in file.read_text().splitlines())


def hold(driver: Driver) -> None:
    (driver.folder / "hold").touch()


def go_on(driver: Driver) -> None:
    (driver.folder / "hold").unlink()


def passed(fleet: Fleet, driver: Driver, offset: int) -> bool:
    """Whether the offsets before this one are done in all hashes of the driver."""
    with GroupCommits.of_group(fleet.redis_url, fleet.group) as commits:
        ranges = commits.committed(TopicPartition(fleet.topic, 0)).ranges
    return all(part.position >= offset for part in ranges if part.owner == driver.member)


def renewed(fleet: Fleet, state: str) -> int:
    """The end of the only reservation in this state, in ms; 0 without one."""
    with closing(RedisClient(fleet.redis_url)) as client, client.reading() as redis:
        found = redis.hgetall(GroupKeys(fleet.group).reserved(TopicPartition(fleet.topic, 0)))
    ends = [int(value.split()[3]) for value in found.values() if value.split()[1] == state]
    return ends[0] if len(ends) == 1 else 0


def stays(fleet: Fleet, state: str) -> None:
    """Wait until a reservation has been in this state for longer than its lease, because its worker renews it."""
    fleet.until(lambda: bool(renewed(fleet, state)), f"a reservation is {state}")
    since = renewed(fleet, state)
    fleet.until(lambda: renewed(fleet, state) > since + ordered_job.LEASE_MS, f"it is {state} for longer than a lease")


def test_two_drivers_commit_one_partition_in_order_and_a_dead_one_stops_the_other_until_its_work_is_done(
    fleet: Fleet,
) -> None:
    a, b = fleet.join("a"), fleet.join("b")
    fleet.until(lambda: fleet.shared(a, b), "two drivers share the partition")
    # The seven steps. B has no record at offset 0, so the commit of its batch does its part.
    hold(a)
    send(fleet, a)
    fleet.until(noted(a, "reserved 0-0"), "step 1")
    fleet.until(lambda: passed(fleet, b, 1), "B has done its part of offset 0")
    send(fleet, b)
    fleet.until(noted(b, "reserved 1-1"), "step 2")
    stays(fleet, "parked")  # steps 3 and 4
    assert not noted(b, "committed 1-1")()
    go_on(a)
    fleet.until(noted(a, "committed 0-0 1"), "steps 5 and 6")
    fleet.until(noted(b, "committed 1-1 "), "step 7")
    fleet.until(lambda: passed(fleet, a, 2), "A has done its part of offset 1")

    hold(b)
    send(fleet, b)
    fleet.until(noted(b, "reserved 2-2"), "B works")
    fleet.until(lambda: passed(fleet, a, 3), "A has done its part of the same offset")
    send(fleet, a)
    fleet.until(noted(a, "reserved 3-3"), "A waits for B")
    stays(fleet, "held")  # B works for longer than the lease of its reservation
    assert not noted(a, "committed 3-3")()
    go_on(b)
    fleet.until(noted(a, "committed 3-3"), "A commits after that")
    fleet.until(lambda: passed(fleet, b, 4), "B has done its part of offset 3")

    hold(a)
    send(fleet, a)
    fleet.until(noted(a, "reserved 4-4"), "A works")
    fleet.until(lambda: passed(fleet, b, 5), "B has done its part of the same offset")
    send(fleet, b)
    fleet.until(noted(b, "reserved 5-5"), "B waits for A")
    a.kill()
    fleet.until(noted(b, "refused 5-5 ORDERED_COMMIT_REFUSED"), "the lease of A's reservation ends")
    fleet.until(lambda: fleet.everything_confirmed, "B has done the work of A")
    require(fleet.outcome().good, fleet.outcome())
