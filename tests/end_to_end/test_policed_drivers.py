"""Two drivers of one group, by spark-submit, while an administrator changes policies, and while Redis loses them."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain

import pytest
import redis

from command_runs import Run
from coordinator.values.subscription import TopicPartition
from drivers import output
from drivers.driver import owners
from drivers.fleet import Fleet

ICS, FETCH = "accept.individual.commit", "accept.range.fetch"
PLAIN = {"sharing": "partitions", "lanes": "1"}


@pytest.fixture
def policy(run: Run, fleet: Fleet) -> Iterator[Callable[[str, str], None]]:
    """Sets a policy of the group, or of the topic in all groups, from the command line."""
    kafka = ("--bootstrap-server", fleet.kafka.bootstrap)

    def command(name: str, value: str) -> None:
        where = (fleet.group, "--redis", fleet.redis_url) if name == ICS else ("--topic", fleet.topic, *kafka)
        assert run("policy", *where, "--set", f"{name}={value}", "--execute")[0] == 0

    yield command
    command(FETCH, "")


def go_on(fleet: Fleet) -> None:
    """Wait until three batches with new records have ended."""
    for _ in range(3):
        before = len(fleet.arrived)
        fleet.until(lambda: len(fleet.arrived) > before, "a batch ends")  # noqa: B023 - called at once


def members(fleet: Fleet) -> int:
    state = fleet.state
    return len(state.members) if state else 0


def in_partition_order(fleet: Fleet) -> bool:
    """Whether each record arrived once, in the order of the log."""
    batches = sorted(chain.from_iterable(output.batches(d.name, d.lines) for d in fleet.drivers.values()))
    each = (sorted(b.deliveries, key=lambda x: (x[1].input_partition, x[1].place)) for b in batches)
    offsets = [d.offset for of_one in each for _, d in of_one]
    return offsets == list(range(len(offsets)))


def test_four_steps_from_a_plain_source_to_sharing(fleet: Fleet, policy: Callable[[str, str], None]) -> None:
    """Rules: sharing-policies, partition-order."""
    policy(ICS, "false")
    policy(FETCH, "false")
    fleet.options = PLAIN
    with fleet.producing():
        a = fleet.join("a")
        b = fleet.start("b")
        fleet.until(lambda: members(fleet) == 2, "both are members")
        go_on(fleet)  # step 0
        for name in (ICS, FETCH):  # steps 1 and 2
            policy(name, "true")
            go_on(fleet)
            state = fleet.state
            assert state is not None
            assert len(owners(state)) == 1
        assert in_partition_order(fleet)
        for driver in (a, b):  # steps 3 and 4
            driver.ask_to_stop()
            fleet.until(driver.stopped, "it has stopped")
            driver.options = {k: v for k, v in driver.options.items() if k not in PLAIN}
            driver.start()
        fleet.until(lambda: fleet.shared(a, b), "they share the partition")
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")


def test_redis_is_emptied_while_sharing_is_forbidden(fleet: Fleet, policy: Callable[[str, str], None]) -> None:
    """Rule: policies-survive. Nothing is shared, and a query that demands it still ends with code 88."""
    policy(ICS, "false")
    most = 0

    def owned_by() -> int:
        nonlocal most
        state = fleet.state
        now = len({m for _, _, m in state.owners.get(TopicPartition(fleet.topic, 0), ())}) if state else 0
        most = max(most, now)
        return now

    with fleet.producing():
        fleet.join("a")
        fleet.start("b")
        fleet.until(lambda: members(fleet) == 2, "both are members")
        go_on(fleet)
        with closing(redis.Redis.from_url(fleet.redis_url)) as server:
            server.delete(*server.scan_iter(f"coop:v1:{{{fleet.group}}}:*"))
        fleet.until(lambda: owned_by() == 1, "one of them goes on")
        before = len(fleet.arrived)
        fleet.until(lambda: owned_by() == 1 and len(fleet.arrived) > before + 100, "it delivers new records")
    assert most == 1
    fleet.options = {"sharing": "required"}
    c = fleet.start("c")
    assert c.process is not None
    assert c.process.wait(120) != 0
    assert "INDIVIDUAL_COMMIT_NOT_ALLOWED: code 88: sharing=required is set" in c.log.read_text()
