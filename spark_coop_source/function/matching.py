"""Which errors get another attempt and which fail at once: `retry_on` and `fail_on` of `OnError`, loaded in a task.

Knows exceptions; nothing of records. Runs in executor workers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from coordinator.errors import EnvironmentMismatchError, FunctionFailedError
from spark_coop_source.function.error_policy import ErrorPolicy
from spark_coop_source.function.user_function import IMPORT_REMEDY, UnloadableError, loaded

_Named = Callable[..., object]
"""An exception class, or a predicate."""


@dataclass(frozen=True, slots=True)
class ErrorMatching:
    """The exceptions of one policy."""

    retry_on: tuple[_Named, ...] | None  # None: all errors
    fail_on: tuple[_Named, ...]

    @classmethod
    def of(cls, policy: ErrorPolicy) -> Self:
        """Load them; raises `EnvironmentMismatchError` if this process cannot."""
        return cls(None if policy.retry_on is None else _loaded(policy.retry_on), _loaded(policy.fail_on))

    def retries(self, error: BaseException) -> bool:
        """Whether another attempt may cure the error."""
        return self.retry_on is None or _among(error, self.retry_on)

    def fails(self, error: BaseException) -> bool:
        """Whether the error fails the query at once."""
        return _among(error, self.fail_on)


def _loaded(texts: Iterable[str]) -> tuple[_Named, ...]:
    try:
        return tuple(map(loaded, texts))
    except UnloadableError as error:
        raise EnvironmentMismatchError(
            f"retry_on or fail_on of OnError cannot be loaded where a task runs: {error}", IMPORT_REMEDY
        ) from None


def _among(error: BaseException, named: Iterable[_Named]) -> bool:
    return any(isinstance(error, each) if isinstance(each, type) else _says(each, error) for each in named)


def _says(predicate: _Named, error: BaseException) -> bool:
    try:
        return bool(predicate(error))
    except Exception as own:
        name = getattr(predicate, "__qualname__", type(predicate).__qualname__)
        raise FunctionFailedError(
            f"the predicate {name:.100} of OnError raised {type(own).__name__}: {own!s:.300}",
            "let it return a truth value for every exception",
        ) from own
