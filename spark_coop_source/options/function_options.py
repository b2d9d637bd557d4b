"""The rules between the options of `map.in.read`, and with the options of the query around it."""

from coordinator.errors import ConflictingOptionsError, MissingOptionError
from spark_coop_source.function.user_function import check_form, is_name, loaded
from spark_coop_source.options.declarations import OPTION_OF, SourceOptions


def check(options: SourceOptions, *, streaming: bool | None) -> None:
    """Refuse options that do not go together."""
    _check_complete(options)
    function, on_error = options.function, options.function_on_error
    # map_in_read has checked a pickled function, but perhaps with another policy
    if function is not None and (is_name(function) or (on_error and on_error.timeout_ms)):
        check_form(loaded(function), per_key=options.per_key, concurrency=options.concurrency, on_error=on_error)
    if function is not None and options.push_filters:
        raise ConflictingOptionsError(
            "the options push.filters and map.in.read are both set, but Spark's filters are on the function's columns",
            "remove push.filters, and use the filter.* options for the records that the function gets",
        )
    if on_error and function is None:
        raise MissingOptionError(
            f"the option {OPTION_OF['function_on_error'].name} is set, but not {OPTION_OF['function'].name}",
            "set both, by map_in_read(function, schema=..., per_key=True, on_error=...)",
        )
    if on_error:
        check_per_key(per_key=options.per_key)
    if options.concurrency > 1 and not options.per_key:
        raise ConflictingOptionsError(
            f"map.in.read.concurrency is {options.concurrency}, but there is no function of one key; "
            "a function of batches is a single call, which threads cannot share",
            "write it as function(key, batch) and pass per_key=True, or leave concurrency at 1",
        )
    if streaming is not None:
        _check_parking(options)


def _check_complete(options: SourceOptions) -> None:
    missing, given = OPTION_OF["function"].name, OPTION_OF["function_output"].name
    if options.function is not None:
        missing, given = given, missing
    if (options.function is None) is not (options.function_output is None):
        raise MissingOptionError(
            f"the option {given} is set, but not {missing}", "set both, by map_in_read(function, schema=...)"
        )


def check_per_key(*, per_key: bool) -> None:
    """Refuse `on_error` for a function of batches: it gets no single keys that could wait."""
    if not per_key:
        raise ConflictingOptionsError(
            "on_error needs per_key=True: a function of batches gets the records of many keys in one call, so no key of"
            " them can fail alone",
            "write the function as f(key, records) and pass per_key=True, or leave on_error out",
        )


def _check_parking(options: SourceOptions) -> None:
    why = _never_early(options)
    if options.function_on_error and options.function_on_error.then == "park" and why:
        raise ConflictingOptionsError(
            f'then="park" of OnError needs tasks that may leave out a key, but {why}',
            "read a stream with the options group and redis.url, ordering=key and a batch.time.budget;"
            ' or set then to "dead_letter" or "skip"',
        )


def _never_early(options: SourceOptions) -> str:
    """The reason why no task ends early; empty if tasks may."""
    reasons = {
        "it reads without a group": options.group is None,
        "its ordering is none": options.ordering == "none",
        "its batch.time.budget is 0": options.batch_budget_ms == 0,
        "its allow.unread.batches is true": options.unread_batches,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
