"""Each stage of the read path alone: rows for each second of CPU of one process."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import pyarrow as pa
from kafka import TopicPartition as KafkaTopicPartition

from bench.cases.throughput import small
from bench.table import Result
from bench.world import World
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output.record_batch import regrouped, to_arrow
from spark_coop_source.arrow_output.schema import PLAIN
from spark_coop_source.cache.block_format import Packed, unpacked
from spark_coop_source.cache.blocks import Block, opened
from spark_coop_source.decode.record_batch_v2 import RawBatch, decoded
from spark_coop_source.fetch.consumers import borrowed, close_idle
from spark_coop_source.fetch.fetch import CHUNK_BYTES
from spark_coop_source.select.chosen import Hashed
from spark_coop_source.select.hashing import hash_records
from spark_coop_source.select.lanes import by_part, within

ROWS = 65_536
MOST_BYTES = 200 * 1024 * 1024


def stages(world: World) -> Iterator[Result]:
    """Fetch from a broker; run the other stages on the fetched data, in memory."""
    load = small(world)
    tp = TopicPartition(world.topic(load), 0)
    raw = _fetched(world, tp)
    chunks = list(decoded(raw, ROWS, CHUNK_BYTES))
    half = Slice(tp, cuts(2)[0], OffsetRange(0, load.records))
    every_second = [np.arange(0, len(each), 2) for each in chunks]
    whole = [to_arrow(tp, each, None, PLAIN) for each in chunks]
    in_eight = [[batch.slice(at, len(batch) // 8) for at in range(0, len(batch), len(batch) // 8)] for batch in whole]
    small_ones = [batch.slice(at, 100) for batch in whole for at in range(0, len(batch), 100)]
    work: dict[str, Callable[[], object]] = {
        "fetch": lambda: _fetched(world, tp),
        "decode": lambda: list(decoded(raw, ROWS, CHUNK_BYTES)),
        "hash": lambda: [hash_records(each.keys, each.offsets) for each in chunks],
        "select": lambda: [within(Hashed(each), [half]) for each in chunks],
        "sort": lambda: [by_part(hash_records(each.keys, each.offsets), cuts(8)) for each in chunks],
        "copy all": lambda: [to_arrow(tp, each, None, PLAIN) for each in chunks],
        "copy half": lambda: [to_arrow(tp, each, rows, PLAIN) for each, rows in zip(chunks, every_second, strict=True)],
        "share": lambda: _shared(in_eight),
        "join": lambda: list(regrouped(small_ones)),
    }
    for name, run in work.items():
        per_second = load.records / median(_cpu_seconds(run) for _ in range(world.times))
        yield Result(name, f"{_MEANING[name]}, 100-byte values, {load.codec}", "", _rate(per_second), "")
    close_idle()


_MEANING = {
    "fetch": "broker to raw record batches, crc checked",
    "decode": "raw batches to columns, decompressed",
    "hash": "key hashes",
    "select": "which records lie in a lane, hashing included",
    "sort": "which lie in each of eight, hashing included",
    "copy all": "columns to Arrow, every row",
    "copy half": "columns to Arrow, every second row",
    "share": "batches for eight lanes into shared memory, and out again",
    "join": "batches of 100 rows joined to some of 20,000",
}


def _shared(blocks: list[list[pa.RecordBatch]]) -> None:
    with opened(MOST_BYTES) as cache:
        if cache is None:
            raise RuntimeError("shared memory cannot be used on this machine")
        for number, batches in enumerate(blocks):
            packed = Packed.of(batches)
            block = Block("bench", OffsetRange(number, number + 1), packed.size)
            cache.publish(block, packed.write)
            with cache.taken(block, 1) as read:
                if read:
                    deque(unpacked(read, range(len(batches)), batches[0].schema), maxlen=0)
        cache.forget("bench")


def _fetched(world: World, tp: TopicPartition) -> list[RawBatch]:
    at = KafkaTopicPartition(*tp)
    batches: list[RawBatch] = []
    with borrowed({"bootstrap_servers": world.broker.address}, [tp]) as consumer:
        consumer.seek(at, 0)
        end = consumer.end_offsets([at])[at]
        while consumer.position(at) < end:
            batches += [record.value for record in consumer.poll(100, 100_000).get(at, [])]
    return batches


def _cpu_seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _rate(per_second: float) -> str:
    return f"{per_second / 1e6:.2f} M rows/CPU-s"
