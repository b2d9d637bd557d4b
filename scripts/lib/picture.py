"""The command `scripts/picture`: runs a query with one slow key, and draws its group into docs/lanes.svg.

It reads the group from Redis as `coop-kafka describe` does, between two batches of the running query.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import processes
import servers
from broker_jars import ROOT
from coordinator.errors import UnknownGroupError
from coordinator.redis.client import RedisClient
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.picture import PictureTexts, draw
from coordinator.tools.operations.plane import Plane, plane
from coordinator.values.key_hash import hash_key
from coordinator.values.subscription import TopicPartition
from spark_coop_source import map_keys
from spark_coop_source.function.rows import KeyRecords
from topics import Kafka, Record

PICTURE = ROOT / "docs" / "lanes.svg"
GROUP, SLOTS = "orders-to-lake", 6
RECORDS, KEYS = 32_000, 101
SLOW_KEY, SLOW_US, DEAR_US, CHEAP_US = 7, 150_000, 8_000, 1_000
_PATIENCE_S, _POLL_S = 120.0, 0.1
_MOST_LANES = 32  # more are stripes
_AHEAD = 1.4  # each other lane must be at least this many times as far as the last lane


def waited(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """The work: wait as many microseconds for each record as its value."""
    for value in records.arrow.column("value").to_pylist():
        time.sleep(int(value) / 1_000_000)
    return pa.RecordBatch.from_pydict({"key": pa.array([key], pa.binary())})


def main() -> int:
    """Draw the picture again; 0 if it was written, 1 if the query never reached a state worth drawing."""
    parser = argparse.ArgumentParser(prog="scripts/picture", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=PICTURE, help="the SVG to write, default docs/lanes.svg")
    output = parser.parse_args().output.resolve()
    with processes.ending_politely():
        found = _run()
    if found is None:
        print("The query never had several lanes at different offsets: run it again.", file=sys.stderr)
        return 1
    output.write_text(draw(found, _words(found)), encoding="utf-8")
    print(f"Wrote {output}")
    return 0


def _run() -> Plane | None:
    """A plane worth drawing; None if there was none."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coop-kafka-picture-")))
        kafka, redis = stack.enter_context(servers.kafka_and_valkey(folder))
        tp = TopicPartition(Kafka(kafka.address).create_topic("orders"), 0)
        Kafka(kafka.address).produce(tp.topic, _records())
        query = stack.enter_context(_running(_options(kafka.address, redis.address, tp.topic), folder))
        client = stack.enter_context(closing(RedisClient(redis.address)))
        return _plane_to_draw(client, tp, query)


def _records() -> Iterator[Record]:
    """Keys in turns; one is very slow, three take longer than the others."""
    for number in range(RECORDS):
        key = number * 7_919 % KEYS
        cost = SLOW_US if key == SLOW_KEY else DEAR_US if key % 40 == 3 else CHEAP_US
        yield Record(str(cost).encode(), _key(key))


def _key(number: int) -> bytes:
    return b"customer-%d" % number


@contextlib.contextmanager
def _running(options: dict[str, str], folder: Path) -> Iterator[StreamingQuery]:
    """The running query."""
    with contextlib.chdir(folder):  # Python workers import from it first, and must import the installed modules
        spark = session(folder)
        rows = spark.readStream.format("coop-kafka").options(**options)
        rows = rows.options(**map_keys(waited, "key binary"))
        writer = rows.load().writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.start()
        try:
            yield query
        finally:
            query.stop()
            spark.stop()


def session(folder: Path) -> SparkSession:
    """Spark on this host, with its log in the folder."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    java = f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'} -Dcoop.log={folder / 'spark.log'}"
    builder = SparkSession.builder.master(f"local[{SLOTS}]").appName("picture").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.extraJavaOptions", java)
    return builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()


def _options(bootstrap: str, redis_url: str, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "group": GROUP,
        "redisUrl": redis_url,
        "slots": str(SLOTS),
        "batchTimeBudget": "2s",
    }


def _plane_to_draw(client: RedisClient, tp: TopicPartition, query: StreamingQuery) -> Plane | None:
    """The first state in which the slow key's lane is last, and the others are at different offsets."""
    deadline = time.monotonic() + _PATIENCE_S
    while query.isActive and time.monotonic() < deadline:
        with contextlib.suppress(UnknownGroupError):
            state = read_group(client, GROUP)
            if state.segments.get(tp) and _worth_drawing(seen := plane(state, tp)):
                return seen
        time.sleep(_POLL_S)
    return None


def _worth_drawing(seen: Plane) -> bool:
    found = [lane.segment for lane in seen.lanes]
    positions = sorted({lane.position for lane in found})
    if len(positions) < SLOTS - 2 or len(found) > _MOST_LANES:
        return False
    last = [lane.hashes for lane in found if lane.position == positions[0]]
    alone = len(last) == 1 and last[0].share < 1 / 64 and hash_key(_key(SLOW_KEY)) in last[0]
    return alone and _AHEAD * positions[0] < positions[1]


def _words(seen: Plane) -> PictureTexts:
    times = SLOW_US // CHEAP_US
    return PictureTexts(
        f"One Kafka partition, {len(seen.lanes)} lanes, one slow key",
        f"A real run: {RECORDS:,} records of {KEYS} keys, {SLOTS} tasks. One key takes {times} times as long as most.",
        "the slow key falls behind alone",
    )


if __name__ == "__main__":
    sys.exit(main())
