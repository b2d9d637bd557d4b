"""The job of a driver whose work lies behind the read: each record takes some time in `mapInArrow`.

The option `WORK` of the job is this time in ms; the source does not get it.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from drivers.job import append_batch, main

WORK = "work.ms"


def slowly(batches: Iterator[pa.RecordBatch], ms: float) -> Iterator[pa.RecordBatch]:
    """The same batches, each after the time of its records."""
    for batch in batches:
        time.sleep(len(batch) * ms / 1000)
        yield batch


def worked(rows: DataFrame, batch: int, folder: Path, options: Mapping[str, str], ms: float) -> None:
    """Write a batch once all of its records are worked on."""
    passed = rows.select("partition", "offset", "key", "value")
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] = partial(slowly, ms=ms)
    append_batch(passed.mapInArrow(work, passed.schema), batch, folder / "output")


if __name__ == "__main__":
    given = json.loads(sys.argv[2])
    work_ms = float(given.pop(WORK))
    sys.argv[2] = json.dumps(given)
    main(partial(worked, ms=work_ms))
