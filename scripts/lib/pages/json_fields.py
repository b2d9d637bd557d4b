"""A document of the JSON that `coop-kafka VERB --json` prints. Its fields are those of classes, and a few others.

The tests compare each document that a command prints with its table.
"""

from dataclasses import dataclass

from coordinator.tools.fields import Field, fields_of
from coordinator.tools.operations.waiting_views import FailingKey, StrikeView

EXECUTED = Field("executed", "boolean", "Whether the change was made. Without `--execute` it is false.")


@dataclass(frozen=True, slots=True)
class Document:
    """The JSON of one verb, or of two with the same fields."""

    verb: str
    about: str
    fields: tuple[Field, ...]


def each(path: str, shown: type, *more: Field) -> tuple[Field, ...]:
    """The fields of each object in the list `path`, whose class is `shown`; and more of them."""
    others = (Field(f"{path}[].{f.name}", f.kind, f.meaning, f.column) for f in more)
    return (*fields_of(shown, f"{path}[]."), *others)


STRIKES, KEYS = each("strikes", StrikeView), each("keys", FailingKey)
