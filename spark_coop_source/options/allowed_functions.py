"""Checks whether the administrator of the driver's host allows a function inside the read.

A user who writes a query's options can name or pickle a function, and so run code. `COOP_FUNCTIONS` limits that
to functions of some modules. The driver reads it from its environment, which no option can change. Driver side.
"""

import os
from collections.abc import Callable, Iterable

from coordinator.errors import FunctionNotAllowedError
from spark_coop_source.function.user_function import is_name, loaded

VARIABLE = "COOP_FUNCTIONS"
"""Names of modules and packages, separated by commas. Empty, it allows no function; not set, it allows any."""


def loaded_if_allowed(text: str, whose: str = "the option function") -> Callable[..., object]:
    """The function of a text. Raises `FunctionNotAllowedError` before any of its code runs, and the errors of `loaded`.

    A function that its module only imports does not count as one of that module.
    """
    allowed = os.environ.get(VARIABLE)
    if allowed is None:
        return loaded(text)
    prefixes = tuple(filter(None, map(str.strip, allowed.split(","))))
    if not is_name(text):
        raise _refused(f"{whose} is pickled", prefixes)
    _check(whose, text.partition(":")[0], prefixes)
    found = loaded(text)
    _check(whose, str(getattr(found, "__module__", "")), prefixes)
    return found


def _check(whose: str, module: str, prefixes: Iterable[str]) -> None:
    if not any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes):
        raise _refused(f"{whose} is of the module {module[:100]!r}", prefixes)


def _refused(why: str, prefixes: Iterable[str]) -> FunctionNotAllowedError:
    modules = ", ".join(prefixes)
    remedy = f"name one of {modules} as module:name" if modules else "leave the option function out"
    return FunctionNotAllowedError(
        f"{why}, and {VARIABLE} in the driver's environment does not allow it",
        f"{remedy}, or ask the administrator of the driver's host to add its module",
    )
