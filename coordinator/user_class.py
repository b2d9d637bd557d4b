"""A user's class, named in an option as `module:Class`: the only place that imports a module of the user's.

What such a class raises stays with it: also `SystemExit`, which must not end a query without a word.
"""

import re
from importlib import import_module

from coordinator.errors import CoopKafkaError, InvalidOptionError
from coordinator.quoting import quoted

_NAME = re.compile(r"(?=.{1,500}$)[\w.]+:[\w.]+")
_FORM = "as module:Class, at most 500 characters"

FAILURES = (Exception, SystemExit)
"""What a user's code may raise; Ctrl-C is the user's own."""

MOST = 300  # letters of what it says


def said(error: BaseException) -> str:
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
    """What `module:Class` names; `noun` says in errors what it should be. Raises `InvalidOptionError`."""
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


def made(noun: str, name: str) -> object:
    """An instance of that class, made without arguments; what is no class, as it is. Raises `InvalidOptionError`."""
    thing = found(noun, name)
    try:
        return thing() if isinstance(thing, type) else thing
    except FAILURES as error:
        raise _unusable(noun, name, error) from error


def _unusable(noun: str, name: str, error: BaseException) -> InvalidOptionError:
    return InvalidOptionError(
        f"the {noun} {quoted(name)} cannot be created: {said(error)}",
        "name an importable class as module:Class that needs no arguments",
    )
