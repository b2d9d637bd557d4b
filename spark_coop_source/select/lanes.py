"""Selects the records of a chunk that lie in some key ranges, as numpy row numbers.

Knows slices and chunks; nothing of Arrow's batches.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from coordinator.progress.slices import Slice
from coordinator.values.ranges import WHOLE, HashRange
from spark_coop_source.decode.byte_column import RowNumbers
from spark_coop_source.select.chosen import Hashed
from spark_coop_source.select.hashing import HashArray


def within(of: Hashed, slices: Iterable[Slice]) -> RowNumbers:
    """The rows whose records lie in one of `slices`, all of the chunk's partition."""
    chunk = of.chunk
    first, last = int(chunk.offsets[0]), int(chunk.offsets[-1])
    near = [s for s in slices if s.offsets.start <= last and first < s.offsets.until]
    if any(s.hashes == WHOLE and s.offsets.start <= first and last < s.offsets.until for s in near):
        return np.arange(len(chunk))
    mask = np.zeros(len(chunk), np.bool_)
    for s in near:
        inside = (s.offsets.start <= chunk.offsets) & (chunk.offsets < s.offsets.until)
        if s.hashes != WHOLE:
            inside &= (s.hashes.lo <= of.hashes) & (of.hashes <= s.hashes.hi)
        mask |= inside
    return np.flatnonzero(mask)


def by_part(hashes: HashArray, parts: Sequence[HashRange]) -> tuple[RowNumbers, NDArray[np.int64]]:
    """The rows of a chunk in `parts`, part after part, and where each part begins and the last ends.

    `parts` ascend and are disjoint. Within a part the rows are in offset order; rows in no part are left out.
    """
    numbers = np.searchsorted([part.lo for part in parts], hashes, "right") - 1
    numbers[hashes > np.array([part.hi for part in parts])[numbers]] = len(parts)
    numbers[numbers < 0] = len(parts)
    few = numbers.astype(np.uint8 if len(parts) < 256 else np.uint16)  # numpy sorts small integers by radix
    bounds = np.concatenate([[0], np.cumsum(np.bincount(few, minlength=len(parts))[: len(parts)])])
    return np.argsort(few, kind="stable")[: bounds[-1]], bounds
