"""The rules between the options of the function inside the read, and with the options of the query around it."""

from coordinator.errors import ConflictingOptionsError, MissingOptionError
from spark_coop_source.function.user_function import check_form, is_name, loaded
from spark_coop_source.options.declarations import OPTION_OF, SourceOptions


def check(options: SourceOptions, *, streaming: bool | None) -> None:
    """Refuse options that do not go together."""
    _check_complete(options)
    function = options.function
    # a pickled function was checked when it was pickled, but perhaps with another timeout
    if function is not None and (is_name(function) or options.timeout_ms):
        check_form(loaded(function), options.takes, concurrency=options.concurrency, timeout_ms=options.timeout_ms)
    if function is not None and options.push_filters:
        raise ConflictingOptionsError(
            "the options pushFilters and function are both set, but Spark's filters are on the function's columns",
            "remove pushFilters, and use the filter options for the records that the function gets",
        )
    for field in ("function_on_error", "timeout_ms", "concurrency"):
        if field in options.given and options.takes == "batches" and getattr(options, field) != 1:
            raise ConflictingOptionsError(
                f"the option {OPTION_OF[field].name} is set, but the function takes batches: one call gets the records"
                " of many keys, so no key can fail, wait or run alone",
                "pass the function to map_records or map_keys, or set functionTakes, or leave the option out",
            )
    if streaming is not None:
        _check_parking(options)


def _check_complete(options: SourceOptions) -> None:
    given = [field for field in ("function", "function_output", "function_on_error") if field in options.given]
    missing = [field for field in ("function", "function_output") if field not in given]
    if given and missing:
        raise MissingOptionError(
            f"the option {OPTION_OF[given[0]].name} is set, but not {OPTION_OF[missing[0]].name}",
            "set both, by map_records(function, schema)",
        )


def _check_parking(options: SourceOptions) -> None:
    why = _never_early(options)
    if options.function_on_error and options.function_on_error.then == "park" and why:
        raise ConflictingOptionsError(
            f'then="park" of OnError needs tasks that may leave out a key, but {why}',
            "read a stream with the options group and redisUrl, ordering=key and a batchTimeBudget;"
            ' or set then to "dead_letter" or "skip"',
        )


def _never_early(options: SourceOptions) -> str:
    """The reason why no task ends early; empty if tasks may."""
    reasons = {
        "it reads without a group": options.group is None,
        "its ordering is none": options.ordering == "none",
        "its batchTimeBudget is 0": options.batch_budget_ms == 0,
        "its allowUnreadBatches is true": options.unread_batches,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
