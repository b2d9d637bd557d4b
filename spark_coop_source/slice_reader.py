"""Reads the slices of one input partition: fetch each stretch once, keep what lies in a slice.

Knows slices and key hashes; how records come is `fetch`, how they look to Spark is `record_batch`.
Runs in executor workers.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
from kafka import KafkaConsumer

from coordinator.ranges import WHOLE, HashRange, union
from coordinator.slices import Slice
from coordinator.subscription import TopicPartition
from spark_coop_source.chunk import Chunk
from spark_coop_source.consumers import borrowed
from spark_coop_source.fetch import FetchSettings, fetch
from spark_coop_source.hashing import hash_records
from spark_coop_source.read import SlicePartition
from spark_coop_source.record_batch import Mask, regrouped, to_arrow


def batches(task: SlicePartition) -> Iterator[pa.RecordBatch]:
    """The Arrow batches of `read_slices`, which says what they hold."""
    return regrouped(_batches(task))


def _batches(task: SlicePartition) -> Iterator[pa.RecordBatch]:
    if not task.slices:
        return
    of_partitions = [(tp, merged(group)) for tp, group in groupby(sorted(task.slices), lambda s: s.topic_partition)]
    with borrowed(task.kafka, [tp for tp, _ in of_partitions]) as consumer:
        for tp, slices in of_partitions:
            yield from _of_partition(consumer, tp, slices, task)


def _of_partition(
    consumer: KafkaConsumer, tp: TopicPartition, slices: Sequence[Slice], task: SlicePartition
) -> Iterator[pa.RecordBatch]:
    settings = FetchSettings(task.kafka, task.poll_timeout_ms, task.fail_on_data_loss)
    for stretch in union(s.offsets for s in slices):
        for chunk in fetch(consumer, tp, stretch, settings):
            yield to_arrow(tp, chunk, select(chunk, slices), include_headers=task.include_headers)


def select(chunk: Chunk, slices: Iterable[Slice]) -> Mask | None:
    """Which records of a chunk lie in one of `slices`, all of its partition; None if all do.

    A slice that spans the whole hash space needs no hashes, and costs none.
    """
    first, last = int(chunk.offsets[0]), int(chunk.offsets[-1])
    near = [s for s in slices if s.offsets.start <= last and first < s.offsets.until]
    if any(s.hashes == WHOLE and s.offsets.start <= first and last < s.offsets.until for s in near):
        return None
    mask = np.zeros(len(chunk), np.bool_)
    hashes = hash_records(chunk.keys, chunk.offsets) if any(s.hashes != WHOLE for s in near) else None
    for s in near:
        inside = (s.offsets.start <= chunk.offsets) & (chunk.offsets < s.offsets.until)
        if hashes is not None:
            inside &= (s.hashes.lo <= hashes) & (hashes <= s.hashes.hi)
        mask |= inside
    return mask


def merged(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """The same points of one partition in fewer slices: what touches with the same offsets becomes one.

    Lanes that share a task and are the whole space together then need no hashes.

        hash  |######|           |######|
              |######|    ->     |######|
              |###|              |###|
    """
    done: list[Slice] = []
    for s in sorted(slices, key=lambda s: (s.offsets, s.hashes)):
        if done and done[-1].offsets == s.offsets and done[-1].hashes.hi + 1 >= s.hashes.lo:
            below = done.pop().hashes
            done.append(Slice(s.topic, s.partition, HashRange(below.lo, max(below.hi, s.hashes.hi)), s.offsets))
        else:
            done.append(s)
    return tuple(done)
