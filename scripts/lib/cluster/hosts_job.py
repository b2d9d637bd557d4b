"""The job of a driver on a cluster: as `drivers.job`, and each delivery ends with the name of the host that read it."""

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from drivers import job


def _with_host(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        name = pa.array([socket.gethostname()] * batch.num_rows, pa.string())
        yield pa.RecordBatch.from_arrays([*batch.columns, name], names=[*batch.schema.names, "host"])


def _append(rows: DataFrame, batch: int, folder: Path, _: Mapping[str, str]) -> None:
    wanted = "partition int, offset long, key binary, value binary"
    hosted = rows.select("partition", "offset", "key", "value").mapInArrow(_with_host, f"{wanted}, host string")
    job.append_batch(hosted, batch, folder / "output", more=("host",))


if __name__ == "__main__":
    job.main(_append)
