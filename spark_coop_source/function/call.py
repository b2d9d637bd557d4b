"""Calls the user's function of `mapInRead`. Checks its output against its schema; its errors name the records.

Knows the function and its output schema; nothing of the order or the choice of calls. Runs in executor workers.
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
"""Exceptions of a function that become errors. `sys.exit()` would end the worker, and not name the record."""

_OURS = str(Path(__file__).parent)


class FunctionCall:
    """The function in this process. Its errors name topic, partition and offsets of its input records."""

    def __init__(self, function: Callable[..., object], schema: pa.Schema) -> None:
        self.function = function
        self._name = getattr(function, "__qualname__", type(function).__qualname__)
        self._schema = schema

    @classmethod
    def of(cls, function: UserFunction) -> Self:
        """Load the function; raises `EnvironmentMismatchError` if this process cannot."""
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
        """The function's output for one key's records; None if it is empty. Raises `MapInReadError`."""
        try:
            made = self.function(batch.key, batch.records)
        except RAISED as error:
            raise self.failure(error, batch) from None  # the message already shows the frames
        return None if made is None else self.checked(made, batch)

    def checked(self, made: object, batch: SliceBatch | None) -> pa.RecordBatch:
        """The function's output, with our columns in our order. Raises `MapInReadError`."""
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
        """The function's exception as an error that names the records, and shows the user's own frames."""
        return MapInReadError(
            f"the function {self._name} raised {type(error).__name__}, {_where(batch)}:\n\n{_frames(error)}\n",
            "mend the function, or let it catch what it can ignore; a restarted query reads these records again",
        )

    def unfinished(self, batch: SliceBatch | None) -> MapInReadError:
        """The error for a function that ended before it read all its records."""
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
    """The column in the field's type: Arrow has a separate type for a column of nothing but None."""
    return column.cast(field.type) if pa.types.is_null(column.type) else column


def _article(made: object) -> str:
    return "None" if made is None else f"a {type(made).__module__}.{type(made).__qualname__}"


def _where(batch: SliceBatch | None) -> str:
    return "called with no records" if batch is None else f"called with {batch}"


def _frames(error: BaseException) -> str:
    """The traceback without the frames of this project."""
    shown = traceback.TracebackException.from_exception(error)
    shown.stack = traceback.StackSummary.from_list([f for f in shown.stack if not f.filename.startswith(_OURS)])
    return "".join(shown.format()).rstrip()
