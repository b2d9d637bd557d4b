"""docs/command.md: every command of `coop-kafka`, its flags and its JSON, made from their functions and classes."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from coordinator.tools.cli.commands import commands
from pages import json_part
from pages.markdown import table

_HEAD = """# The command coop-kafka

<!-- Made by scripts/reference-pages from the commands. Do not edit. -->

Every command with its flags, as `--help` prints them, and the [fields of its JSON](#json). Brackets mark what you may
leave out. [Operations](operations.md) shows the commands at work, and has the exit codes.
"""

_COLUMNS = ("argument", "default", "meaning")
_MANY, _REQUIRED = 5, "required"

Verb = Callable[..., Any]
Row = tuple[str, ...]


def markdown() -> str:
    """The whole page."""
    named = dict(verbs(commands))
    rows = {name: list(_rows(verb)) for name, verb in named.items()}
    of_verbs = Counter(row for each in rows.values() for row in each)
    shared = [row for row, count in of_verbs.items() if count >= _MANY]
    head = _HEAD + "\n## Arguments of many commands\n\n" + table(_COLUMNS, shared)
    parts = (
        f"\n## {name}\n\n{_linked(inspect.getdoc(verb) or '')}\n\n{_usage(name, rows[name], shared)}"
        f"{json_part.of_command(name)}"
        for name, verb in named.items()
    )
    return f"{head}\n{json_part.head()}{''.join(parts)}"


def _linked(text: str) -> str:
    """A text with links to the pages that it names."""
    return re.sub(r"\b(?:docs/)?([\w-]+\.md)", r"[\1](\1)", text)


def verbs(inside: typer.Typer, before: str = "") -> Iterator[tuple[str, Verb]]:
    """The verbs with their names; `list` is one."""
    for group in inside.registered_groups:
        if group.typer_instance:
            yield from verbs(group.typer_instance, f"{before}{group.name} ")
    for command in inside.registered_commands:
        if command.callback:
            yield f"{before}{command.name or command.callback.__name__.replace('_', '-')}", command.callback


def _usage(name: str, rows: list[Row], shared: list[Row]) -> str:
    """How to call a verb with all its places and shared flags, and the table of what only few verbs have."""
    called = [row[0].strip("`") for row in rows if row in shared or not row[0].startswith("`--")]
    required = {row[0].strip("`") for row in rows if row[1] == _REQUIRED}
    words = " ".join(each if each in required else f"[{each}]" for each in called)
    own = [row for row in rows if row not in shared]
    return f"`coop-kafka {name} {words}`\n" + (f"\n{table(_COLUMNS, own)}" if own else "")


def _rows(verb: Verb) -> Iterator[Row]:
    """The arguments, then the flags in the order of `--help`."""
    hints = get_type_hints(verb, include_extras=True)
    for name, parameter in inspect.signature(verb).parameters.items():
        info = next((i for i in get_args(hints[name]) if isinstance(i, ArgumentInfo | OptionInfo)), None)
        if info is None:  # the context of typer
            continue
        shown = _flag(name, info, hints[name].__origin__) if isinstance(info, OptionInfo) else info.metavar or name
        also = f" Or `{info.envvar}` in the environment." if info.envvar else ""
        yield f"`{shown}`", _default(parameter.default), f"{info.help or ''}{also}"


def arguments(verb: Verb) -> list[str]:
    """The names of a verb's arguments, then of its flags."""
    names = (re.split(r"[ ,]", row[0].strip("`"))[0] for row in _rows(verb))
    return sorted(names, key=lambda name: name.startswith("--"))


def _flag(name: str, info: OptionInfo, kind: object) -> str:
    """In an annotation, typer takes the first name for a default."""
    names = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    flag = ", ".join(names or [f"--{name.replace('_', '-')}"])
    return flag if kind is bool else f"{flag} {info.metavar or 'TEXT'}"


def _default(value: object) -> str:
    if value is inspect.Parameter.empty:
        return _REQUIRED
    return "" if value in (None, False, []) else f"`{value}`"
