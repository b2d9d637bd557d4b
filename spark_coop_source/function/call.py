"""Calls the user's function inside the read. Checks its output against its schema; its errors name the records.

Knows the function and its output schema; nothing of the order or the choice of calls. Runs in executor workers.
"""

import asyncio
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator.errors import EnvironmentMismatchError, FunctionFailedError
from spark_coop_source.function.attempts import RAISED, EndsAt
from spark_coop_source.function.on_error import FailedRecord
from spark_coop_source.function.rows import KeyRecords, UnfitRowsError, arrow_of, dicts_of, fits
from spark_coop_source.function.slice_batches import SliceBatch
from spark_coop_source.function.user_function import (
    IMPORT_REMEDY,
    SHOWN,
    UnimportableError,
    UserFunction,
    is_async,
    loaded,
)

_Rows = list[Mapping[str, Any]]
"""What a function has made of one record."""

_NOT_LOADED = "the function inside the read cannot be loaded where a task runs"
_OURS = str(Path(__file__).parent)


class FunctionCall:
    """The function in this process. Its errors name topic, partition and offsets of its input records."""

    def __init__(
        self,
        function: Callable[..., object],
        schema: pa.Schema,
        form: UserFunction,
        hidden: Collection[str] = (),
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`hidden`: columns that a function of single keys does not get. `over`: whether the task's time is over."""
        self._over = over
        self.function, self.policy, self._hidden = function, form.on_error, [*hidden]
        self._each, self._timeout_ms = form.takes == "records", form.timeout_ms
        self._name = getattr(function, "__qualname__", type(function).__qualname__)
        self._schema = schema
        self._takes_nulls = all(field.nullable for field in schema)

    @classmethod
    def of(cls, form: UserFunction, hidden: Collection[str] = (), over: Callable[[], bool] = lambda: False) -> Self:
        """Load the function; raises `EnvironmentMismatchError` if this process cannot."""
        try:
            return cls(loaded(form.text), to_arrow_schema(form.output, timezone="UTC"), form, hidden, over)
        except UnimportableError as error:
            raise EnvironmentMismatchError(f"{_NOT_LOADED}: {error}", IMPORT_REMEDY) from None
        except ValueError as error:
            remedy = "let executors run the Python and the packages that the driver has"
            raise EnvironmentMismatchError(f"{_NOT_LOADED}: {error}", remedy) from None

    @property
    def awaits(self) -> bool:
        """Whether the function is a coroutine function."""
        return is_async(self.function)

    def on_key(self, batch: SliceBatch) -> pa.RecordBatch | None:
        """The function's output for one key's records.

        Raises the function's exceptions, `FunctionFailedError`, or `EndsAt` if the work ended before a known record.
        """
        records = KeyRecords(self._shown(batch))
        if not self._each:
            with self._said(batch):
                return self._made(self.function(batch.key, records), batch)
        done = list[_Rows]()
        with self._at(done, batch):
            for record in records:
                self._goes_on(done, batch)
                done.append(dicts_of(self.function(record)))
        return self._joined(done, batch)

    async def on_key_async(self, batch: SliceBatch) -> pa.RecordBatch | None:
        """The same of a coroutine function. `TimeoutError`: a call took longer than its timeout."""
        records = KeyRecords(self._shown(batch))
        if not self._each:
            with self._said(batch):
                return self._made(await self._awaited(batch.key, records), batch)
        done = list[_Rows]()
        with self._at(done, batch):
            for record in records:
                self._goes_on(done, batch)
                done.append(dicts_of(await self._awaited(record)))
        return self._joined(done, batch)

    async def _awaited(self, *arguments: object) -> object:
        limit_ms = self._timeout_ms
        if limit_ms is None:
            return await self.function(*arguments)  # type: ignore[misc]
        try:
            async with asyncio.timeout(limit_ms / 1000) as timeout:
                return await self.function(*arguments)  # type: ignore[misc]
        except TimeoutError:
            if timeout.expired():
                raise TimeoutError(f"no result within {limit_ms} ms") from None
            raise

    def _goes_on(self, done: "list[_Rows]", batch: SliceBatch) -> None:
        """At least one record is done; then the time of the task may be over."""
        if done and self._over():
            raise EndsAt(len(done), self._joined(done, batch), None)

    @contextmanager
    def _said(self, batch: SliceBatch) -> Iterator[None]:
        """A record that the function has named becomes the end of the call."""
        try:
            yield
        except FailedRecord as failed:
            number = failed.number
            if type(number) is not int or not 0 <= number < len(batch.records):
                why = f"FailedRecord names the record {number!r:.20} of {len(batch.records)}"
                raise self._misfit(why, batch) from None
            before = self._made(failed.rows, batch.part(0, number)) if number else None
            raise EndsAt(number, before, failed.error) from None

    @contextmanager
    def _at(self, done: "list[_Rows]", batch: SliceBatch) -> Iterator[None]:
        """If the call of the next record fails, the rows of those before it are kept."""
        try:
            yield
        except EndsAt:
            raise
        except UnfitRowsError as unfit:
            number = len(done)
            raise EndsAt(
                number, self._joined(done, batch), self._misfit(unfit, batch.part(number, number + 1))
            ) from None
        except RAISED as error:
            raise EndsAt(len(done), self._joined(done, batch), error) from None

    def _joined(self, done: "list[_Rows]", batch: SliceBatch) -> pa.RecordBatch | None:
        """The rows of several records. If they do not fit the schema, `EndsAt` the first record whose rows do not."""
        rows = list(chain.from_iterable(done))
        try:
            return arrow_of(rows, self._schema) if rows else None
        except UnfitRowsError as unfit:
            before = next((number for number, of_one in enumerate(done) if not fits(of_one, self._schema)), None)
            if before is None:  # each fits alone: together they are too large for one batch
                raise self._misfit(unfit, batch) from None
        with self._at(done[:before], batch):
            arrow_of(done[before], self._schema)
        raise AssertionError("this record's rows do not fit")

    def _made(self, made: object, batch: SliceBatch) -> pa.RecordBatch | None:
        """What a function of a key returned, as Arrow. Raises `FunctionFailedError`."""
        if isinstance(made, pa.RecordBatch):
            return self.checked(made, batch)
        try:
            rows = dicts_of(made)
            return arrow_of(rows, self._schema) if rows else None
        except UnfitRowsError as unfit:
            raise self._misfit(unfit, batch) from None

    def checked(self, made: object, batch: SliceBatch | None) -> pa.RecordBatch:
        """The function's output, with our columns in our order. Raises `FunctionFailedError`."""
        if self._takes_nulls and isinstance(made, pa.RecordBatch) and made.schema.equals(self._schema):
            return made  # as most do: to look at each column would take longer than the rest of a call
        wrong = self._wrong(made)
        if wrong or not isinstance(made, pa.RecordBatch):
            raise self._misfit(f"it made {wrong}", batch)
        columns = [_typed(made.column(field.name), field) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _misfit(self, why: object, batch: SliceBatch | None) -> FunctionFailedError:
        return FunctionFailedError(
            f"the output of the function {self._name} does not fit its schema, {_where(batch)}: {why!s:.{SHOWN}}",
            "make rows with the columns of the schema, by name, and values of those types; or change the schema",
        )

    def _shown(self, batch: SliceBatch) -> pa.RecordBatch:
        return batch.records.drop_columns(self._hidden) if self._hidden else batch.records

    def failure(self, error: BaseException, batch: SliceBatch | None, more: str = "") -> FunctionFailedError:
        """The function's exception as an error that names the records, and shows the user's own frames."""
        if isinstance(error, FunctionFailedError):  # its output does not fit
            return error
        return FunctionFailedError(
            f"the function {self._name} raised {type(error).__name__}, {_where(batch)}{more}:\n\n{_frames(error)}\n",
            "fix the function, or let it catch what it can ignore; a restarted query reads these records again",
        )

    def unfinished(self, batch: SliceBatch | None) -> FunctionFailedError:
        """The error for a function that ended before it read all its records."""
        return FunctionFailedError(
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
    """The traceback from the first frame behind those of this project, and of an event loop that it runs."""
    shown = traceback.TracebackException.from_exception(error)
    ours = [number for number, frame in enumerate(shown.stack) if frame.filename.startswith(_OURS)]
    shown.stack = traceback.StackSummary.from_list(shown.stack[ours[-1] + 1 :] if ours else shown.stack)
    return "".join(shown.format()).rstrip()
