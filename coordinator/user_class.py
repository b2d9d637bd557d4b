"""A user's class, named in an option as `module:Class`: the only place that imports a module of the user's."""

import re
from importlib import import_module

from coordinator.errors import InvalidOptionError
from coordinator.quoting import quoted

_NAME = re.compile(r"(?=.{1,500}$)[\w.]+:[\w.]+")
_FORM = "as module:Class, at most 500 characters"


def found(noun: str, name: str) -> object:
    """What `module:Class` names; `noun` says in errors what it should be. Raises `InvalidOptionError`."""
    if not _NAME.fullmatch(name):
        raise InvalidOptionError(f"the {noun} {quoted(name)} is not module:Class", f"name an importable class {_FORM}")
    module, _, cls = name.partition(":")
    try:
        thing: object = import_module(module)
        for part in cls.split("."):
            thing = getattr(thing, part)
    except (Exception, SystemExit) as error:
        raise _unusable(noun, name, error) from error
    return thing


def made(noun: str, name: str) -> object:
    """An instance of that class, made without arguments; what is no class, as it is. Raises `InvalidOptionError`."""
    thing = found(noun, name)
    try:
        return thing() if isinstance(thing, type) else thing
    except (Exception, SystemExit) as error:
        raise _unusable(noun, name, error) from error


def _unusable(noun: str, name: str, error: BaseException) -> InvalidOptionError:
    return InvalidOptionError(
        f"the {noun} {quoted(name)} cannot be made: {type(error).__name__}: {error}",
        "name an importable class as module:Class that needs no arguments",
    )
