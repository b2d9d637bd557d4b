"""`map_in_read`: options that run a user's function inside the read; see docs/map-in-read.md.

    from spark_coop_source import map_in_read

    spark.readStream.format("coop-kafka").options(**map_in_read(enrich, schema="key binary, n long"))

Knows the names of the options; nothing of the calls of the function.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql.types import StructType

from coordinator.errors import InvalidOptionError
from spark_coop_source.function.on_error import OnError
from spark_coop_source.function.user_function import SHOWN, as_text, check_form
from spark_coop_source.options import function_options
from spark_coop_source.options.declarations import OPTION_OF

if TYPE_CHECKING:
    import pyarrow as pa

    BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
    Made: TypeAlias = pa.RecordBatch | Awaitable[pa.RecordBatch | None] | None
    KeyFunction = Callable[[bytes | None, pa.RecordBatch], Made]


def map_in_read(
    function: "BatchFunction | KeyFunction | str",
    *,
    schema: StructType | str,
    per_key: bool = False,
    concurrency: int = 1,
    on_error: OnError | None = None,
) -> dict[str, str]:
    """The options that let each task run `function` on its records, before Spark sees them.

    Args:
        function: as for `mapInArrow`: called once in a task, takes and returns an iterator of record batches. With
            `per_key`: takes a key and some of its records, and returns a record batch or None; it may be `async def`.
            Either the function itself, pickled here, or its name as `module:function`.
        schema: the columns of its output: DDL, or a StructType.
        per_key: which of the two forms it has. A key's records come in order, also from call to call.
        concurrency: keys that a task works on at once; above 1 only with `per_key`. At most 1,024, in threads; with
            `async def` at most 16,384, as coroutines of one event loop.
        on_error: what follows if the function fails on a record; only with `per_key`. None: the query fails.

    Raises `ConfigurationError`s: for a function of another form or one that cannot be pickled, for an invalid schema,
    and for invalid parameters of `on_error`.
    """
    policy = None
    if on_error is not None:
        function_options.check_per_key(per_key=per_key)
        policy = OPTION_OF["function_on_error"].parse(_text_of(on_error))
    if not isinstance(function, str):
        check_form(function, per_key=per_key, concurrency=concurrency, on_error=policy)
    text = schema.json() if isinstance(schema, StructType) else schema
    if not isinstance(text, str):
        raise InvalidOptionError(
            f"the schema of map_in_read is of type {type(schema).__name__}",
            "name the columns that the function makes: DDL like 'key binary, n long', or a StructType",
        )
    OPTION_OF["function_output"].parse(text)
    texts = {
        "function": function if isinstance(function, str) else _pickled(function),
        "function_output": text,
        "per_key": str(per_key).lower(),
        "concurrency": str(concurrency),
        **({} if on_error is None else {"function_on_error": on_error.text}),
    }
    return {OPTION_OF[field].name: text for field, text in texts.items()}


def _text_of(on_error: object) -> str:
    if isinstance(on_error, OnError):
        return on_error.text
    raise InvalidOptionError(
        f"on_error of map_in_read is of type {type(on_error).__name__}", "pass OnError(...), or leave it out"
    )


def _pickled(function: Callable[..., object]) -> str:
    try:
        return as_text(function)
    except Exception as error:  # objects in a closure can raise anything
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise InvalidOptionError(
            f"the function {name:.100} cannot be pickled ({type(error).__name__}: {error!s:.{SHOWN}})",
            "keep no connections, locks or Spark session in it, since they live in this process only:"
            " open them inside the function",
        ) from error
