"""`OnError`: what a user wants after a failure of the function, and its text. `FailedRecord`: which it was.

Knows the names of the parameters; `options.on_error_values` knows their limits.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

from coordinator.errors import InvalidOptionError
from spark_coop_source.function.user_function import SHOWN, as_text

Predicate = Callable[[BaseException], bool]
Errors = type[BaseException] | Predicate | str
"""An exception class, a function of an exception, or either by name as `module:name`."""


@dataclass(frozen=True, slots=True)
class OnError:
    """What follows if the function of a key raises; see docs/failing-records.md.

    Args:
        attempts: of one record, over all batches and restarts.
        backoff: before the second attempt: 200ms, 5s. It doubles each time, and each key varies it.
        backoff_max: its limit.
        then: after the last attempt. `fail`: the query fails. `park`: the key waits until an operator releases it.
            `dead_letter`: the record goes to `topic`, and its key goes on. `skip`: the key goes on without it.
        topic: of `dead_letter`.
        retry_on: errors that another attempt may cure; other errors get none. None: all errors.
        fail_on: errors that fail the query at once, whatever `then` is.
    """

    attempts: int = 5
    backoff: str | int = "200ms"
    backoff_max: str | int = "5m"
    then: str = "fail"
    topic: str | None = None
    retry_on: Errors | Iterable[Errors] | None = None
    fail_on: Errors | Iterable[Errors] | None = None

    @property
    def text(self) -> str:
        """Its text in the option `functionOnError`: JSON. Raises `InvalidOptionError`."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        found = {name: _plain(name, value) for name, value in given.items() if name not in ERRORS}
        found |= {name: _texts(name, given[name]) for name in ERRORS}
        return json.dumps({name: value for name, value in found.items() if value is not None})


class FailedRecord(Exception):  # noqa: N818  it says which record, not what went wrong
    """What a function of `map_keys` raises if it knows which record fails: the ones before it are done.

        for number, record in enumerate(records):
            try:
                rows.append(charged(record))
            except OSError as error:
                raise FailedRecord(number, rows) from error

    Args:
        number: of the record that fails, in `records`.
        rows: what the function made of the records before it, in each form that it may return.
    """

    def __init__(self, number: int, rows: object = None) -> None:
        super().__init__(f"the record with the number {number}")
        self.number, self.rows = number, rows

    @property
    def error(self) -> BaseException:
        """What went wrong: `OnError` judges it."""
        return self.__cause__ or self


ERRORS = ("retry_on", "fail_on")
"""The parameters that name exceptions."""

PARAMETERS = tuple(each.name for each in fields(OnError))


def _plain(name: str, value: object) -> object:
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        return value
    raise InvalidOptionError(
        f"{name} of OnError is of type {type(value).__name__}",
        "give numbers and strings, and durations as strings like '200ms' or '5m'",
    )


def _texts(name: str, value: object) -> list[str] | None:
    if value is None:
        return None
    several = value if isinstance(value, Iterable) and not isinstance(value, str | type) else [value]
    return [_text(name, each) for each in several]


def _text(name: str, value: object) -> str:
    """A name, if that is allowed everywhere; else a pickle."""
    if isinstance(value, str):
        return value
    if isinstance(value, type) and value.__module__ == "builtins":
        return f"builtins:{value.__name__}"
    try:
        if callable(value):
            return as_text(value)
        why = f"is of type {type(value).__name__}"
    except Exception as error:  # noqa: BLE001  objects in a closure can raise anything
        why = f"cannot be pickled ({type(error).__name__}: {error!s:.{SHOWN}})"
    raise InvalidOptionError(
        f"a value of {name} of OnError {why}",
        f"give {name} exception classes, or a function of an exception that returns a truth value",
    )
