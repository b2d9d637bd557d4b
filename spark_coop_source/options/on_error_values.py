"""The kind of option value of `functionOnError`: the text of an `OnError`, each parameter checked by name."""

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TypeVar

from coordinator.assignment.settings import LONGEST_DELAY_MS
from coordinator.errors import ConflictingOptionsError, InvalidOptionError
from coordinator.errors.quoting import quoted
from coordinator.values.option_kinds import Duration, Integer, OptionKind, Word
from spark_coop_source.function.error_policy import THENS, ErrorPolicy, Then
from spark_coop_source.function.on_error import PARAMETERS
from spark_coop_source.function.user_function import UnloadableError, is_name
from spark_coop_source.options.allowed_functions import loaded_if_allowed
from spark_coop_source.options.json_values import json_of
from spark_coop_source.options.text_values import check_topic

_MOST_ERRORS = 100
_DURATION = Duration(LONGEST_DELAY_MS)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic's name."""

    limit: str = "the name of a topic"

    def parse(self, text: str) -> str:
        """The name."""
        return check_topic(text)


@dataclass(frozen=True, slots=True)
class OnErrorText:
    """The text of an `OnError`: a JSON object with its parameters."""

    limit: str = 'OnError(...) in map_records or map_keys, or JSON like {"attempts":5,"then":"skip"}'

    def parse(self, text: str) -> ErrorPolicy:
        """The checked policy. Raises errors that name the parameter, and those of functions that are not allowed."""
        given = json_of(text)
        if not isinstance(given, dict):
            raise ValueError("not a JSON object")
        if unknown := [name for name in given if name not in PARAMETERS]:
            raise ValueError(f"unknown parameter {quoted(unknown[0])}; it has {', '.join(PARAMETERS)}")
        return _policy({name: value for name, value in given.items() if value is not None})


def _policy(given: dict[str, object]) -> ErrorPolicy:
    usual = ErrorPolicy()
    policy = ErrorPolicy(
        attempts=_value(given, "attempts", Integer(1, 1_000), usual.attempts),
        backoff_ms=_value(given, "backoff", _DURATION, usual.backoff_ms),
        backoff_max_ms=_value(given, "backoff_max", _DURATION, usual.backoff_max_ms),
        then=_then(_value(given, "then", Word(THENS), usual.then)),
        topic=_value(given, "topic", TopicName(), None),
        retry_on=_errors(given, "retry_on"),
        fail_on=_errors(given, "fail_on") or (),
    )
    if policy.backoff_ms > policy.backoff_max_ms:
        raise ConflictingOptionsError(
            f"backoff of OnError ({policy.backoff_ms} ms) is longer than backoff_max ({policy.backoff_max_ms} ms)",
            "lower backoff, or raise backoff_max",
        )
    if (policy.then == "dead_letter") is not (policy.topic is not None):
        raise ConflictingOptionsError(
            f"then of OnError is {policy.then}, {'with the' if policy.topic else 'without a'} topic",
            'name the topic of dead letters with then="dead_letter": both or none',
        )
    return policy


def _then(word: str) -> Then:
    return next(then for then in THENS if then == word)


def _value(given: dict[str, object], name: str, kind: OptionKind[T], usual: T) -> T:
    value = given.get(name)
    if value is None:
        return usual
    try:
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise ValueError(f"it is of type {type(value).__name__}")
        return kind.parse(str(value))
    except ValueError as error:
        raise _wrong(name, value, str(error), kind.limit) from None


def _errors(given: dict[str, object], name: str) -> tuple[str, ...] | None:
    value = given.get(name)
    if value is None:
        return None
    limit = "exception classes, or functions of an exception: as values, or by name as module:name"
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(name, value, "not a list of strings", limit)
    if len(value) > _MOST_ERRORS:
        raise _wrong(name, value, f"it has {len(value)} values; the limit is {_MOST_ERRORS}", limit)
    for text in value:
        try:
            found = _loaded(text)
        except UnloadableError as error:
            raise _wrong(name, text if is_name(text) else "(pickled)", str(error), limit) from None
        if isinstance(found, type) and not issubclass(found, BaseException):
            raise _wrong(name, text if is_name(text) else found.__name__, "it is a class, and no exception", limit)
        if iscoroutinefunction(found):
            raise _wrong(name, text if is_name(text) else found.__name__, "it is a coroutine function", limit)
    return tuple(value)


def _loaded(text: str) -> Callable[..., object]:
    """Python's own exceptions are allowed everywhere: they run nothing."""
    module, _, name = text.partition(":")
    own = getattr(builtins, name, None) if module == "builtins" else None
    if isinstance(own, type) and issubclass(own, BaseException):
        return own
    return loaded_if_allowed(text, "a value of retry_on or fail_on")


def _wrong(name: str, value: object, why: str, limit: str) -> InvalidOptionError:
    return InvalidOptionError(f"{name} of OnError = {quoted(str(value))}: {why}", f"set {name} to {limit}")
