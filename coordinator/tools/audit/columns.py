"""The columns of an audit: records of a log, and rows of a sink, of one partition. Values only.

log      offset   100  101  103  104      ascending; a hole is no record: compacted, a marker, or aborted
sink     offset   101  100  104  101      in the order in which the rows reached the sink
         batch      0    0    1    1
         file       0    0    1    2      rows of one file were written one after another
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

NumberColumn = NDArray[np.int64]
MaskColumn = NDArray[np.bool_]

UNKNOWN = -1
"""A batch or a task that the sink does not name."""


class LogColumns(NamedTuple):
    """The records that Kafka has, ascending by offset."""

    offsets: NumberColumn
    hashes: NumberColumn  # of the key; of the offset if there is no key (rule: key-hash)
    keyed: MaskColumn  # whether the record has a key


KeyColumns = Callable[[Mapping[str, object], TopicPartition, OffsetRange], Iterator[LogColumns]]
"""Reads a stretch of a log, part by part, with the arguments of Kafka's client; raises `LogError`s."""


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """The rows of one partition. Rows of one batch are together; batches of one query ascend."""

    offsets: NumberColumn
    batches: NumberColumn  # of each row: a number of `labels`
    files: NumberColumn  # of each row: a number of `tasks`
    labels: Sequence[str]  # the name of each batch; empty if the sink does not name it
    queries: NumberColumn  # of each batch: equal numbers are batches of one query
    tasks: NumberColumn  # of each file: the task that wrote it, or UNKNOWN

    def __len__(self) -> int:
        return len(self.offsets)

    def label(self, row: int) -> str:
        """The batch of a row, for people."""
        return self.labels[int(self.batches[row])] or "?"


_NONE = np.zeros(0, np.int64)
NO_ROWS = SinkColumns(_NONE, _NONE, _NONE, (), _NONE, _NONE)
"""A partition of which the sink has nothing."""


def joined(parts: Sequence[LogColumns]) -> LogColumns:
    """The records of consecutive stretches."""
    if not parts:
        return LogColumns(_NONE, _NONE, np.zeros(0, np.bool_))
    return LogColumns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
