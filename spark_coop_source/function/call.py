"""Calls the user's function of `map.in.read`. Checks its output against its schema; its errors name the records.

Knows the function and its output schema; nothing of the order or the choice of calls. Runs in executor workers.
"""

import asyncio
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator.errors import EnvironmentMismatchError, MapInReadError
from spark_coop_source.function.error_policy import ErrorPolicy
from spark_coop_source.function.slice_batches import SliceBatch
from spark_coop_source.function.user_function import IMPORT_REMEDY, UnimportableError, UserFunction, is_async, loaded

_OURS = str(Path(__file__).parent)


class FunctionCall:
    """The function in this process. Its errors name topic, partition and offsets of its input records."""

    def __init__(
        self,
        function: Callable[..., object],
        schema: pa.Schema,
        policy: ErrorPolicy | None = None,
        hidden: Collection[str] = (),
    ) -> None:
        """`hidden`: columns that a function of single keys does not get."""
        self.function, self.policy = function, policy
        self._hidden = [*hidden]
        self._name = getattr(function, "__qualname__", type(function).__qualname__)
        self._schema = schema
        self._takes_nulls = all(field.nullable for field in schema)

    @classmethod
    def of(cls, function: UserFunction, hidden: Collection[str] = ()) -> Self:
        """Load the function; raises `EnvironmentMismatchError` if this process cannot."""
        try:
            schema = to_arrow_schema(function.output, timezone="UTC")
            return cls(loaded(function.text), schema, function.on_error, hidden)
        except UnimportableError as error:
            raise EnvironmentMismatchError(
                f"the function of map.in.read cannot be loaded where a task runs: {error}", IMPORT_REMEDY
            ) from None
        except ValueError as error:
            raise EnvironmentMismatchError(
                f"the function of map.in.read cannot be loaded where a task runs: {error}",
                "let executors run the Python and the packages that the driver has",
            ) from None

    @property
    def awaits(self) -> bool:
        """Whether the function is a coroutine function."""
        return is_async(self.function)

    def on_key(self, batch: SliceBatch) -> pa.RecordBatch | None:
        """The function's output for one key's records. Raises the function's exceptions, or `MapInReadError`."""
        made = self.function(batch.key, self._shown(batch))
        return None if made is None else self.checked(made, batch)

    async def on_key_async(self, batch: SliceBatch) -> pa.RecordBatch | None:
        """The same of a coroutine function. Raises `TimeoutError` if a call takes longer than the policy allows."""
        limit_ms = self.policy.timeout_ms if self.policy else None
        try:
            async with asyncio.timeout(None if limit_ms is None else limit_ms / 1000) as timeout:
                made = await self.function(batch.key, self._shown(batch))  # type: ignore[misc]
        except TimeoutError:
            if timeout.expired():
                raise TimeoutError(f"no result within {limit_ms} ms") from None
            raise
        return None if made is None else self.checked(made, batch)

    def checked(self, made: object, batch: SliceBatch | None) -> pa.RecordBatch:
        """The function's output, with our columns in our order. Raises `MapInReadError`."""
        if self._takes_nulls and isinstance(made, pa.RecordBatch) and made.schema.equals(self._schema):
            return made  # as most do: to look at each column would take longer than the rest of a call
        wrong = self._wrong(made)
        if wrong or not isinstance(made, pa.RecordBatch):
            raise MapInReadError(
                f"the function {self._name} made {wrong}, {_where(batch)}",
                "make Arrow record batches with exactly the columns of map.in.read.schema, by name, and those types;"
                " or change the schema",
            )
        columns = [_typed(made.column(field.name), field) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def failure(self, error: BaseException, batch: SliceBatch | None, more: str = "") -> MapInReadError:
        """The function's exception as an error that names the records, and shows the user's own frames."""
        if isinstance(error, MapInReadError):  # its output does not fit
            return error
        return MapInReadError(
            f"the function {self._name} raised {type(error).__name__}, {_where(batch)}{more}:\n\n{_frames(error)}\n",
            "mend the function, or let it catch what it can ignore; a restarted query reads these records again",
        )

    def unfinished(self, batch: SliceBatch | None) -> MapInReadError:
        """The error for a function that ended before it read all its records."""
        return MapInReadError(
            f"the function {self._name} ended before it had asked for all its records, {_where(batch)}",
            "ask for every batch, since the rest would be lost; to drop a record, make no row of it",
        )

    def _shown(self, batch: SliceBatch) -> pa.RecordBatch:
        return batch.records.drop_columns(self._hidden) if self._hidden else batch.records

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
    """The traceback from the first frame behind those of this project, and of an event loop that it runs."""
    shown = traceback.TracebackException.from_exception(error)
    ours = [number for number, frame in enumerate(shown.stack) if frame.filename.startswith(_OURS)]
    shown.stack = traceback.StackSummary.from_list(shown.stack[ours[-1] + 1 :] if ours else shown.stack)
    return "".join(shown.format()).rstrip()
