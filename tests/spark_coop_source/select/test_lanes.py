"""Rows of a chunk by key range agree with the points (offset, key hash)."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coordinator.values.key_hash import cuts, hash_record
from coordinator.values.ranges import HASH_MAX, HashRange
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.select.hashing import HashArray, hash_records
from spark_coop_source.select.lanes import by_part

keys = st.lists(st.none() | st.binary(max_size=4), min_size=1, max_size=40)
edges = st.lists(st.integers(0, HASH_MAX), min_size=2, max_size=9, unique=True).map(sorted)


def hashed(keys: Sequence[bytes | None]) -> HashArray:
    return hash_records(ByteColumn.of(keys), np.arange(7, 7 + len(keys)))


@given(keys, edges, st.data())
def test_each_part_has_exactly_its_own_records_in_offset_order(
    keys: list[bytes | None], edges: list[int], data: st.DataObject
) -> None:
    between = [HashRange(lo, until - 1) for lo, until in pairwise(edges)]
    parts = data.draw(st.lists(st.sampled_from(between), min_size=1, unique=True).map(sorted))
    rows, bounds = by_part(hashed(keys), parts)
    hashes = [hash_record(key, 7 + i) for i, key in enumerate(keys)]
    of_parts = [rows[a:b].tolist() for a, b in pairwise(bounds)]
    assert of_parts == [[i for i, key_hash in enumerate(hashes) if key_hash in part] for part in parts]


def test_more_parts_than_a_byte_can_count() -> None:
    parts = [part for i, part in enumerate(cuts(400)) if i % 4]
    rows, bounds = by_part(hashed([b"%d" % i for i in range(5_000)]), parts)
    hashes = [hash_record(b"%d" % i, 0) for i in range(5_000)]
    of_parts = [rows[a:b].tolist() for a, b in pairwise(bounds)]
    assert of_parts == [[i for i, key_hash in enumerate(hashes) if key_hash in part] for part in parts]
