"""Reads one record batch as a worker does and prints what that took: rows, and the peak of the process in bytes.

A process of its own, for the peak is that of its whole life. The batch comes by standard input.
"""

import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pyarrow as pa

from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output.record_batch import EVERY, regrouped, to_arrow
from spark_coop_source.decode.record_batch_v2 import decoded
from spark_coop_source.decode.sizes import DecodeLimits, TooLarge
from spark_coop_source.fetch.ahead import ahead
from spark_coop_source.fetch.consumers import MOST_UNFILTERED, record_bytes
from spark_coop_source.fetch.fetch import CHUNK_BYTES
from spark_coop_source.fetch.raw_batches import _Batches
from spark_coop_source.task.worker import settle

ROWS = 65_536
SIZES = DecodeLimits(1024**3, record_bytes(MOST_UNFILTERED))
"""The defaults of the options."""

refused: list[TooLarge] = []


def main() -> None:
    from kafka.record.memory_records import MemoryRecords  # noqa: PLC0415

    settle()
    records = MemoryRecords(sys.stdin.buffer.read())

    def made(stopped: Callable[[], bool]) -> Generator[pa.RecordBatch, None, None]:
        batch = _Batches(records).next_batch()
        raw = [record.value for record in batch]  # type: ignore[attr-defined]
        for chunk in decoded(raw, ROWS, CHUNK_BYTES, SIZES, refused.append):
            yield to_arrow(TopicPartition("orders", 0), chunk, None, EVERY.names)

    rows = 0
    with pa.OSFile("/dev/null", "wb") as jvm, pa.ipc.new_stream(jvm, EVERY) as stream:
        for batch in regrouped(ahead(made)):
            stream.write_batch(batch)
            rows += len(batch)
    sys.stdout.write(f"{rows} {len(refused)} {peak()}")


def peak() -> int:
    """The most memory that this program had; `getrusage` counts also what its parent had before it began."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
