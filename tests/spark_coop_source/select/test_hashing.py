"""The hash of many records is the hash of each of them, bit by bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coordinator.values.key_hash import hash_record
from coordinator.values.ranges import HASH_MAX, OFFSET_MAX
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.select.hashing import hash_records

records = st.lists(st.tuples(st.none() | st.binary(max_size=70), st.integers(0, OFFSET_MAX)), max_size=40)


@given(records)
def test_every_record_hashes_as_key_hash_defines_it(records: list[tuple[bytes | None, int]]) -> None:
    keys = [key for key, _ in records]
    offsets = np.array([offset for _, offset in records], np.int64)
    hashes = hash_records(ByteColumn.of(keys), offsets)
    assert hashes.dtype == np.int64
    assert hashes.tolist() == [hash_record(key, offset) for key, offset in records]


def test_hashes_stay_within_the_hash_space() -> None:
    hashes = hash_records(ByteColumn.of([b"%d" % i for i in range(1000)]), np.arange(1000))
    assert hashes.min() >= 0
    assert hashes.max() <= HASH_MAX
    assert hashes.max() > HASH_MAX // 2, "an unsigned hash fills the upper half too"


def test_null_keys_are_spread_and_an_empty_key_is_a_key() -> None:
    hashes = hash_records(ByteColumn.of([None, None, b"", b""]), np.array([1, 2, 3, 4]))
    assert hashes[0] != hashes[1]
    assert hashes[2] == hashes[3]
