"""A verb of the store: its script, keys and arguments by name, and how its reply is read. One declaration each.

    COMMIT = verb("commit", "meta leases member", "reset lanes", fields, partitions="owners segments")

`lua/commit.lua` reads `K.leases`, `K.partitions[i].owners`, `A.reset` and `A.lanes[i]`: `lua/shared/names.lua` binds
them. A key has the name that `GroupKeys` gives it, or the one before a `=`. Each item of a list has the keys that are
declared; the items of a list that is declared as "" are keys. A number travels as text: Lua has 53 bits for it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from coordinator.errors import StateFormatError
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import TopicPartition

P = ParamSpec("P")
T = TypeVar("T")

Reply = Mapping[str, Any]
"""The named fields of a script's reply: texts, and lists of texts."""


@dataclass(frozen=True, slots=True)
class Verb(Generic[T]):
    """One script, and what its caller must know of it."""

    name: str
    keys: Mapping[str, str]  # the name in the script -> the name in `GroupKeys`
    lists: Mapping[str, Mapping[str, str]]  # the name -> the keys of each item
    arguments: tuple[str, ...]
    reply: Callable[[Reply], T]

    def keys_of(self, group: GroupKeys, member: str, tp: TopicPartition | None, given: Mapping[str, Any]) -> list[str]:
        """KEYS of a call: of this member, of this partition, and of the items of each list."""
        keys = [group.maker(name)(member if name == "member" else tp) for name in self.keys.values()]
        for name, of_item in self.lists.items():
            makers = [group.maker(key) for key in of_item.values()]
            keys += [make(item) for item in given[name] for make in makers] if makers else given[name]
        return keys

    def argument(self, call: Mapping[str, str], given: Mapping[str, Any]) -> str:
        """The only one of ARGV. An argument that is None is left out: nil in the script."""
        if given.keys() != {*self.lists, *self.arguments}:
            raise TypeError(f"{self.name} takes {[*self.lists, *self.arguments]}, not {[*given]}")
        lists = [{"name": name, "keys": [*keys], "count": len(given[name])} for name, keys in self.lists.items()]
        arguments = {name: given[name] for name in self.arguments if given[name] is not None}
        asked = {"call": call, "keys": [*self.keys], "lists": lists, "arguments": arguments}
        return json.dumps(asked, ensure_ascii=False, separators=(",", ":"))


def verb(name: str, keys: str, arguments: str, reply: Callable[[Reply], T], **lists: str) -> Verb[T]:
    """Declare the verb whose script is `lua/<name>.lua`."""
    of_items = {list_name: _named(of_item) for list_name, of_item in lists.items()}
    return Verb(name, _named(keys), of_items, tuple(arguments.split()), reply)


def _named(keys: str) -> dict[str, str]:
    return {word.partition("=")[0]: word.rpartition("=")[2] for word in keys.split()}


def fields(reply: Reply) -> Reply:
    """The named fields themselves."""
    return reply


def nothing(_: Reply) -> None:
    """Read nothing."""


def number(name: str) -> Callable[[Reply], int]:
    """Reads a number."""
    return lambda reply: int(reply[name])


def truth(name: str) -> Callable[[Reply], bool]:
    """Reads a truth: "" if it is none."""
    return lambda reply: bool(reply[name])


def sound(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method that parses texts of Redis: an unreadable text is a `StateFormatError`, never a bare error."""

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise StateFormatError(f"the state of the group in Redis is damaged: {error}") from None

    return checked
