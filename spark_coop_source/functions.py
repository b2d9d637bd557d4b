"""The options that run a user's function inside the read; see docs/functions.md.

    from spark_coop_source import map_records

    spark.readStream.format("coop-kafka").options(**map_records(enrich, "key binary, n long"))

    map_records   the function takes a record                      most jobs
    map_keys      the function takes a key and some of its records one call for several records
    map_batches   the function takes an iterator of Arrow batches  work by column

Knows the names of the options; nothing of the calls of the function.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql.types import StructType

from coordinator.errors import InvalidOptionError
from spark_coop_source.function.on_error import OnError
from spark_coop_source.function.user_function import SHOWN, as_text, check_form
from spark_coop_source.options.declarations import OPTION_OF

Function = Callable[..., Any] | str
"""A function of the form that the docstring says, pickled here; or its name as `module:function`."""


def map_records(
    function: Function,
    schema: StructType | str,
    *,
    concurrency: int = 1,
    timeout: str | int | None = None,
    on_error: OnError | None = None,
) -> dict[str, str]:
    """The options that call `function(record)` for each record, in the task that reads it.

    The records of a key come one after another, in offset order.

    Args:
        function: takes a `Row` with Kafka's columns. Returns a row of the output (a dict or a `Row`), several in a list
            or another iterable, or None for none. It may be `async def`.
        schema: the columns of its output: DDL like "key binary, n long", or a StructType.
        concurrency: keys that a task works on at once: at most 1,024, in threads; with `async def` at most 16,384, as
            coroutines of one event loop.
        timeout: of one call of a coroutine function, like "2s"; a call that takes longer is cancelled, and has failed.
        on_error: what follows if the function fails on a record. None: the query fails.

    Raises `ConfigurationError`s: for a function of another form or one that cannot be pickled, and for invalid values.
    """
    return _options(function, "records", schema, concurrency=concurrency, timeout=timeout, on_error=on_error)


def map_keys(
    function: Function,
    schema: StructType | str,
    *,
    concurrency: int = 1,
    timeout: str | int | None = None,
    on_error: OnError | None = None,
) -> dict[str, str]:
    """The options that call `function(key, records)` for a key and some of its records, in the task that reads them.

    `records` is a sequence of `Row`s in offset order (`KeyRecords`); `records.arrow` has them as an Arrow record batch.
    The function returns rows as that of `map_records` does, or an Arrow record batch. If it knows which record fails,
    it raises `FailedRecord`. All else is as in `map_records`.
    """
    return _options(function, "keys", schema, concurrency=concurrency, timeout=timeout, on_error=on_error)


def map_batches(function: Function, schema: StructType | str) -> dict[str, str]:
    """The options that call `function(batches)` once in each task, as `mapInArrow` does.

    The function takes an iterator of Arrow record batches, and returns one. It must ask for every batch.
    """
    return _options(function, "batches", schema)


def _options(
    function: Function,
    takes: str,
    schema: StructType | str,
    *,
    concurrency: int = 1,
    timeout: str | int | None = None,
    on_error: OnError | None = None,
) -> dict[str, str]:
    texts = {
        "takes": takes,
        "function_output": _schema_text(schema),
        "concurrency": str(concurrency),
        **({} if timeout is None else {"timeout_ms": str(timeout)}),
        **({} if on_error is None else {"function_on_error": _text_of(on_error)}),
    }
    values = {field: OPTION_OF[field].parse(text) for field, text in texts.items()}
    if not isinstance(function, str):
        check_form(function, takes, concurrency=concurrency, timeout_ms=values.get("timeout_ms"))
    texts["function"] = function if isinstance(function, str) else _pickled(function)
    return {OPTION_OF[field].name: text for field, text in texts.items()}


def _schema_text(schema: object) -> str:
    if isinstance(schema, StructType):
        return schema.json()
    if isinstance(schema, str):
        return schema
    raise InvalidOptionError(
        f"the schema of the function is of type {type(schema).__name__}",
        "name the columns that the function makes: DDL like 'key binary, n long', or a StructType",
    )


def _text_of(on_error: object) -> str:
    if isinstance(on_error, OnError):
        return on_error.text
    raise InvalidOptionError(f"on_error is of type {type(on_error).__name__}", "pass OnError(...), or leave it out")


def _pickled(function: Callable[..., object]) -> str:
    try:
        return as_text(function)
    except Exception as error:  # objects in a closure can raise anything
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise InvalidOptionError(
            f"the function {name:.100} cannot be pickled ({type(error).__name__}: {error!s:.{SHOWN}})",
            "keep no connections, locks or Spark session in it, since they exist in this process only:"
            " open them inside the function",
        ) from error
