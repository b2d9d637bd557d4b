"""Queries with ordering=none on real Kafka, Redis and Spark: every record once, from slices of offsets."""

import json
from dataclasses import replace

import pytest
from pyspark.errors import StreamingQueryException

from coordinator.commits.commit_api import CommitApi
from coordinator.errors import CommitWithoutOrderError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from drivers import points
from drivers.driver import Driver
from drivers.fleet import SESSION_S, Fleet
from kafka_groups import described
from streams import Stream, eventually, keyed, stable, state
from topics import Kafka, Record

NONE = {"ordering": "none"}
SPARE_S = 30  # a plan and a batch, on a machine that is busy otherwise
FLEET = {"options": NONE}


def wal(stream: Stream, batch: int) -> dict[str, dict[str, dict[str, str]]]:
    """The offset of the only source in a batch's WAL entry."""
    found: dict[str, dict[str, dict[str, str]]] = json.loads(
        (stream.checkpoint / "offsets" / str(batch)).read_text().splitlines()[2]
    )
    return found


def test_all_slots_read_one_partition_at_once_and_each_record_once(kafka: Kafka, stream: Stream) -> None:
    kafka.produce(stream.options["subscribe"], keyed(2_000))
    stream.run(**NONE)
    assert stream.sink.offsets == list(range(2_000))
    assert stream.sink.tasks == {0: 4}
    assert stable(stream) == {2_000}
    (lane,) = wal(stream, 0)[stream.options["subscribe"]]["0"].items()
    assert (lane[0], lane[1].partition("@")[2]) == (str(WHOLE), "0-1999")
    eventually(lambda: state(stream).leases_ms == {}, "a query that ended has left", deadline_s=20)


def test_one_hot_key_is_read_by_all_slots(kafka: Kafka, stream: Stream) -> None:
    """60 % of the records have one key: by key, one task reads them all."""
    records = [replace(r, key=b"hot") if i % 10 < 6 else r for i, r in enumerate(keyed(2_000))]
    kafka.produce(stream.options["subscribe"], records)
    stream.run(**NONE)
    fullest = max(sum(d.input_partition == task for d in stream.sink.received) for task in range(4))
    assert stream.sink.offsets == list(range(2_000))
    assert fullest == 500


@pytest.mark.long
def test_filtered_records_count_as_done_and_kafkas_own_tool_shows_lag_0(kafka: Kafka, stream: Stream) -> None:
    """99 % of the records are dropped, the last ones too; then a dropped record comes alone."""
    topic, count = stream.options["subscribe"], 2_000
    kafka.produce(topic, [Record(b"%d" % i, b"key-%d" % (i % 100)) for i in range(count)], compression="lz4")
    given = NONE | {"filterKeysAllow": '["key-7"]', "maxOffsetsPerTrigger": "300"}
    stream.run(**given)
    assert stream.sink.offsets == list(range(7, count, 100))
    assert stable(stream) == {count}
    kafka.produce(topic, [Record(b"more", b"key-8")])
    stream.run(**given)
    assert stream.sink.offsets == list(range(7, count, 100))
    (row,) = described(kafka.bootstrap, stream.options["group"])
    assert row[3:6] == [str(count + 1), str(count + 1), "0"]


def test_a_batch_that_failed_comes_again_with_the_same_records(kafka: Kafka, stream: Stream) -> None:
    kafka.produce(stream.options["subscribe"], keyed(100))

    def fail(batch: int) -> None:
        raise RuntimeError(f"no batch {batch}")

    stream.sink.before = fail
    with pytest.raises(StreamingQueryException):
        stream.run(**NONE)
    before = wal(stream, 0)
    stream.sink.before = lambda batch: None
    stream.run(**NONE)
    assert wal(stream, 0) == before
    assert stream.sink.offsets == list(range(100))
    assert stable(stream) == {100}
    with pytest.raises(CommitWithoutOrderError, match="has ordering=none"):
        CommitApi.of_offset(stream.options["redisUrl"], before)


def working(fleet: Fleet, *drivers: Driver) -> None:
    """Wait until each of these drivers finishes a batch."""
    before = [len(d.lines) for d in drivers]
    fleet.until(lambda: all(len(d.lines) > n for d, n in zip(drivers, before, strict=True)), "each finishes a batch")


