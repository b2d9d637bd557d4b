"""A chunk: some records of one partition, column by column, as `fetch` hands them on.

Knows how kafka-python presents a record; nothing of lanes, Arrow or Spark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from kafka.consumer.fetcher import ConsumerRecord
from numpy.typing import NDArray

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

NO_TIMESTAMP = -1
"""What Kafka says, as time and as type of time, of records older than timestamps (message format v0)."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records in ascending order of offset; every column has one entry a record."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    offsets: NDArray[np.int64]
    timestamps_ms: NDArray[np.int64]
    timestamp_types: NDArray[np.int32]  # 0: the producer's clock, 1: the broker's at append
    headers: Sequence[Headers]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def payload(self) -> int:
        """Bytes of keys and values."""
        return sum(map(len, filter(None, self.keys))) + sum(map(len, filter(None, self.values)))

    @classmethod
    def of(cls, records: Sequence[ConsumerRecord]) -> Self:
        """The columns of kafka-python's records, of which there is at least one."""
        columns = ConsumerRecord(*zip(*records, strict=True))
        return cls(
            keys=columns.key,
            values=columns.value,
            offsets=np.array(columns.offset, np.int64),
            timestamps_ms=np.array(_known(columns.timestamp), np.int64),
            timestamp_types=np.array(_known(columns.timestamp_type), np.int32),
            headers=columns.headers,
        )


def _known(column: Sequence[int | None]) -> Sequence[int]:
    return [NO_TIMESTAMP if entry is None else entry for entry in column]
