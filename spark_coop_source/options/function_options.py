"""The rules between the options of `map.in.read`, and with the options of the query around it."""

from coordinator.errors import ConflictingOptionsError, MissingOptionError
from spark_coop_source.function.error_policy import ErrorPolicy
from spark_coop_source.function.user_function import check_form, is_name, loaded
from spark_coop_source.options import table


def check(
    function: str | None,
    *,
    has_schema: bool,
    per_key: bool,
    concurrency: int,
    on_error: ErrorPolicy | None,
    push_filters: bool,
) -> None:
    """Refuse options that do not go together."""
    if (function is None) is has_schema:
        missing, given = table.MAP_IN_READ.name, table.MAP_IN_READ_SCHEMA.name
        if function is not None:
            missing, given = given, missing
        raise MissingOptionError(
            f"the option {given} is set, but not {missing}", "set both, by map_in_read(function, schema=...)"
        )
    # map_in_read has checked a pickled function, but perhaps with another policy
    if function is not None and (is_name(function) or (on_error and on_error.timeout_ms)):
        check_form(loaded(function), per_key=per_key, concurrency=concurrency, on_error=on_error)
    if function is not None and push_filters:
        raise ConflictingOptionsError(
            "the options push.filters and map.in.read are both set, but Spark's filters are on the function's columns",
            "remove push.filters, and use the filter.* options for the records that the function gets",
        )
    if on_error and function is None:
        raise MissingOptionError(
            f"the option {table.MAP_IN_READ_ON_ERROR.name} is set, but not {table.MAP_IN_READ.name}",
            "set both, by map_in_read(function, schema=..., per_key=True, on_error=...)",
        )
    if on_error:
        check_per_key(per_key=per_key)
    if concurrency > 1 and not per_key:
        raise ConflictingOptionsError(
            f"map.in.read.concurrency is {concurrency}, but there is no function of one key; "
            "a function of batches is a single call, which threads cannot share",
            "write it as function(key, batch) and pass per_key=True, or leave concurrency at 1",
        )


def check_per_key(*, per_key: bool) -> None:
    """Refuse `on_error` for a function of batches: it gets no single keys that could wait."""
    if not per_key:
        raise ConflictingOptionsError(
            "on_error needs per_key=True: a function of batches gets the records of many keys in one call, so no key of"
            " them can fail alone",
            "write the function as f(key, records) and pass per_key=True, or leave on_error out",
        )


def check_parking(on_error: ErrorPolicy | None, why: str) -> None:
    """Refuse `then="park"` in a query whose tasks never end early, for the reason `why`; empty: they may."""
    if on_error and on_error.then == "park" and why:
        raise ConflictingOptionsError(
            f'then="park" of OnError needs tasks that may leave out a key, but {why}',
            "read a stream with the options group and redis.url, ordering=key and a batch.time.budget;"
            ' or set then to "dead_letter" or "skip"',
        )
