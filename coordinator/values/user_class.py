"""A user's class, named in an option as `module:Class`. Only this module imports user modules.

Its exceptions are caught, also `SystemExit`, which must not end a query without a message.
"""

import re
from importlib import import_module

from coordinator.errors import CoopKafkaError, InvalidOptionError
from coordinator.errors.quoting import quoted

_NAME = re.compile(r"(?=.{1,500}$)[\w.]+:[\w.]+")
_FORM = "as module:Class, at most 500 characters"

FAILURES = (Exception, SystemExit)
"""The caught exceptions of a user's code, without Ctrl-C."""

MOST = 300  # characters of its message


def error_text(error: BaseException) -> str:
    """An error of a user's code, its type and its message, in one short line."""
    try:
        text = error.what if isinstance(error, CoopKafkaError) else str(error)
    except FAILURES:
        text = "its message cannot be read"
    return line(f"{type(error).__name__}: {text}")


def line(text: str) -> str:
    """The beginning of a text, in one line that is safe to print."""
    return "".join(c if c.isprintable() else " " for c in text[:MOST])


def found(noun: str, name: str) -> object:
    """The object of the name `module:Class`; `noun` is its kind in errors. Raises `InvalidOptionError`."""
    if not _NAME.fullmatch(name):
        raise InvalidOptionError(f"the {noun} {quoted(name)} is not module:Class", f"name an importable class {_FORM}")
    module, _, cls = name.partition(":")
    try:
        thing: object = import_module(module)
        for part in cls.split("."):
            thing = getattr(thing, part)
    except FAILURES as error:
        raise _unusable(noun, name, error) from error
    return thing


def instance(noun: str, name: str) -> object:
    """An instance of that class, made without arguments, or the object if it is no class. `InvalidOptionError`."""
    thing = found(noun, name)
    try:
        return thing() if isinstance(thing, type) else thing
    except FAILURES as error:
        raise _unusable(noun, name, error) from error


def _unusable(noun: str, name: str, error: BaseException) -> InvalidOptionError:
    return InvalidOptionError(
        f"the {noun} {quoted(name)} cannot be created: {error_text(error)}",
        "name a class as module:Class that needs no arguments, in a module on the driver's Python path",
    )
