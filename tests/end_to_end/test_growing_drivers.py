"""Two drivers, by spark-submit, read a topic that grows from 2 to 3 to 4 partitions (rule: growth-order)."""

from contextlib import closing
from itertools import chain

from coordinator.redis.client import RedisClient
from coordinator.redis.events import last_events
from drivers import output
from drivers.fleet import Fleet
from growing_topics import Arrival, Producer, in_new_partitions, out_of_order
from verdict import require

BACKLOG = 160  # records of each producer before the first growth: older partitions are behind
NOT_ALL = "not a multiple, so keys that moved between older partitions may be out of order"
FLEET = {"partitions": 2, "options": {"maxOffsetsPerTrigger": "40"}}


def send(fleet: Fleet, producers: dict[str, Producer], count: int) -> None:
    """The next records of each producer, in turns."""
    records = list(chain(*zip(*(p.records(count) for p in producers.values()), strict=True)))
    fleet.kafka.produce(fleet.topic, records)
    for r in records:
        fleet.sent[r.partition or 0].append(((r.key or b"").decode(), (r.value or b"").decode()))


def growths(fleet: Fleet) -> list[str]:
    """The reasons in the growth events."""
    with closing(RedisClient(fleet.redis_url)) as client:
        return [e.why for e in last_events(client, fleet.group, 1_000) if e.kind == "growth"]


def go_on(fleet: Fleet) -> None:
    """Wait until a batch with new records ends."""
    before = len(fleet.arrived)
    fleet.until(lambda: len(fleet.arrived) > before, "a batch ends")


def see(fleet: Fleet, step: str) -> None:
    """Wait until the group has seen a growth."""
    fleet.until(lambda: any(step in why for why in growths(fleet)), step)


def finished(fleet: Fleet) -> list[output.Batch]:
    """The batches of both drivers, in the order in which they ended."""
    return sorted(chain.from_iterable(output.batches(d.name, d.lines) for d in fleet.drivers.values()))


def arrivals(fleet: Fleet) -> list[Arrival]:
    """All records, in the order of batches, and within a batch of tasks."""
    return [
        Arrival.of(number, partition, d.key or "", d.value or "")
        for number, batch in enumerate(finished(fleet))
        for partition, d in sorted(batch.deliveries, key=lambda x: (x[1].input_partition, x[1].place))
    ]


def test_two_drivers_keep_new_partitions_in_order_while_producers_learn_of_two_growths_one_by_one(fleet: Fleet) -> None:
    producers = {name: Producer(name, 2) for name in "abc"}
    a, b = fleet.join("a"), fleet.join("b")
    fleet.until(lambda: fleet.shared(a, b), "two drivers share two partitions")
    send(fleet, producers, BACKLOG)
    for partitions, learning in {3: "ab", 4: "cab"}.items():  # producer c knows 2 until it knows 4
        fleet.grow(partitions)
        for name in learning:
            producers[name].partitions = partitions
            send(fleet, producers, 32)
            go_on(fleet)
        see(fleet, f"{partitions - 1} -> {partitions} partitions")
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    require(fleet.outcome().good, fleet.outcome())
    wrong = in_new_partitions(out_of_order(arrivals(fleet)))
    require(not wrong, wrong)
    assert growths(fleet) == [f"{fleet.topic}: {step} partitions; {NOT_ALL}" for step in ("2 -> 3", "3 -> 4")]
    assert {batch.driver for batch in finished(fleet) if batch.deliveries} == {"a", "b"}
