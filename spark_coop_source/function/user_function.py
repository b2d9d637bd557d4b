"""The user's function inside the read: as text in an option, as a value in transit, and as a callable.

Knows how a function travels, and its allowed forms; nothing of records. Used by `functions`, by the check of options,
and by executors.
"""

import base64
import binascii
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from inspect import isasyncgenfunction, iscoroutinefunction, signature
from operator import attrgetter

from pyspark import cloudpickle
from pyspark.sql.types import StructType

from coordinator.errors import InvalidOptionError
from spark_coop_source.function.error_policy import ErrorPolicy

SHOWN = 300  # characters of another error in a message
MOST_THREADS = 1_024
"""Most keys at once of a plain function, in one task."""

CALLED = {"records": "(record)", "keys": "(key, records)", "batches": "(batches)"}
"""The arguments of a function, by what it takes."""

IMPORT_REMEDY = (
    "install the module as a package where driver and executors run, ship it in an archive (spark.archives), or, for a"
    " module next to the job, call pyspark.cloudpickle.register_pickle_by_value(module) first"
)


class UnloadableError(ValueError):
    """A function that this process cannot load."""


class UnimportableError(UnloadableError):
    """A function whose module is missing here, or is another version; `IMPORT_REMEDY` is the remedy."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """The function inside `read`: its code, the columns of its output, and its form of call."""

    text: str = field(repr=False)  # module:function, or a pickle in base64
    output: StructType
    takes: str  # a key of CALLED
    concurrency: int = 1  # keys at once, inside one task
    timeout_ms: int | None = None  # of a call of a coroutine function; None: no limit
    on_error: ErrorPolicy | None = None  # None: an exception fails the task

    @property
    def per_key(self) -> bool:
        """Whether it gets no records of several keys in one call."""
        return self.takes != "batches"


def as_text(function: Callable[..., object]) -> str:
    """The function pickled by Spark's cloudpickle, in base64: the input of `loaded`. Raises the errors of pickling."""
    return base64.b64encode(cloudpickle.dumps(function)).decode()  # type: ignore[no-untyped-call]


def is_name(text: str) -> bool:
    """Whether a text is module:function; a pickle in base64 has no colon."""
    return ":" in text


def loaded(text: str) -> Callable[..., object]:
    """The function of a text. Runs its author's code. `UnloadableError` names the reason if it cannot be loaded."""
    function = _named(text) if is_name(text) else _unpickled(text)
    if not callable(function):
        raise UnloadableError(f"it is of type {type(function).__name__}, which cannot be called")
    return function


def is_async(function: object) -> bool:
    """Whether a call of the function makes a coroutine."""
    return iscoroutinefunction(function) or iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004


def check_form(function: object, takes: str, *, concurrency: int = 1, timeout_ms: int | None = None) -> None:
    """Raise `InvalidOptionError` for a function that cannot be called so. Accepts functions without a signature."""
    called = CALLED[takes]
    if why := _unfit(function, called):
        forms = ", ".join(f"f{form} for map_{of}" for of, form in CALLED.items())
        raise InvalidOptionError(f"the function cannot be called as f{called}: {why}", f"pass {forms}")
    if is_async(function):
        if takes == "batches":
            raise InvalidOptionError(
                "the function is a coroutine function (async def), but map_batches calls plain functions",
                "write it as async def f(record), and pass it to map_records",
            )
        return
    if timeout_ms:
        raise InvalidOptionError(
            "a timeout is set, but the function is a plain function: a call that runs in a thread cannot be stopped",
            "write it as async def, or leave timeout out",
        )
    if concurrency > MOST_THREADS:
        raise InvalidOptionError(
            f"concurrency is {concurrency}, but a plain function takes a thread for each key, at most {MOST_THREADS}",
            f"set it to at most {MOST_THREADS}, or pass a coroutine function (async def)",
        )


def _unfit(function: object, called: str) -> str:
    if not callable(function):
        return f"it is of type {type(function).__name__}, which cannot be called"
    if isasyncgenfunction(function) or isasyncgenfunction(getattr(type(function), "__call__", None)):  # noqa: B004
        return "it is an asynchronous generator (async def with yield)"
    try:
        found = signature(function)
    except (ValueError, TypeError):  # some builtins
        return ""
    try:
        found.bind(*called.split(","))
    except TypeError:
        return f"it takes {found!s:.100}"
    return ""


def _named(text: str) -> object:
    module, _, name = text.partition(":")
    try:
        return attrgetter(name)(import_module(module))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module runs what its author wrote; exit() must not end this process
        raise UnimportableError(f"it cannot be imported {_by(error)}") from error


def _unpickled(text: str) -> object:
    try:
        pickled = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UnloadableError(
            "it is neither module:function nor a result of map_records, map_keys or map_batches"
        ) from None
    try:
        return pickle.loads(pickled)  # noqa: S301 - the query's author wrote it; see docs/functions.md, Trust
    except KeyboardInterrupt:
        raise
    except (ImportError, AttributeError) as error:
        raise UnimportableError(f"it needs what cannot be imported {_by(error)}") from error
    except BaseException as error:  # unpickling runs anything
        raise UnloadableError(f"it cannot be unpickled ({type(error).__name__}: {error!s:.{SHOWN}})") from error


def _by(error: BaseException) -> str:
    return f"by {sys.executable} ({type(error).__name__}: {error!s:.{SHOWN}})"
