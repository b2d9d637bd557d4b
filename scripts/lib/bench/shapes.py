"""The three ways in which users of Spark's own source have several slots work on one partition."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from bench.sources import TUNED


@dataclass(frozen=True, slots=True)
class Shape:
    """Options for the source, and what is done to its rows before the work."""

    name: str
    options: Mapping[str, str]
    tasks: int = 0  # rows are brought into so many by their keys; 0: left as they come

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows as the work gets them."""
        return rows.repartition(self.tasks, "key") if self.tasks else rows


def shapes(slots: int) -> tuple[Shape, ...]:
    """As it comes, cut by offsets, and shuffled by key."""
    plain = {name: value for name, value in TUNED.items() if name != "minPartitions"}
    return (
        Shape("plain", plain),
        Shape(f"minPartitions {slots}, order lost", {**plain, "minPartitions": str(slots)}),
        Shape(f"repartition({slots}, key)", plain, slots),
    )
