"""A Python source that only passes prebuilt Arrow batches to the JVM: the limit of any Python source.

Imports little, because Python workers import it.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_coop_source.arrow_output.schema import PLAIN, schema


def write(folder: Path, number: int, batches: Iterator[pa.RecordBatch]) -> None:
    """Write the batches of task `number`."""
    first = next(batches)
    with pa.OSFile(str(folder / f"{number}.arrow"), "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


class Prebuilt(DataSource):
    """`format("prebuilt")`: option `folder` has a file of batches for each task."""

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return "prebuilt"

    def schema(self) -> StructType:
        """That of Kafka's rows."""
        return schema(PLAIN)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of `spark.read`."""
        return _Reader(self.options["folder"])


class _Reader(DataSourceReader):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(str(path)) for path in sorted(Path(self._folder).glob("*.arrow"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(partition.value) as file:
            opened = pa.ipc.open_file(file)
            for number in range(opened.num_record_batches):
                yield opened.get_batch(number)
