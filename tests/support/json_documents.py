"""Compares a JSON document of the command with its table in docs/command.md: names and types."""

import json
from collections.abc import Iterator
from typing import Any

from pages.json_part import DOCUMENTS

TABLES = {d.verb: {f.name: f.kind for f in d.fields} for d in DOCUMENTS}
_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
}


def check_output(verb: str, out: str) -> None:
    """Each field that a verb printed is in its table, with a value of its type."""
    for text in out.splitlines() if verb == "events" else [out]:
        document = json.loads(text)
        assert isinstance(document, dict), f"{verb} prints one object"
        assert [path for path, value in leaves(verb, document) if not _fits(value, TABLES[verb].get(path))] == []


def leaves(verb: str, value: dict[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """The path and the value of each field; a field that the table has is not looked into, except lists of objects."""
    for name, found in value.items():
        path = f"{above}{name}"
        if path in TABLES[verb]:
            yield path, found
        inner = f"{path}[]."
        if isinstance(found, list) and any(known.startswith(inner) for known in TABLES[verb]):
            for one in found:
                yield from leaves(verb, one, inner)
        elif path == "replica_sets":
            for one in value[path]:
                yield from leaves(verb, one)
        elif path not in TABLES[verb]:
            yield path, found


def _fits(value: object, kind: str | None) -> bool:
    if kind is None:
        return False
    kind, _, null = kind.partition(" or ")
    if value is None:
        return null == "null"
    if kind.startswith("list of "):
        return isinstance(value, list) and all(_fits(one, kind.removeprefix("list of ")) for one in value)
    return isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")
