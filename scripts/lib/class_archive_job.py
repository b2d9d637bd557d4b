"""The query whose classes `class_archive` keeps: a Python source, a batch in Python, files. Argument: its folder."""

import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader


class Numbers(SimpleDataSourceStreamReader):
    """Ten numbers."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where it begins."""
        return {"at": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int]], dict[str, int]]:
        """Everything from there on."""
        return iter([(number,) for number in range(start["at"], 10)]), {"at": 10}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[int]]:  # noqa: N802
        """A batch again."""
        return iter([(number,) for number in range(start["at"], end["at"])])


class NumberSource(DataSource):
    """A source in Python, as ours is one."""

    @classmethod
    def name(cls) -> str:
        """Its format."""
        return "numbers"

    def schema(self) -> str:
        """Its one column."""
        return "number long"

    def simpleStreamReader(self, schema: object) -> Numbers:  # noqa: N802
        """A reader."""
        return Numbers()


def main() -> None:
    """Run the query twice, once with a batch in Python and once to files."""
    folder = Path(sys.argv[1])
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.dataSource.register(NumberSource)
    rows = spark.readStream.format("numbers").load()
    writers = {"batch": rows.writeStream.foreachBatch(count), "files": rows.writeStream.format("parquet")}
    for name, writer in writers.items():
        options = {"checkpointLocation": str(folder / f"{name}-checkpoint"), "path": str(folder / name)}
        writer.options(**options).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def count(rows: DataFrame, batch: int) -> None:
    """What tests do in a batch."""
    rows.groupBy("number").count().collect()
    rows.mapInArrow(lambda batches: batches, rows.schema).count()


if __name__ == "__main__":
    main()
