"""The memory of a task's process holds Kafka's settings, and nothing that only the driver needs."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from own_valkey import OwnValkey
from spark_coop_source import map_batches
from spark_coop_source.source import CoopKafkaDataSource
from streams import Stream, keyed
from topics import Kafka

SECRET = "q7-only-the-driver-may-know-this"
FOUND = "secrets int, topics int"


def searching(*texts: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that counts some texts in the memory of its process, though it does not hold them itself."""
    halves = [(text[: len(text) // 2].encode(), text[len(text) // 2 :].encode()[::-1]) for text in texts]

    def read(memory: Any, first: int, end: int) -> bytes:
        memory.seek(first)
        try:
            return bytes(memory.read(end - first))
        except (OSError, ValueError):  # a page of the kernel's
            return b""

    def occurrences(held: bytes, half: bytes, rest: bytes) -> int:
        count, at = 0, held.find(half)
        while at >= 0:
            behind = held[at + len(half) : at + len(half) + len(rest)]
            count, at = count + (behind[::-1] == rest), held.find(half, at + 1)
        return count

    def search(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            with Path("/proc/self/maps").open() as maps, Path("/proc/self/mem").open("rb", 0) as memory:
                writable = [line.split()[0].split("-") for line in maps if line.split()[1].startswith("rw")]
                regions = (read(memory, int(first, 16), int(end, 16)) for first, end in writable)
                found = [
                    sum(of) for of in zip(*([occurrences(r, *half) for half in halves] for r in regions), strict=True)
                ]
            yield pa.RecordBatch.from_pydict(
                {"secrets": pa.array([found[0]], pa.int32()), "topics": pa.array([found[1]], pa.int32())}
            )

    return search


@pytest.fixture
def secret_url(tmp_path: Path) -> Iterator[str]:
    """The url of a Redis whose password is the secret."""
    own = OwnValkey(tmp_path)
    try:
        with closing(redis.Redis.from_url(own.address)) as administrator:
            administrator.config_set("requirepass", SECRET)
        yield own.address.replace("redis://", f"redis://:{SECRET}@")
    finally:
        own.stop()


def test_no_executor_holds_the_password_of_redis(
    spark: SparkSession, kafka: Kafka, stream: Stream, secret_url: str
) -> None:
    topic = stream.options["subscribe"]
    kafka.produce(topic, keyed(40))
    options = stream.options | {"redisUrl": secret_url, "slots": "1"} | map_batches(searching(SECRET, topic), FOUND)
    found: list[tuple[str, int, int]] = []

    def collect(kind: str, rows: DataFrame) -> None:
        found.extend((kind, row.secrets, row.topics) for row in rows.collect())

    collect("batch", spark.read.format("coop-kafka").options(**options).load())
    pairs = ", ".join(f"`{name}` '{value}'" for name, value in options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW secret_view USING `coop-kafka` OPTIONS ({pairs})")
    collect("view", spark.table("secret_view"))
    query = (
        spark.readStream.format("coop-kafka")
        .options(**options)
        .load()
        .writeStream.foreachBatch(lambda rows, _: collect("stream", rows))
        .option("checkpointLocation", str(stream.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert {kind for kind, _, _ in found} == {"batch", "view", "stream"}
    assert all(topics for _, _, topics in found), "the search finds what is there"
    assert {(kind, secrets) for kind, secrets, _ in found} == {("batch", 0), ("view", 0), ("stream", 0)}


@pytest.mark.parametrize("name", ["spark_coop_source.source:CoopKafkaDataSource", "pyspark_coop_kafka:DefaultSource"])
@pytest.mark.parametrize("kind", ["reader", "streamReader"])
def test_options_travel_until_a_reader_is_made_and_no_further(name: str, kind: str) -> None:
    module, _, cls = name.partition(":")
    source = getattr(pytest.importorskip(module, reason="the wheel is not installed"), cls)
    options = {
        "kafka.bootstrap.servers": "broker:9092",
        "subscribe": "orders",
        "group": "g",
        "redisUrl": f"redis://:{SECRET}@redis:6379",
    }
    planned = pickle.loads(pickle.dumps(source(options)))
    assert planned.options == options, "the driver's processes need them"
    schema = planned.schema()
    assert isinstance(schema, StructType)
    reader = getattr(planned, kind)(schema)
    assert SECRET not in str(pickle.dumps((reader, planned)))
    assert getattr(planned, kind)(schema) is not None, "a second reader can still be made"


def test_a_refused_reader_travels_without_options() -> None:
    planned = CoopKafkaDataSource({"subscribe": "orders", "redisUrl": f"redis://:{SECRET}@redis:6379"})
    schema = StructType()
    assert SECRET not in str(pickle.dumps((planned.streamReader(schema), planned)))
