"""`lastProgress` of a query that leaves records unread: how many, by Spark's own names, and the reason."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis
from pyspark.sql import SparkSession

from coordinator.plan.poison import Strike
from coordinator.redis.keys import GroupKeys
from coordinator.redis.lane_lines import PARKED
from coordinator.values.key_hash import cuts, hash_key
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source import map_keys
from spark_coop_source.function.rows import KeyRecords
from streams import DEADLINE_S, Stream, keyed
from topics import Kafka, Record

SLOW = b"slow"
Sources = Callable[[str, Mapping[str, str]], list[dict[str, Any]]]


@pytest.fixture
def sources(spark: SparkSession, tmp_path: Path) -> Sources:
    """Runs a query with AvailableNow; returns the source's progress of each batch that read records."""

    def run(form: str, options: Mapping[str, str]) -> list[dict[str, Any]]:
        rows = spark.readStream.format(form).options(**options).load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / form))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(DEADLINE_S), "AvailableNow does not end"
            batches = [json.loads(progress.json) for progress in query.recentProgress]
            return [one["sources"][0] for one in batches if one["numInputRows"]]
        finally:
            query.stop()

    return run


def test_offsets_behind_the_latest_are_those_of_sparks_own_source(
    kafka: Kafka, stream: Stream, sources: Sources
) -> None:
    topic = kafka.create_topic("behind", partitions=2)
    kafka.produce(topic, [Record(r.value, r.key, partition=int(i % 4 == 0)) for i, r in enumerate(keyed(1_200))])
    options = stream.options | {"subscribe": topic, "maxOffsetsPerTrigger": "400"}
    theirs = [source["metrics"] for source in sources("kafka", options)]
    found = [source["latestOffset"] for source in sources("coop-kafka", options)]
    ours = [report["#"] for report in found]
    assert [report[topic] for report in found] == [{"0": 900, "1": 300}] * 3
    assert [{name: one[name] for name in theirs[0]} for one in ours] == theirs
    assert [theirs[0][f"{of}OffsetsBehindLatest"] for of in ("min", "max", "avg")] == ["200", "600", "400.0"]
    first = ours[0]  # the lanes of later ones may be as of a second before
    assert first["limitedLanes"] == first["lanes"] > 0
    assert set(first["limited"].values()) == {"maxOffsetsPerTrigger"}


def test_the_lane_of_a_slow_key_is_named_with_the_budget_and_the_cost_of_a_record(
    kafka: Kafka, stream: Stream, sources: Sources
) -> None:
    def wait(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch:
        time.sleep(0.1 * len(batch) if key == b"slow" else 0)
        return batch.arrow.select(["key"])

    kafka.produce(stream.options["subscribe"], [Record(b"v", SLOW if i % 5 == 0 else b"%d" % i) for i in range(180)])
    inside = map_keys(wait, "key binary")
    limits = {"batchTimeBudget": "400ms", "maxOffsetsPerTrigger": "90", "lanes": "4"}
    ours = [source["latestOffset"]["#"] for source in sources("coop-kafka", stream.options | inside | limits)]
    assert set(ours[0]["limited"].values()) == {"maxOffsetsPerTrigger"}, "nothing is known yet"
    held_back = [one for one in ours if slow_lane_of(one, "budget")]
    assert int(held_back[0]["maxOffsetsBehindLatest"]) > 0
    costs = [one["slowestLane"].partition(": ") for one in held_back]
    (cost, *_) = [cost for one, (lane, _, cost) in zip(held_back, costs, strict=True) if lane in slow_lane_of(one)]
    number, unit = cost.split(maxsplit=1)
    assert (20 < float(number) < 1_000, unit) == (True, "ms a record"), "half of its records take 100 ms"


def slow_lane_of(report: Mapping[str, Any], *reasons: str) -> list[str]:
    """The limited lane with the slow key, if it is limited for one of these reasons; for any reason without them.

    The time of a record is that of the clock. On a busy machine another lane may be over the budget too.
    """
    limited = report["limited"].items()
    named = [name for name, why in limited if not reasons or why in reasons]
    return [name for name in named if hash_key(SLOW) in HashRange.parse(name.split()[-1])]


def test_a_parked_lane_is_counted_and_named_while_the_others_go_on(
    kafka: Kafka, stream: Stream, sources: Sources, redis_url: str
) -> None:
    topic = stream.options["subscribe"]
    kafka.produce(topic, keyed(100))
    sources("coop-kafka", stream.options)
    kafka.produce(topic, keyed(100, first=100))
    lower, _ = cuts(2)
    strike = Strike(TopicPartition(topic, 0), lower, OffsetRange(100, 101), 2, 1_000, "m-lost", parked=True)
    with closing(redis.Redis.from_url(redis_url)) as client:
        client.hset(GroupKeys(stream.options["group"]).strikes, strike.field, strike.text)
    (shown,) = (source["latestOffset"]["#"] for source in sources("coop-kafka", stream.options))
    assert int(shown["parkedLanes"]) > 0
    parked = {name for name, why in shown["limited"].items() if why == PARKED}
    assert len(parked) == int(shown["parkedLanes"])
    assert all(HashRange.parse(name.split()[-1]).intersection(lower) for name in parked)
