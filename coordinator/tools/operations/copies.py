"""A copy of a group's state in a file: positions, policies and strikes, nothing of members. Needs Redis only.

{"coop-kafka": 1, "group": "orders", "taken_ms": 1763748000000, "keys": {"meta": {...}, "segments:orders:0": {...}}}
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from coordinator.errors import StateFormatError
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import SCHEMA, check_schema
from coordinator.redis.group_texts import RedisHashes
from coordinator.redis.operator import OperatorVerbs
from coordinator.tools.operations.copied_state import LAST_MS, check, is_copied
from coordinator.tools.operations.refusals import operator, refusal, refused
from coordinator.values import verdicts

_FORM = "coop-kafka"
_VERSION = 1
_REMEDY = "pass a file that coop-kafka backup wrote for this group"
_LONGEST = 400  # characters of an error


@dataclass(frozen=True, slots=True)
class GroupCopy:
    """The state of one group at one moment."""

    group: str
    taken_ms: int
    keys: RedisHashes

    @property
    def text(self) -> str:
        """The copy as JSON."""
        keys = {name: dict(sorted(fields.items())) for name, fields in sorted(self.keys.items())}
        return json.dumps({_FORM: _VERSION, "group": self.group, "taken_ms": self.taken_ms, "keys": keys}, indent=1)

    @classmethod
    def parse(cls, text: str | bytes, group: str) -> Self:
        """The copy in a file. Raises `StateFormatError` if it is damaged, or of another group."""
        body = _json(text)
        if not (isinstance(body, dict) and isinstance(body.get("keys"), dict)):
            raise _refused("it is not a JSON object with 'coop-kafka', 'group', 'taken_ms' and 'keys'")
        if type(version := body.get(_FORM)) is not int or version != _VERSION:
            raise _refused(f"it is of version {_shown(version)}, this coop-kafka reads {_VERSION}")
        if body.get("group") != group:
            raise _refused(f"it is of group {_shown(body.get('group'))}, not {group!r}")
        taken_ms = body.get("taken_ms")
        if type(taken_ms) is not int or not 0 <= taken_ms <= LAST_MS:
            raise _refused(f"'taken_ms' is {_shown(taken_ms)}, not a time in ms from 1970 to the year 9999")
        copy = cls(group, taken_ms, body["keys"])
        copy.check()
        return copy

    def check(self) -> None:
        """Raise `StateFormatError` unless members and views can read the group that this copy holds."""
        meta = self.keys.get("meta")
        if isinstance(meta, dict) and (schema := meta.get("schema", SCHEMA)) != SCHEMA:
            what = f"'meta': schema is {_shown(schema)}, this coop-kafka reads schema {SCHEMA!r}"
            raise _refused(what, "restore it with the coop-kafka that wrote it, or a newer one")
        try:
            check(self.keys)
        except StateFormatError as error:
            raise _refused(error.what) from None


def backup(client: RedisClient, group: str) -> GroupCopy:
    """A copy of the group at one moment, while members work or not. Raises `UnknownGroupError`."""
    store = OperatorVerbs.of_group(client, group)
    keys = store.copied(is_copied)
    if "meta" not in keys:
        raise refusal(group, verdicts.Absent())
    check_schema(keys["meta"])
    return GroupCopy(group, store.now_ms(), keys)


def restore(client: RedisClient, copy: GroupCopy) -> None:
    """Replace the group's whole state by the copy.

    Raises `GroupBusyError` while a member's lease runs, and `StateFormatError` for a damaged copy. The group then
    stays as it is. The next query finds a loss of state: it raises positions to those that Kafka's group of that name
    and its checkpoint prove.
    """
    copy.check()
    with refused(copy.group):
        OperatorVerbs.of_group(client, copy.group).restore(copy.keys, f"by {operator()}: a copy of {copy.taken_ms} ms")


def _json(text: str | bytes) -> object:
    try:
        return json.loads(text if isinstance(text, str) else text.decode(), object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise _refused("it is not UTF-8") from None
    except RecursionError:
        raise _refused("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _refused(f"it is not JSON ({error})") from None
    except ValueError as error:  # of `_once`
        raise _refused(f"it is not a copy ({error})") from None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len({*names}) < len(names):
        raise ValueError(f"it names {next(name for name in names if names.count(name) > 1)!r} twice")
    return dict(pairs)


def _shown(value: object) -> str:
    """A value for an error; only the kind of a nested value."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)


def _refused(what: str, remedy: str = _REMEDY) -> StateFormatError:
    return StateFormatError(f"the copy cannot be restored: {what[:_LONGEST]}", remedy)
