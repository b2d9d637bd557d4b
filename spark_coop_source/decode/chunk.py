"""A chunk: some records of one partition as columns. `fetch` returns chunks.

Knows the records of kafka-python; nothing of lanes or Spark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from kafka.consumer.fetcher import ConsumerRecord
from numpy.typing import NDArray

from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.header_column import HEADERS, HeaderColumn

NO_TIMESTAMP = -1
"""Kafka's time, and type of time, for records older than timestamps (message format v0)."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records in ascending order of offset; every column has one entry for each record."""

    keys: ByteColumn
    values: ByteColumn
    offsets: NDArray[np.int64]
    timestamps_ms: NDArray[np.int64]
    timestamp_types: NDArray[np.int32]  # 0: the producer's clock, 1: the broker's at append
    headers: HeaderColumn | pa.Array  # an Arrow array has type `HEADERS`, null where a record has none

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def payload(self) -> int:
        """Bytes of keys and values."""
        return self.keys.size + self.values.size

    @classmethod
    def of(cls, records: Sequence[ConsumerRecord]) -> Self:
        """The columns of at least one record of kafka-python."""
        columns = ConsumerRecord(*zip(*records, strict=True))
        return cls(
            keys=ByteColumn.of(columns.key),
            values=ByteColumn.of(columns.value),
            offsets=np.array(columns.offset, np.int64),
            timestamps_ms=np.array(_known(columns.timestamp), np.int64),
            timestamp_types=np.array(_known(columns.timestamp_type), np.int32),
            headers=pa.array([each or None for each in columns.headers], HEADERS),
        )

    def between(self, start: int, until: int) -> Self:
        """The records whose offsets lie in [start, until)."""
        first, last = np.searchsorted(self.offsets, [start, until])
        return self if (first, last) == (0, len(self)) else self._slice(int(first), int(last))

    def split(self, rows: int) -> "list[Self]":
        """The same records in chunks of at most `rows`."""
        if len(self) <= rows:
            return [self]
        return [self._slice(at, min(at + rows, len(self))) for at in range(0, len(self), rows)]

    def _slice(self, start: int, stop: int) -> Self:
        headers = self.headers
        return type(self)(
            self.keys.slice(start, stop),
            self.values.slice(start, stop),
            self.offsets[start:stop],
            self.timestamps_ms[start:stop],
            self.timestamp_types[start:stop],
            headers.slice(start, stop) if isinstance(headers, HeaderColumn) else headers[start:stop],
        )


def _known(column: Sequence[int | None]) -> Sequence[int]:
    return [NO_TIMESTAMP if entry is None else entry for entry in column]
