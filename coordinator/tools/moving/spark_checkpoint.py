"""The checkpoint of a query with `format("kafka")`: the log ends of its last finished batch.

offsets/N    version, metadata, then a line for each source: {"topic": {"partition": end}}, or "-"
             v2, of sources with names (Spark 4.3): each line begins with the name and a colon
commits/N    batch N is finished
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coordinator.errors import CheckpointMismatchError, InvalidOptionError
from coordinator.errors.quoting import quoted
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.values.identifiers import POSITION_MAX
from coordinator.values.subscription import TopicPartition

_VERSION, _NAMED = "v1", "v2"


def done(folder: Path) -> tuple[list[DoneOffsets], int | None]:
    """The progress, and the number of a batch that has begun and is not finished: its records are read again.

    Raises `InvalidOptionError`, and `CheckpointMismatchError` if the checkpoint is of other sources only.
    """
    finished, begun = _last(folder / "commits"), _last(folder / "offsets")
    if finished is None:
        raise InvalidOptionError(
            f"{quoted(str(folder))} is no checkpoint with a finished batch: it has no folder commits with a number",
            "pass the folder of the option checkpointLocation; copy it first if it is on another file system",
        )
    lines = _lines(folder / "offsets" / str(finished))
    all_sources = [d for line in lines for d in _of_source(line, folder)]
    found = {d.tp: d for d in sorted(all_sources, key=lambda d: d.position, reverse=True)}  # the lowest of a partition
    if not found:
        raise CheckpointMismatchError(
            f'the checkpoint {quoted(str(folder))} has no source with format("kafka")',
            "pass the checkpoint of a query that reads Kafka",
        )
    return [found[tp] for tp in sorted(found)], begun if begun is not None and begun > finished else None


def _last(folder: Path) -> int | None:
    """The highest number among the names of files; None without any."""
    numbers = (int(f.name) for f in folder.glob("*") if re.fullmatch("[0-9]+", f.name)) if folder.is_dir() else ()
    return max(numbers, default=None)


def _lines(file: Path) -> list[str]:
    try:
        version, _, *lines = file.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise CheckpointMismatchError(f"the file {file} of the checkpoint cannot be read: {error}") from None
    if version == _NAMED:
        return [line.partition(":")[2] for line in lines]
    if version != _VERSION:
        raise CheckpointMismatchError(
            f"the file {file} has version {version[:20]!r}; this coop-kafka reads v1 and v2, as Spark 4.3 does",
            "begin at a time: startingOffsetsByTimestamp",
        )
    return lines


def _of_source(line: str, folder: Path) -> Iterator[DoneOffsets]:
    try:
        offsets: Any = json.loads(line)
    except (ValueError, RecursionError):
        return  # "-": the source has read nothing
    if not isinstance(offsets, dict):
        return
    if "#" in offsets:
        raise CheckpointMismatchError(
            f"the checkpoint {quoted(str(folder))} is of coop-kafka itself, whose group has its positions",
            "start the query with this checkpoint, or copy the group with coop-kafka backup",
        )
    for topic, of_topic in offsets.items():
        if isinstance(of_topic, dict) and all(_is_end(p, o) for p, o in of_topic.items()):
            yield from (DoneOffsets(TopicPartition(topic, int(p)), o) for p, o in of_topic.items())


def _is_end(partition: str, offset: object) -> bool:
    return bool(re.fullmatch("[0-9]{1,10}", partition)) and type(offset) is int and 0 <= offset <= POSITION_MAX
