"""What people and programs see, field by field. A dataclass is one object of JSON, a row of a table, or both.

    lag: Annotated[int | None, Means("Lag in offsets.", "LAG")]    docs/command.md, and the column of the table

A name with a unit ends with it: `_ms` are milliseconds, `_s` seconds. The page, the JSON and plain tables are made from
such classes, so a field is spelled once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from coordinator.values.ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class Means:
    """The meaning of a field, as a sentence, and the column of the verb's table; `-` if no table has it."""

    meaning: str
    column: str = "-"


class Inclusive(NamedTuple):
    """Offsets, both ends included: an array for programs, `45-50` or `45` for people."""

    first: int
    last: int

    @classmethod
    def of(cls, offsets: OffsetRange) -> "Inclusive":
        """The interval of a half-open range."""
        return cls(offsets.start, offsets.until - 1)

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


GroupField = Annotated[str, Means("Name of the group.")]
MemberId = Annotated[str, Means("Id of the member.", "MEMBER")]
MemberState = Annotated[str, Means("[State](operations.md#describe) of the member.", "STATE")]
RecoveringMs = Annotated[int, Means("Time left to recover from a loss of state; 0 if it does not recover.")]
GroupLag = Annotated[int | None, Means("Lag in offsets, of partitions with a known end offset.")]
DeferredKeys = Annotated[int, Means("Failing keys that are tried again.")]
ParkedKeys = Annotated[int, Means("Quarantined keys: they wait for `release`.")]
TopicField = Annotated[str, Means("Topic.", "TOPIC")]
PartitionNumber = Annotated[int, Means("Number of the partition.", "PARTITION")]
StableOffset = Annotated[int, Means("Stable offset: everything before it is processed.", "STABLE")]
HashesText = Annotated[str, Means("Key hashes, `lo-hi`, inclusive, 16 hex digits each.", "HASHES")]
HashOfKey = Annotated[str, Means("Hash of the key, 16 hex digits.", "KEY HASH")]
Clipped = Annotated[bool, Means("Whether it is only the nearest offset that the log has.", "the star")]
LogEnd = Annotated[int | None, Means("End offset; null before a member has seen it.", "END")]
EndAge = Annotated[float | None, Means("Age of the end offset, or of the oldest of them.")]
LaneEpoch = Annotated[str | None, Means("Lane epoch; null if no member owns the range.")]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a document."""

    name: str  # its path: `members[].state` is a field of each object in the list `members`
    kind: str  # text, integer, number, boolean, object; a list of them; or null
    meaning: str
    column: str = "-"


def fields_of(shown: type, path: str = "") -> Iterator[Field]:
    """The fields of a class, and those of the objects in its lists."""
    for name, hint in get_type_hints(shown, include_extras=True).items():
        kind, notes = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
        yield from (Field(f"{path}{name}", _kind(kind), note.meaning, note.column) for note in notes)
        if rows := _rows(kind):
            yield from fields_of(rows, f"{path}{name}[].")


def columns_of(shown: type) -> dict[str, str]:
    """The columns of its table, each with the first of its fields. Words in small letters are no columns."""
    columns: dict[str, str] = {}
    for field in fields_of(shown):
        if field.column.isupper() and "[" not in field.name:
            columns.setdefault(field.column, field.name)
    return columns


_UNIONS = {Union, UnionType}
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "text"}


def _kind(hint: Any) -> str:
    if get_origin(hint) in _UNIONS:
        return " or ".join("null" if one is NoneType else _kind(one) for one in get_args(hint))
    if hint is Inclusive:
        return "list of integer"
    if get_origin(hint) is tuple:
        return f"list of {_kind(get_args(hint)[0])}"
    return next((word for kind, word in _KINDS.items() if isinstance(hint, type) and issubclass(hint, kind)), "object")


def _rows(hint: Any) -> type[Any] | None:
    """The class of the objects in a list; None for anything else."""
    lists = [one for one in (get_args(hint) if get_origin(hint) in _UNIONS else [hint]) if get_origin(one) is tuple]
    rows: list[type[Any]] = [get_args(one)[0] for one in lists]
    return next(filter(is_dataclass, rows), None)
