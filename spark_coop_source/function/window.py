"""How much of the records a task may take before it returns their results. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from spark_coop_source.function.slice_batches import SliceBatch


@dataclass(frozen=True, slots=True)
class BatchesSize:
    """The size of some batches."""

    batches: int = 0
    rows: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, batches: Iterable[SliceBatch]) -> Self:
        """Their size in memory of their own."""
        found = [each.records for each in batches]
        return cls(len(found), sum(map(len, found)), sum(each.get_total_buffer_size() for each in found))

    def __add__(self, other: "BatchesSize") -> "BatchesSize":
        return BatchesSize(self.batches + other.batches, self.rows + other.rows, self.bytes + other.bytes)

    def __sub__(self, other: "BatchesSize") -> "BatchesSize":
        return BatchesSize(self.batches - other.batches, self.rows - other.rows, self.bytes - other.bytes)


@dataclass(frozen=True, slots=True)
class Window:
    """The most batches that are taken and not yet returned. One batch is always allowed."""

    rows: int = 100_000
    bytes: int = 64 * 1024 * 1024
    batches: int = 1_000_000

    def filled(self, load: BatchesSize) -> bool:
        """Whether so many batches fill it."""
        most = load.rows >= self.rows or load.bytes >= self.bytes or load.batches >= self.batches
        return load.batches > 0 and most
