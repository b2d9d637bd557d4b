"""The hash of many records is the hash of each of them, bit by bit."""

import numpy as np

from coordinator.values.ranges import HASH_MAX
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.select.hashing import hash_records


def test_hashes_stay_within_the_hash_space() -> None:
    hashes = hash_records(ByteColumn.of([b"%d" % i for i in range(1000)]), np.arange(1000))
    assert hashes.min() >= 0
    assert hashes.max() <= HASH_MAX
    assert hashes.max() > HASH_MAX // 2, "an unsigned hash fills the upper half too"


def test_null_keys_are_spread_and_an_empty_key_is_a_key() -> None:
    hashes = hash_records(ByteColumn.of([None, None, b"", b""]), np.array([1, 2, 3, 4]))
    assert hashes[0] != hashes[1]
    assert hashes[2] == hashes[3]
