"""Rows of a chunk by key range agree with what the points (offset, key hash) say."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from coordinator.key_hash import cuts, hash_record
from coordinator.ranges import HASH_MAX, HashRange
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HEADERS
from spark_coop_source.select.lanes import by_part

keys = st.lists(st.none() | st.binary(max_size=4), min_size=1, max_size=40)
edges = st.lists(st.integers(0, HASH_MAX), min_size=2, max_size=9, unique=True).map(sorted)


def chunk_of(keys: list[bytes | None]) -> Chunk:
    column, offsets = ByteColumn.of(keys), np.arange(7, 7 + len(keys))
    types = np.zeros(len(keys), np.int32)
    return Chunk(column, column, offsets, offsets, types, pa.nulls(len(keys), HEADERS))


@given(keys, edges, st.data())
def test_each_part_has_its_records_in_offset_order_and_nobody_has_the_others(
    keys: list[bytes | None], edges: list[int], data: st.DataObject
) -> None:
    between = [HashRange(lo, until - 1) for lo, until in pairwise(edges)]
    parts = data.draw(st.lists(st.sampled_from(between), min_size=1, unique=True).map(sorted))
    rows, bounds = by_part(chunk_of(keys), parts)
    hashes = [hash_record(key, 7 + i) for i, key in enumerate(keys)]
    of_parts = [rows[a:b].tolist() for a, b in pairwise(bounds)]
    assert of_parts == [[i for i, key_hash in enumerate(hashes) if key_hash in part] for part in parts]


def test_more_parts_than_a_byte_can_count() -> None:
    parts = [part for i, part in enumerate(cuts(400)) if i % 4]
    chunk = chunk_of([b"%d" % i for i in range(5_000)])
    rows, bounds = by_part(chunk, parts)
    hashes = [hash_record(b"%d" % i, 0) for i in range(5_000)]
    of_parts = [rows[a:b].tolist() for a, b in pairwise(bounds)]
    assert of_parts == [[i for i, key_hash in enumerate(hashes) if key_hash in part] for part in parts]
