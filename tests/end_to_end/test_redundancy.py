"""Replica sets with Spark: each set has each record, and a set whose driver was killed gets a member of another one."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from drivers.driver import Driver
from drivers.fleet import SESSION_S, Fleet
from streams import Stream, keyed
from topics import Kafka

MOVE_S = 30  # an acquisition and a plan, on a machine that is busy otherwise
TWO = {"redundancy": "2"}
FLEET = {"options": TWO}


def test_each_replica_set_reads_everything_and_goes_on_where_it_was(
    kafka: Kafka, stream: Stream, tmp_path: Path
) -> None:
    other = Stream(stream.spark, stream.options, tmp_path / "other")
    for count in (30, 50):
        kafka.produce(stream.options["subscribe"], keyed(count))
        for one in (stream, other):
            one.run(**TWO)
    assert stream.sink.offsets == other.sink.offsets == list(range(80))
    group = stream.options["group"]
    assert {set_of(stream.checkpoint), set_of(other.checkpoint)} == {group, f"{group}@2"}


def set_of(checkpoint: Path, batch: int = 0) -> str:
    """The replica set that a batch was planned in."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return str(json.loads(lines[2])["#"]["group"])


def by_set(drivers: Sequence[Driver]) -> dict[str, Counter[int]]:
    """How often each offset arrived in each replica set."""
    found: dict[str, Counter[int]] = {}
    for driver in drivers:
        for line in driver.lines:
            batch = json.loads(line)
            name = set_of(driver.folder / "checkpoint", batch["batch"])
            found.setdefault(name, Counter()).update(offset for _, offset, *_ in batch["deliveries"])
    return found


def working(fleet: Fleet, *drivers: Driver) -> None:
    """Wait until each of these drivers finishes another batch."""
    before = [len(d.lines) for d in drivers]
    fleet.until(lambda: all(len(d.lines) > n for d, n in zip(drivers, before, strict=True)), "each finishes a batch")


def test_a_set_whose_only_driver_is_killed_gets_a_member_of_the_other_one(fleet: Fleet) -> None:
    with fleet.producing():
        one = fleet.start("one")
        working(fleet, one)
        two = fleet.start("two")
        working(fleet, two)
        third = fleet.start("third")
        working(fleet, one, two, third)
        first, second = fleet.group, f"{fleet.group}@2"
        assert [set_of(d.folder / "checkpoint") for d in (one, two, third)] == [first, second, first]
        two.kill()
        lines = len(one.lines) + len(third.lines)
        fleet.until(
            lambda: by_set([one, third]).get(second) is not None,
            "a member of the first set reads on in the second one",
            2 * SESSION_S + fleet.longest_batch_s + MOVE_S + SESSION_S,
        )
        assert len(one.lines) + len(third.lines) > lines, "the first set was not held up"
        working(fleet, one, third)
    sent = set(range(len(fleet.sent[0])))
    drivers = [one, two, third]
    fleet.until(lambda: all(sent <= of_set.keys() for of_set in by_set(drivers).values()), "each set has each record")
    assert by_set(drivers).keys() == {first, second}
    assert max(by_set(drivers)[first].values()) == 1, "no record of the other set came again"
    repeated = [offset for offset, times in by_set(drivers)[second].items() if times > 1]
    last = max(len(json.loads(line)["deliveries"]) for line in two.lines)
    assert len(repeated) <= last, "only the batch of the killed driver"
