"""A Python source that only passes prebuilt Arrow batches to the JVM: the limit of any Python source.

Imports little, because Python workers import it.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spark_coop_source.arrow_output.record_batch import EVERY, TIMESTAMP
from spark_coop_source.arrow_output.schema import PLAIN, schema

ROWS = 24
"""Of a trigger of the stream: those of 200 records/s."""


def write(folder: Path, number: int, batches: Iterator[pa.RecordBatch]) -> None:
    """Write the batches of task `number`."""
    first = next(batches)
    with pa.OSFile(str(folder / f"{number}.arrow"), "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


class Prebuilt(DataSource):
    """`format("prebuilt")`: option `folder` has a file of batches for each task; a stream makes its rows itself."""

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

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """The reader of `spark.readStream`."""
        return _StreamReader()


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


class _StreamReader(DataSourceStreamReader):
    """Each trigger has one task with a few rows of now."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        return {"ms": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802  Spark's name
        return {"ms": time.time_ns() // 1_000_000}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(end["ms"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        row = {"key": b"key", "value": b"value" * 20, "topic": "topic", "partition": 0, "offset": 0, "timestampType": 0}
        kinds = pa.schema([field for field in EVERY if field.name in PLAIN])
        times = pa.array([partition.value * 1000] * ROWS, TIMESTAMP)
        made = [times if f.name == "timestamp" else pa.array([row[f.name]] * ROWS, f.type) for f in kinds]
        yield pa.RecordBatch.from_arrays(made, schema=kinds)

    def commit(self, end: dict[str, int]) -> None:
        pass

    def stop(self) -> None:
        pass
