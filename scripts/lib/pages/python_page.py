"""The site's page of the public Python names. mkdocstrings fills it from the docstrings."""

from inspect import isclass, isfunction

import spark_coop_source
from spark_coop_source import offset_commits, testing

_HEAD = """# Python API

The names that a program may import from `spark_coop_source`. `spark_coop_source.testing` and
`spark_coop_source.offset_commits` are public too. All other modules are private: each release may change them.
[Errors](reference.md#errors) are the classes of `spark_coop_source.errors`.
"""
_NAME = """
## {name}

::: {place}
"""


def markdown() -> str:
    """The whole page."""
    names = {name: getattr(spark_coop_source, name) for name in dir(spark_coop_source)}
    names |= {name: getattr(module, name) for module in (testing, offset_commits) for name in module.__all__}
    return _HEAD + "".join(_part(name, value) for name, value in names.items())


def _part(name: str, value: object) -> str:
    """The part of a class or function; none of the module of errors, which has a page."""
    return _NAME.format(name=name, place=f"{value.__module__}.{name}") if isclass(value) or isfunction(value) else ""
