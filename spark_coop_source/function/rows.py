"""Records as rows for the user's function, and the rows that it makes as Arrow.

Knows rows and schemas; nothing of calls. Runs in executor workers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import pyarrow as pa
from pyspark.sql import Row


class KeyRecords(Sequence[Row]):
    """Records of one key, in offset order: a sequence of rows. `arrow` has the same as an Arrow record batch."""

    def __init__(self, arrow: pa.RecordBatch) -> None:
        self.arrow = arrow

    @cached_property
    def _rows(self) -> list[Row]:
        row = Row(*self.arrow.schema.names)
        return [row(*values) for values in zip(*(column.to_pylist() for column in self.arrow.columns), strict=True)]

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> list[Row]: ...
    def __getitem__(self, number: int | slice) -> Row | list[Row]:
        return self._rows[number]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self.arrow)


class UnfitRowsError(ValueError):
    """What a function returned is no rows, or rows that do not fit its schema. The text says why."""


def dicts_of(made: object) -> list[Mapping[str, Any]]:
    """The rows that a function has returned: none, one, or several. Raises `UnfitRowsError` for anything else."""
    if made is None:
        return []
    if isinstance(made, Mapping | Row):
        return [_dict_of(made)]
    if isinstance(made, Iterable) and not isinstance(made, str | bytes):
        return [_dict_of(row) for row in made]
    raise UnfitRowsError(f"it returned {_kind(made)}, not a dict or a Row, several of them, or None")


def _dict_of(row: object) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, Row) and hasattr(row, "__fields__"):
        return row.asDict()
    raise UnfitRowsError(f"it returned {_kind(row)} as a row, not a dict or a Row with names")


def _kind(made: object) -> str:
    return f"a value of type {type(made).__qualname__}"


def arrow_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as Arrow; a column that a row does not name is null. Raises `UnfitRowsError`."""
    names = set(schema.names)
    for row in rows:
        if unknown := row.keys() - names:
            raise UnfitRowsError(f"it made the column {min(unknown, key=str)!r:.100}, which the schema does not have")
    try:
        made = pa.RecordBatch.from_pylist(rows, schema=schema)
    except Exception as error:  # noqa: BLE001  Arrow raises many types
        raise UnfitRowsError(f"{type(error).__name__}: {error}") from None
    for field, column in zip(schema, made.columns, strict=True):
        if column.null_count and not field.nullable:
            raise UnfitRowsError(f"it made a null in the column {field.name}, which may hold none")
    return made


def fits(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> bool:
    """Whether `arrow_of` can make them."""
    try:
        arrow_of(rows, schema)
    except UnfitRowsError:
        return False
    return True
