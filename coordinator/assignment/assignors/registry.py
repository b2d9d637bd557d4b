"""Assignors by name: this project's, and a user's class as `module:Class`."""

import re
from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from inspect import iscoroutinefunction, isgeneratorfunction, signature

from coordinator.assignment.assignors.assignor import Assignor
from coordinator.assignment.assignors.copartitioned import Copartitioned
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.assignors.rack_aware import RackAware
from coordinator.assignment.assignors.reverse import Range, RoundRobin
from coordinator.errors import InvalidOptionError
from coordinator.errors.quoting import quoted
from coordinator.values.user_class import FAILURES, error_text, instance

_OWN: dict[str, Callable[[], Assignor]] = {a.name: a for a in (Grouped, Range, RoundRobin, Copartitioned, RackAware)}
_NAME_MOST = 100
NAMES = tuple(_OWN)
"""The names of this project's assignors, the default first."""

MOST = 16
"""The most assignors of one member: each has an instance, and an entry in the member's hash."""


def assignors(names: str) -> tuple[Assignor, ...]:
    """The assignors of a list of names, separated by commas, by preference; see `assignor`."""
    if (count := names.count(",") + 1) > MOST:
        raise InvalidOptionError(f"the list has {count} assignors", f"name at most {MOST}")
    assignors = tuple(assignor(name.strip()) for name in names.split(","))
    known = Counter((a.name, a.version) for a in assignors)
    if twice := [f"{name} {version}" for (name, version), times in known.items() if times > 1]:
        raise InvalidOptionError(
            f"the assignor {twice[0]} is named twice", "name each assignor once; use a different name for each version"
        )
    return assignors


def assignor(name: str) -> Assignor:
    """The assignor of that name; `module:Class` makes one of the user's class, without arguments.

    Raises InvalidOptionError if there is none, or if it is not an assignor.
    """
    if name in _OWN:
        return _OWN[name]()
    if ":" not in name:
        near = get_close_matches(name, NAMES, n=1)
        raise InvalidOptionError(
            f"assignor {quoted(name)} does not exist",
            f"did you mean {near[0]}" if near else f"choose one of {', '.join(NAMES)}, or your own as module:Class",
        )
    return _checked(name, instance("assignor", name))


def _checked(name: str, assignor: object) -> Assignor:
    try:
        problem = _problem(assignor)
    except FAILURES as error:
        problem = error_text(error)
    if problem:
        raise InvalidOptionError(
            f"{quoted(name)} is not an assignor: {problem}",
            f"it needs a name (1 to {_NAME_MOST} characters, no space, comma or control character), a version (a whole "
            "number) and a method assign(self, members, partitions, previous)",
        )
    return assignor  # type: ignore[return-value]


def _problem(assignor: object) -> str:
    """The problem that is visible before the first assignment; empty if there is none."""
    name, version, assign = (getattr(assignor, part, None) for part in ("name", "version", "assign"))
    if not (isinstance(name, str) and re.fullmatch(rf"[^\s,]{{1,{_NAME_MOST}}}", name) and name.isprintable()):
        return "its name cannot be used"
    if type(version) is not int or version < 0:
        return "its version is not a whole number"
    if not callable(assign):
        return "it has no method assign"
    if iscoroutinefunction(assign) or isgeneratorfunction(assign):
        return "its method assign is not a plain function"
    return "" if _takes_three(assign) else "its method assign does not take members, partitions and previous"


def _takes_three(assign: Callable[..., object]) -> bool:
    try:
        parameters = signature(assign)
    except ValueError:
        return True  # a builtin without a signature
    try:
        parameters.bind((), {}, {})
    except TypeError:
        return False
    return True
