"""Assignors by name: this project's, and a user's class as `module:Class` (spec 4.1).

The only file of this package that looks beyond its arguments: it imports the user's module.
"""

from difflib import get_close_matches
from importlib import import_module

from coordinator.assignors.assignor import Assignor
from coordinator.assignors.copartitioned import Copartitioned
from coordinator.assignors.grouped import Grouped
from coordinator.assignors.range import Range
from coordinator.assignors.roundrobin import RoundRobin
from coordinator.errors import InvalidOptionError

_OWN: dict[str, type[Assignor]] = {a.name: a for a in (Grouped, Range, RoundRobin, Copartitioned)}
NAMES = tuple(_OWN)
"""The names of this project's assignors, the default first."""


def assignor(name: str) -> Assignor:
    """The assignor of that name; `module:Class` makes one of the user's class, without arguments.

    Raises InvalidOptionError if there is none, or if it is not an assignor.
    """
    if name in _OWN:
        return _OWN[name]()
    if ":" not in name:
        near = get_close_matches(name, NAMES, n=1)
        raise InvalidOptionError(
            f"there is no assignor {name!r}",
            f"did you mean {near[0]}?" if near else f"choose one of {', '.join(NAMES)}, or your own as module:Class",
        )
    return _checked(name, _made(name))


def _made(name: str) -> object:
    module, _, cls = name.partition(":")
    try:
        found: object = import_module(module)
        for part in cls.split("."):
            found = getattr(found, part)
        return found() if isinstance(found, type) else found
    except Exception as error:
        raise InvalidOptionError(
            f"the assignor {name!r} cannot be made: {type(error).__name__}: {error}",
            "name an importable class as module:Class that needs no arguments",
        ) from error


def _checked(name: str, made: object) -> Assignor:
    fits = isinstance(getattr(made, "name", None), str) and isinstance(getattr(made, "version", None), int)
    if not fits or not callable(getattr(made, "assign", None)):
        raise InvalidOptionError(
            f"{name!r} is not an assignor",
            "it needs a name (text), a version (whole number) and a method assign: see coordinator.assignors.assignor",
        )
    return made  # type: ignore[return-value]