def in_a_batch(fleet: Fleet, driver: Driver) -> None:
    """Wait until the driver is between the tasks of a batch and its sink."""
    points.arm(driver.folder, points.BEFORE_SINK)
    fleet.until(driver.stands, "it is in a batch")


def test_the_second_driver_gets_45_to_49_while_40_is_not_done_and_a_restart_repeats_its_batch(fleet: Fleet) -> None:
    """[40-49]: the first driver asks and gets [40-44]. It is killed before its sink, and starts again."""
    fleet.kafka.produce(fleet.topic, keyed(50))
    from_40 = {"startingOffsets": json.dumps({fleet.topic: {"0": 40}}), "maxOffsetsPerTrigger": "5"}
    fleet.options = NONE | from_40 | {"sessionTimeout": "200000"}
    first = fleet.start("first")
    in_a_batch(fleet, first)
    second = fleet.start("second")
    fleet.until(lambda: stable_and_done(fleet) == (40, ["45-49"]), "the second one commits its slice")
    assert (delivered(first), delivered(second)) == ([], [(0, [*range(45, 50)])])
    planned = wal_of(first)
    first.kill()
    first.start()
    fleet.until(lambda: stable_and_done(fleet) == (50, []), "the first one commits its slice")
    assert delivered(first) == [(0, [*range(40, 45)])]
    assert delivered(second) == [(0, [*range(45, 50)])]
    assert wal_of(first) == planned


def stable_and_done(fleet: Fleet) -> tuple[int, list[str]]:
    """The stable offset of the partition, and the offsets that are done above it."""
    state, tp = fleet.state, TopicPartition(fleet.topic, 0)
    if state is None:
        return 0, []
    return state.stable.get(tp, 0), [str(r.offsets) for r in state.ics.get(tp, ())]


def delivered(driver: Driver) -> list[tuple[int, list[int]]]:
    """The finished batches of a driver: id and offsets."""
    lines = [json.loads(line) for line in driver.lines]
    return [(line["batch"], sorted(delivery[1] for delivery in line["deliveries"])) for line in lines]


def wal_of(driver: Driver, batch: int = 0) -> str:
    """The offset of a batch in Spark's WAL."""
    return (driver.folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[2]


def planned(driver: Driver) -> set[int]:
    """The offsets of its last batch in Spark's WAL."""
    last = max(int(file.name) for file in (driver.folder / "checkpoint" / "offsets").glob("[0-9]*"))
    end = StreamOffset.from_json(json.loads(wal_of(driver, last)))
    return {offset for _, lane in end for r in lane.offsets for offset in range(r.start, r.until)}


def read_by_others(fleet: Fleet, driver: Driver) -> float:
    """Wait until others have read the batch in which this driver was stopped; returns the seconds.

    A gap in the sinks is no sign of it: another driver may read this batch and all records above it in one batch.
    """
    left = planned(driver)
    assert left
    what = f"others read the batch of {driver.name}, within {min(left)}-{max(left)}"
    return fleet.until(lambda: left <= {offset for _, offset in fleet.arrived}, what)


def test_three_drivers_on_one_partition_lose_nothing_by_kills_and_freezes(fleet: Fleet) -> None:
    with fleet.producing():
        killed, frozen, stays = (fleet.start(name) for name in ("killed", "frozen", "stays"))
        working(fleet, killed, frozen, stays)
        in_a_batch(fleet, killed)
        killed.kill()
        assert read_by_others(fleet, killed) <= SESSION_S + fleet.longest_batch_s + SPARE_S
        in_a_batch(fleet, frozen)
        frozen.freeze()
        points.disarm(frozen.folder)
        read_by_others(fleet, frozen)
        frozen.wake()
        killed.start()
        working(fleet, killed, frozen, stays)
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    fleet.until(lambda: fleet.everything_confirmed, "every record is committed")
    again = sum(len(batch) for batch in offsets_of(fleet)) - len(fleet.arrived)
    assert again <= longest(fleet) * 2  # the slices of the killed and of the frozen one, at most


def offsets_of(fleet: Fleet) -> list[list[int]]:
    return [
        [delivery[1] for delivery in json.loads(line)["deliveries"]] for d in fleet.drivers.values() for line in d.lines
    ]


def longest(fleet: Fleet) -> int:
    return max(map(len, offsets_of(fleet)))
