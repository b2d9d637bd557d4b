"""Reads the columns of a Parquet sink that an audit needs: partition and offset, and topic, batch and query if there.

    PATH/part-00000-....parquet                      columns in the files
    PATH/query=6f1/batch=3/part-00000-....parquet    or in the names of folders
    PATH/_spark_metadata/                            Spark's file sink: its log names the files of each batch

Rows of one file count as written in their order. Knows Parquet and folders; nothing of Kafka or groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs, parquet

from coordinator.errors import InvalidOptionError, SinkError, redacted
from coordinator.tools.audit import file_log
from coordinator.tools.audit.columns import UNKNOWN, NumberColumn, SinkColumns
from coordinator.tools.audit.file_log import FOLDER, SinkFile, task_of
from coordinator.tools.audit.sink_rows import Names, SinkPart, columns_of, number_of, numbers_of

REQUIRED, OPTIONAL = ("partition", "offset"), ("topic", "batch", "query")
FORMAT = "parquet:"


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    name: str
    folders: Mapping[str, str]  # of the path: name -> value
    committed: SinkFile | None  # of the log of Spark's file sink


class ParquetSink:
    """The files at a path, as they are at the first call: a local path, or a URI such as s3://bucket/folder."""

    def __init__(self, sink: str, names: Mapping[str, str]) -> None:
        """`sink` is `parquet:PATH`; `names` are the sink's own names of columns. Raises `InvalidOptionError`."""
        if not sink.startswith(FORMAT) or sink == FORMAT:
            raise InvalidOptionError(f"--sink {shown(sink)!r} is not parquet:PATH", "pass the folder of a Parquet sink")
        if unknown := names.keys() - {*REQUIRED, *OPTIONAL}:
            known = ", ".join((*REQUIRED, *OPTIONAL))
            raise InvalidOptionError(f"--column {min(unknown)!r} is not a column of an audit", f"use one of {known}")
        self._names = {role: names.get(role, role) for role in (*REQUIRED, *OPTIONAL)}
        self._chosen = frozenset(names)
        self._path = sink.removeprefix(FORMAT)

    def columns(self, topic: str) -> Mapping[int, SinkColumns]:
        """The rows of each partition of a topic. A sink without a column `topic` has records of that topic only.

        Raises `SinkError`.
        """
        names, labels = Names({}), dict[int, str]()
        parts = [self._part(file, topic, names, labels) for file in self._files]
        return columns_of(parts, [*names.found], lambda batch: labels.get(batch, str(batch)))

    @cached_property
    def _files(self) -> Sequence[_File]:
        try:
            self._fs, self._base = _place(self._path)
            return self._listed()
        except (OSError, pa.ArrowException, ValueError) as error:
            known = shown(self._path)
            why = _line(error) if known == self._path else type(error).__name__  # it may repeat the path
            raise SinkError(f"the sink {known!r} cannot be read ({why})") from None

    def _listed(self) -> Sequence[_File]:
        base = PurePosixPath(self._base)
        found = self._fs.get_file_info(fs.FileSelector(self._base, recursive=True))
        paths = {PurePosixPath(info.path).relative_to(base): info.path for info in found if info.is_file}
        log = self._log({path.name for path in paths if path.parent == PurePosixPath(FOLDER)})
        files = [
            _File(paths[path], path.name, _folders(path), log.get(path.name) if log else None)
            for path in sorted(paths)
            if path.suffix == ".parquet" and not any(part[0] in "_." for part in path.parts)
        ]
        if log is None:
            return files
        return sorted((f for f in files if f.committed), key=lambda f: (f.committed.step if f.committed else 0, f.name))

    def _log(self, names: set[str]) -> Mapping[str, SinkFile] | None:
        def read(name: str) -> str:
            with self._fs.open_input_stream(f"{self._base}/{FOLDER}/{name}") as stream:
                return bytes(stream.read()).decode()

        return file_log.committed(names, read) if names else None

    def _part(self, file: _File, topic: str, names: Names, labels: dict[int, str]) -> SinkPart:
        table = self._table(file)
        topics = self._found(table, file, "topic")
        if isinstance(topics, str):
            table = table if topics == topic else table.slice(0, 0)
        elif topics is not None:
            table = table.filter(pc.equal(pc.cast(topics, pa.string()), topic))
        queries, task = self._found(table, file, "query") or "", task_of(file.name)
        in_log = file.committed if self._found(table, file, "batch") is None else None
        if in_log:
            labels[in_log.step] = in_log.batch
        return SinkPart(
            self._numbers(table, file, "partition"),
            self._numbers(table, file, "offset"),
            np.full(len(table), in_log.step) if in_log else self._numbers(table, file, "batch", UNKNOWN),
            np.full(len(table), names.number(queries)) if isinstance(queries, str) else names.numbers(queries),
            UNKNOWN if task is None or (in_log and in_log.several) else task,
        )

    def _table(self, file: _File) -> pa.Table:
        try:
            with self._fs.open_input_file(file.path) as stream:
                opened = parquet.ParquetFile(stream)
                there = set(opened.schema_arrow.names)
                self._check(there | file.folders.keys(), file.path)
                return opened.read([name for name in self._names.values() if name in there])
        except (OSError, pa.ArrowException) as error:
            raise SinkError(f"the file {file.path!r} cannot be read ({_line(error)})") from None

    def _check(self, there: set[str], path: str) -> None:
        needed = [*REQUIRED, *(role for role in OPTIONAL if role in self._chosen)]
        if missing := [self._names[role] for role in needed if self._names[role] not in there]:
            raise SinkError(
                f"the file {path!r} has no column {missing[0]!r}; it has {', '.join(sorted(there))}",
                "write Kafka's partition and offset into the sink, or name its columns: --column offset=NAME",
            )

    def _found(self, table: pa.Table, file: _File, role: str) -> pa.ChunkedArray | str | None:
        """A column of the file, or the value of a folder's name for all its rows; None if it has neither."""
        name = self._names[role]
        return table.column(name) if name in table.column_names else file.folders.get(name)

    def _numbers(self, table: pa.Table, file: _File, role: str, absent: int | None = None) -> NumberColumn:
        """The same as numbers; `absent` stands for nulls, and for all rows of a file that has neither."""
        found, what = self._found(table, file, role), f"column {self._names[role]!r} of {file.path!r}"
        if found is None or isinstance(found, str):
            return np.full(len(table), number_of(found, what, absent), np.int64)
        return numbers_of(found, what, absent)


def shown(path: str) -> str:
    """The path for people: a URI without user, password and query."""
    return redacted(path.removeprefix(FORMAT)) if "://" in path and ("@" in path or "?" in path) else path


def _place(path: str) -> tuple[fs.FileSystem, str]:
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    return found


def _folders(path: PurePosixPath) -> Mapping[str, str]:
    pairs = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
