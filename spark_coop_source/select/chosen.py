"""The records of a chunk that a task reads, as one value from the choice of rows to the last column.

    chunk    columns of a stretch of the log
    hashes   the key hash of each of its records, read or not: computed once, at the first use
    rows     the records in the task's slices, less those that the filter drops

Knows chunks; nothing of slices and Arrow's batches.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_coop_source.decode.byte_column import RowNumbers
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.select.hashing import HashArray, hash_records

RowMask = NDArray[np.bool_]


@dataclass(eq=False)
class Hashed:
    """A chunk with its hashes."""

    chunk: Chunk

    @cached_property
    def hashes(self) -> HashArray:
        """The key hash of each record. A task that reads whole partitions never needs it."""
        return hash_records(self.chunk.keys, self.chunk.offsets)


class Chosen(NamedTuple):
    """Some records of a chunk."""

    of: Hashed
    kept: RowMask  # of each record of the chunk: whether the filter keeps it
    rows: RowNumbers  # of the records to read, in any order
    dropped: int  # records that the filter drops, and that the task would read without it
