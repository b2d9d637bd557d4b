"""The log of Spark's file sink, `_spark_metadata`: the files of each batch. Files outside it were never committed.

    0, 1, ... 8, 10, 11     a batch each: "v1", then a JSON object for each file
    9.compact               the files of batches 0 to 9, in order; Spark then deletes the files before it

In a compacted file the batches have no marks any more. So each of its files is a batch of its own, in order, except
that files which one task may have written side by side (`partitionBy`) stay together.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from coordinator.errors import SinkError

FOLDER = "_spark_metadata"

_NAME = re.compile(r"([0-9]+)(\.compact)?")
_TASK = re.compile(r"part-([0-9]+)")

TextReader = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class SinkFile:
    """A file of the log."""

    step: int  # ascending from batch to batch
    batch: str  # `17`, or `<=9` for one of the batches of a compacted file
    several: bool = False  # whether it may be of the same batch as a file of another step


def task_of(name: str) -> int | None:
    """The task that wrote a file of this name, such as `part-00003-...`."""
    found = _TASK.match(name)
    return int(found[1]) if found else None


def committed(names: Iterable[str], read: TextReader) -> Mapping[str, SinkFile]:
    """The committed files by name, which Spark makes unique. `names` are the files of the log, `read` reads one."""
    found = [match for match in map(_NAME.fullmatch, names) if match]
    last = max((int(match[1]) for match in found if match[2]), default=-1)
    later = sorted(int(match[1]) for match in found if not match[2] and int(match[1]) > last)
    files: dict[str, SinkFile] = {}
    step, before = -1, ""
    for path in _added(read(f"{last}.compact"), f"{last}.compact") if last >= 0 else ():
        step += not _side_by_side(before, path)
        files[_base(path)] = SinkFile(step, f"<={last}", several=True)
        before = path
    for batch in later:
        step += 1
        files |= {_base(path): SinkFile(step, str(batch)) for path in _added(read(str(batch)), str(batch))}
    return files


def _added(text: str, name: str) -> list[str]:
    """The files that an entry of the log adds, in order, without those that it deletes."""
    try:
        entries = [json.loads(line) for line in text.splitlines()[1:] if line]
        deleted = {entry["path"] for entry in entries if entry["action"] == "delete"}
        return [str(entry["path"]) for entry in entries if entry["path"] not in deleted]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SinkError(f"{FOLDER}/{name} is not a file of the log of Spark's file sink") from None


def _side_by_side(before: str, path: str) -> bool:
    """Whether one task may have written both files in one batch: to two folders, or one after another to one folder."""
    same_task = task_of(_base(before)) == task_of(_base(path)) is not None
    other_folder = before.rpartition("/")[0] != path.rpartition("/")[0]
    return same_task and (other_folder or not re.search(r"c000\.", path))


def _base(path: str) -> str:
    return unquote(path.rpartition("/")[2])
