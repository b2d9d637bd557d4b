"""Holds back the last row of a partition: its acknowledgement also covers holes, which only the end of reading shows.

    read           |a b c|    |d|    |    |     ^ end
    handed on      |a b|      |c|               |d|, which also covers the holes behind the last record of each strip

Rows stay in order. Runs in executor workers.
"""

from collections.abc import Iterator

import pyarrow as pa

from coordinator.progress.acknowledgement import with_holes
from spark_coop_source.arrow_output.schema import ACKNOWLEDGEMENT
from spark_coop_source.decode.arrow_columns import repeated
from spark_coop_source.task.reads import RecordsRead


def with_last_row(reads: Iterator[RecordsRead]) -> Iterator[pa.RecordBatch]:
    """The records of a partition with acknowledgements, as far as a task reads it (rule: acknowledge-holes)."""
    held, last = None, None
    for last in reads:
        if before := len(last.records):
            if held is not None:
                yield held
            if before > 1:
                yield last.records.slice(0, before - 1)
            held = last.records.slice(before - 1)
    if held is not None and last is not None:
        yield _covering(held, last)


def _covering(row: pa.RecordBatch, last: RecordsRead) -> pa.RecordBatch:
    """The last row, whose acknowledgement covers all holes before the end of reading."""
    at = row.schema.get_field_index(ACKNOWLEDGEMENT)
    text = with_holes(row.column(at)[0].as_py(), last.holes.before(last.until) if last.holes else ())
    return row.set_column(at, row.schema.field(at), repeated(text, 1))
