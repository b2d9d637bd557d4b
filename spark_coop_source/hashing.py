"""The key hash of many records at once. `coordinator.key_hash` says what it is, this file only applies it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coordinator.key_hash import hash_record


def hash_records(keys: Sequence[bytes | None], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The hash of each record, in [0, 2^63 - 1]: of its key, or of its offset where the key is null."""
    return np.fromiter(map(hash_record, keys, offsets.tolist()), np.int64, len(keys))
