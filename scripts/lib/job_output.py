"""Reads the output of `flights_job.py`: a folder for each query and batch id, complete once it has `_SUCCESS`."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pyarrow import parquet

from verdict import Delivery


def finished_batches(output: Path) -> list[Path]:
    """The folders of complete batches, in the order of their ids."""
    return sorted((mark.parent for mark in output.glob("query=*/batch=*/_SUCCESS")), key=batch_id)


def batch_being_written(output: Path) -> Path | None:
    """A folder of an incomplete batch that a task has begun to write; None without one."""
    with suppress(FileNotFoundError):  # a batch ends, and Spark removes its folder, while we look into it
        for part in output.glob("query=*/batch=*/_temporary/*/_temporary/*/part-*"):
            folder = part.parents[4]
            if not (folder / "_SUCCESS").exists():
                return folder
    return None


def batch_id(folder: Path) -> int:
    """The batch id in a folder's name."""
    return int(folder.name.removeprefix("batch="))


def row_count(batch: Path) -> int:
    """The number of rows in a finished batch; reads only the footers."""
    return sum(parquet.read_metadata(part).num_rows for part in batch.glob("part-*.parquet"))


def offsets(output: Path) -> list[int]:
    """The offsets of all rows of finished batches, ascending."""
    return sorted(d.offset for batch in finished_batches(output) for d in deliveries(batch))


def deliveries(batch: Path) -> Iterator[Delivery]:
    """The rows of a finished batch."""
    number = batch_id(batch)
    for part in batch.glob("part-*.parquet"):
        for row in parquet.read_table(part, partitioning=None).to_pylist():
            yield Delivery(number, row["input_partition"], row["place"], row["offset"], row["key"], row["value"])
