"""The job of a driver whose function in the read joins two topics; its batches are lists of pairs.

`joining` makes the function. It keeps the records of each key in a file, without a lock: it loads the file at a key's
first record and stores it at the end of the task. So two tasks that work on one key at once lose pairs.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from drivers import job

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "key string, left long, right long"


def joining(left: str, store: str) -> Callable[["Iterator[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]:
    """A function of batches: pairs of offsets of two topics of one partition, `left` and another, with equal keys."""

    def joined(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa  # noqa: PLC0415 - the function travels by value

        folder = Path(store)
        known: dict[str, tuple[set[int], set[int]]] = {}
        new: dict[str, tuple[set[int], set[int]]] = {}
        for batch in batches:
            side = 0 if batch.column("topic")[0].as_py() == left else 1
            for key, offset in zip(batch.column("key").to_pylist(), batch.column("offset").to_pylist(), strict=True):
                name = key.decode()
                if name not in known:
                    file = folder / name
                    text = file.read_text() if file.exists() else "[[], []]"
                    one, other = json.loads(text)
                    known[name], new[name] = (set(one), set(other)), (set(), set())
                new[name][side].add(offset)
        rows = []
        for name, (lefts, rights) in new.items():
            both = known[name][0] | lefts, known[name][1] | rights
            written = folder / f"{name}.{os.getpid()}"
            written.write_text(json.dumps([sorted(offsets) for offsets in both]))
            written.replace(folder / name)
            rows += [(name, x, y) for x in both[0] for y in both[1] if x in lefts or y in rights]
        names, xs, ys = zip(*rows, strict=True) if rows else ((), (), ())
        yield pa.RecordBatch.from_pydict(
            {"key": pa.array(names, pa.string()), "left": pa.array(xs, pa.int64()), "right": pa.array(ys, pa.int64())}
        )

    return joined


def append_pairs(rows: DataFrame, batch: int, folder: Path, options: Mapping[str, str]) -> None:
    """Write the pairs of a batch as one line, whole or not at all."""
    pairs = [[r.key, r.left, r.right] for r in rows.collect()]
    line = json.dumps({"clock": time.monotonic_ns(), "pid": os.getpid(), "batch": batch, "pairs": pairs})
    with (folder / "output").open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


if __name__ == "__main__":
    job.main(append_pairs)
