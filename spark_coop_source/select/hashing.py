"""Computes the key hash of many records at once, as `coordinator.values.key_hash` defines it."""

import numpy as np
from numpy.typing import NDArray

from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.select.murmur3 import murmur3

HashArray = NDArray[np.int64]


def hash_records(keys: ByteColumn, offsets: NDArray[np.int64]) -> HashArray:
    """The hash of each record, in [0, 2^63 - 1]: of its key, or of its offset where the key is null."""
    hashes = murmur3(np.frombuffer(keys.buffer, np.uint8), keys.starts, keys.lengths)
    nulls = np.flatnonzero(keys.nulls)
    if len(nulls):
        offset_bytes = offsets[nulls].astype(">i8").view(np.uint8)
        hashes[nulls] = murmur3(offset_bytes, np.arange(len(nulls)) * 8, np.full(len(nulls), 8))
    return (hashes >> np.uint64(1)).view(np.int64)
