"""Calls the user's function of `mapInRead`: checks its output against its schema, and names the records in its errors.

Knows the function and its output schema; nothing of when it is called, or with which records. Runs in executor workers.
"""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator.errors import EnvironmentMismatchError, MapInReadError
from spark_coop_source.function.slice_batches import SliceBatch
from spark_coop_source.function.user_function import IMPORT_REMEDY, UnimportableError, UserFunction, loaded

RAISED = (Exception, SystemExit)
"""What a function may raise; `sys.exit()` would end the worker, and nobody would know over which record."""

_OURS = str(Path(__file__).parent)


class FunctionCall:
    """The function in this process. Its errors name topic, partition and offsets of the records it was given."""

    def __init__(self, function: Callable[..., object], schema: pa.Schema) -> None:
        self.function = function
        self._name = getattr(function, "__qualname__", type(function).__qualname__)
        self._schema = schema

    @classmethod
    def of(cls, function: UserFunction) -> Self:
        """Load it; raises `EnvironmentMismatchError` where that cannot be done."""
        try:
            return cls(loaded(function.text), to_arrow_schema(function.output, timezone="UTC"))
        except UnimportableError as error:
            raise EnvironmentMismatchError(
                f"the function of mapInRead cannot be loaded where a task runs: {error}", IMPORT_REMEDY
            ) from None
        except ValueError as error:
            raise EnvironmentMismatchError(
                f"the function of mapInRead cannot be loaded where a task runs: {error}",
                "let executors run the Python and the packages that the driver has",
            ) from None

    def on_key(self, batch: SliceBatch) -> pa.RecordBatch | None:
        """What the function makes of one key's records; None if that is nothing. Raises `MapInReadError`."""
        try:
            made = self.function(batch.key, batch.records)
        except RAISED as error:
            raise self.failure(error, batch) from None  # its frames are in the message, once
        return None if made is None else self.checked(made, batch)

    def checked(self, made: object, batch: SliceBatch | None) -> pa.RecordBatch:
        """What the function made, with our columns in our order. Raises `MapInReadError`."""
        wrong = self._wrong(made)
        if wrong or not isinstance(made, pa.RecordBatch):
            raise MapInReadError(
                f"the function {self._name} made {wrong}, {_where(batch)}",
                "make Arrow record batches with exactly the columns of mapInRead.schema, by name, and those types;"
                " or change the schema",
            )
        columns = [_typed(made.column(field.name), field) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def failure(self, error: BaseException, batch: SliceBatch | None) -> MapInReadError:
        """What the function raised, as an error that says where it was, and shows the user's own frames."""
        return MapInReadError(
            f"the function {self._name} raised {type(error).__name__}, {_where(batch)}:\n\n{_frames(error)}\n",
            "mend the function, or let it catch what it can ignore; a restarted query reads these records again",
        )

    def unfinished(self, batch: SliceBatch | None) -> MapInReadError:
        """It ended, and has not asked for all its records."""
        return MapInReadError(
            f"the function {self._name} ended before it had asked for all its records, {_where(batch)}",
            "ask for every batch, since the rest would be lost; to drop a record, make no row of it",
        )

    def _wrong(self, made: object) -> str:
        if not isinstance(made, pa.RecordBatch):
            return f"{_article(made)}, not a pyarrow.RecordBatch"
        if sorted(made.schema.names) != sorted(self._schema.names):
            return f"the columns {', '.join(made.schema.names)}, not {', '.join(self._schema.names)}"
        for field in self._schema:
            column = made.column(field.name)
            if column.type != field.type and not pa.types.is_null(column.type):
                return f"the column {field.name} of type {column.type}, not {field.type}"
            if column.null_count and not field.nullable:
                return f"a null in the column {field.name}, which may hold none"
        return ""


def _typed(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column of nothing but None has a type of its own in Arrow."""
    return column.cast(field.type) if pa.types.is_null(column.type) else column


def _article(made: object) -> str:
    return "None" if made is None else f"a {type(made).__module__}.{type(made).__qualname__}"


def _where(batch: SliceBatch | None) -> str:
    return "given no records" if batch is None else f"given {batch}"


def _frames(error: BaseException) -> str:
    """The traceback without the frames of this project."""
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list([f for f in told.stack if not f.filename.startswith(_OURS)])
    return "".join(told.format()).rstrip()
