"""A copy of a group's state, for a file: positions and what people decided, nothing of members. Pure.

{"coop-kafka": 1, "group": "orders", "taken_ms": 1763748000000, "keys": {"meta": {...}, "segments:orders:0": {...}}}
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from coordinator.errors import CoopKafkaError, StateFormatError
from coordinator.group_state import SCHEMA, other_schema
from coordinator.progress.segments import Progress

KINDS = ("meta", "topics", "policy", "growth", "strikes", "stable", "end", "epoch", "segments", "ics")
"""The keys that are copied, by what they are called before any topic. Leases, owners and members belong to one life."""

_FORM = "coop-kafka"
_VERSION = 1
_REMEDY = "give a file that coop-kafka backup wrote for this group"

Hashes = Mapping[str, Mapping[str, str]]
"""Fields and values of each key, which is named by what follows the group."""


@dataclass(frozen=True, slots=True)
class GroupCopy:
    """The state of one group at one moment."""

    group: str
    taken_ms: int
    keys: Hashes

    @property
    def text(self) -> str:
        """The copy as a file holds it."""
        keys = {name: dict(sorted(of_one.items())) for name, of_one in sorted(self.keys.items())}
        told = {_FORM: _VERSION, "group": self.group, "taken_ms": self.taken_ms, "keys": keys}
        return json.dumps(told, indent=1)

    @classmethod
    def parse(cls, text: str, group: str) -> Self:
        """The copy in a file; `StateFormatError` if it is none, of another group, or not sound."""
        try:
            told = json.loads(text)
            if told[_FORM] != _VERSION:
                raise ValueError(f"is of version {told[_FORM]!r}, this coop-kafka reads {_VERSION}")
            copy = cls(str(told["group"]), int(told["taken_ms"]), told["keys"])
            if copy.group != group:
                raise ValueError(f"is of group {copy.group!r}, not {group!r}")
            copy._check()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateFormatError(f"the copy cannot be restored: it {_said(error)}", _REMEDY) from None
        except CoopKafkaError as error:
            raise StateFormatError(f"the copy cannot be restored: {error.what}", _REMEDY) from None
        return copy

    def _check(self) -> None:
        for name, of_one in self.keys.items():
            if not is_copied(name) or not of_one:
                raise ValueError(f"holds {name!r}, which is no key of a copy")
            if not all(isinstance(word, str) for pair in of_one.items() for word in pair):
                raise ValueError(f"holds more than text in {name!r}")
        if not {"nonce", "schema", "commit_seq"} <= self.keys["meta"].keys():
            raise ValueError("lacks part of meta")
        if (schema := self.keys["meta"]["schema"]) != SCHEMA:
            raise other_schema(schema)
        for topic in self.keys["topics"]:
            for partition in self.keys[f"stable:{topic}"]:
                where = f"{topic}:{partition}"
                Progress.parse_whole(where, self.keys[f"segments:{where}"], self.keys.get(f"ics:{where}"))


def is_copied(name: str) -> bool:
    """Whether a key is part of a copy; it is named by what follows the group."""
    return name.split(":", 1)[0] in KINDS


def _said(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"is not JSON ({error})"
        case KeyError():
            return f"lacks {error}"
        case ValueError():
            return str(error)
        case _:
            return f"has another form ({error})"
