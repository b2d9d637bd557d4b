"""Named points of the commit cycle. A test halts a driver at a point, and kills it exactly there.

    commit log  ->  BEFORE_COMMIT  ->  commit  ->  AFTER_COMMIT  ->  plan, WAL  ->  BEFORE_PARTITIONS
        ->  authorize  ->  AFTER_PARTITIONS  ->  READ (some rows)  ->  BEFORE_SINK  ->  AFTER_SINK  ->  commit log

A file arms a point. A driver that reaches the point writes another file, and waits until the first file is gone.
Tests install the points from outside, in the reader process, the workers and the job: the product has no code for them.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "COOP_DRIVERS_FOLDER"
BEFORE_COMMIT, AFTER_COMMIT = "between commit log and commit", "between commit and WAL"
BEFORE_PARTITIONS, AFTER_PARTITIONS = "between WAL and partitions", "between partitions and read"
READ, BEFORE_SINK, AFTER_SINK = "in a read", "between read and sink", "between sink and commit log"
_READER, _WORKER = "pyspark.sql.streaming.python_streaming_source_runner", "pyspark.worker"
_POLL_S = 0.02
POINTS: Final = (BEFORE_COMMIT, AFTER_COMMIT, BEFORE_PARTITIONS, AFTER_PARTITIONS, READ, BEFORE_SINK, AFTER_SINK)
_OF_VERBS = {"commit": (BEFORE_COMMIT, AFTER_COMMIT), "authorize": (BEFORE_PARTITIONS, AFTER_PARTITIONS)}


def arm(folder: Path, point: str) -> None:
    """Halt the driver that works in `folder` the next time it reaches this point."""
    (folder / "reached").unlink(missing_ok=True)
    (folder / "armed").write_text(point)


def reached(folder: Path) -> bool:
    """Whether the driver has reached the armed point, and waits there."""
    return (folder / "reached").exists()


def disarm(folder: Path) -> None:
    """Let the driver pass, or its next life."""
    for name in ("armed", "reached"):
        (folder / name).unlink(missing_ok=True)


def halt(point: str) -> None:
    """Wait while this point is armed; the driver calls this at the point."""
    folder = Path(os.environ[FOLDER])
    while _armed(folder) == point:
        (folder / "reached").touch()
        time.sleep(_POLL_S)


def _armed(folder: Path) -> str:
    try:
        return (folder / "armed").read_text()
    except FileNotFoundError:
        return "nothing"


def install() -> None:
    """Put the points around the work of readers and tasks. Spark's other Pythons, ten a driver, import nothing here."""
    if _READER in sys.orig_argv:
        from coordinator.redis.client import RedisClient  # noqa: PLC0415 - only the reader process needs it

        RedisClient.run = _around(RedisClient.run)  # type: ignore[method-assign]
    elif _WORKER in sys.orig_argv:
        from spark_coop_source.task import read  # noqa: PLC0415 - only a worker needs it

        read.read_slices = _within(read.read_slices)


def _around(run: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
    def halting(self: object, verb: str, keys: Sequence[str], args: Sequence[str]) -> Mapping[str, Any]:
        before, after = _OF_VERBS.get(verb, ("", ""))
        halt(before)
        reply = run(self, verb, keys, args)
        halt(after)
        return reply

    return halting


def _within(read_slices: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def halting(*args: object) -> Iterator[Any]:
        for batch in read_slices(*args):
            yield batch
            halt(READ)

    return halting
