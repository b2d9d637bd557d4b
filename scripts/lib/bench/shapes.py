"""The three ways in which users of Spark's own source put several slots to work on one partition."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from bench.sources import TUNED


@dataclass(frozen=True, slots=True)
class Shape:
    """Options for the source, and the change of its rows before the work."""

    name: str
    options: Mapping[str, str]
    tasks: int = 0  # rows are shuffled by key into this many tasks; 0: not shuffled

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows as the work gets them."""
        return rows.repartition(self.tasks, "key") if self.tasks else rows


def shapes(slots: int) -> tuple[Shape, ...]:
    """Unchanged, cut by offsets, and shuffled by key."""
    plain = {name: value for name, value in TUNED.items() if name != "minPartitions"}
    return (
        Shape("plain", plain),
        Shape(f"minPartitions {slots}, order lost", {**plain, "minPartitions": str(slots)}),
        Shape(f"repartition({slots}, key)", plain, slots),
    )
