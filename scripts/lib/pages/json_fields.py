"""A field and a document of the JSON that `coop-kafka VERB --json` prints, and the fields that several verbs have.

`members[].state` is a field of each object in the list `members`. The tests compare each document that a command prints
with its table.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a document."""

    name: str  # its path
    kind: str  # text, integer, number, boolean, object; a list of them; or null
    meaning: str
    column: str = "-"  # of the verb's table; `-` if no table has it


@dataclass(frozen=True, slots=True)
class Document:
    """The JSON of one verb, or of two with the same fields."""

    verb: str
    about: str
    fields: tuple[Field, ...]


TOPIC = Field("topic", "text", "Topic.", "TOPIC")
PARTITION = Field("partition", "integer", "Number of the partition.", "PARTITION")
STABLE = Field("stable", "integer", "Stable offset: everything before it is done.", "STABLE")
HASHES = Field("hashes", "text", "Key hashes, `lo-hi`, inclusive, 16 hex digits each.", "HASHES")
END = Field("end", "integer or null", "Log end; null before a member has seen it.", "END")
END_AGE = Field("end_age_s", "number or null", "Age of the log end, or of the oldest of them.")
EPOCH = Field("epoch", "text or null", "Lane epoch; null if no member owns the range.")
EXECUTED = Field("executed", "boolean", "Whether the change was made. Without `--execute` it is false.")


def each(path: str, *fields: Field) -> tuple[Field, ...]:
    """The fields of each object in the list `path`."""
    return tuple(Field(f"{path}[].{f.name}", f.kind, f.meaning, f.column) for f in fields)


STRIKES = each(
    "strikes",
    TOPIC,
    PARTITION,
    HASHES,
    Field("offset", "integer", "Beginning of the offsets that were read in vain.", "OFFSET"),
    Field("strikes", "integer", "How often members died or hung over it.", "STRIKES"),
    Field("state", "text", "`on trial` or `parked`.", "STATE"),
    Field("at_ms", "integer", "Time of the last strike.", "AT"),
    Field("member", "text", "The member that was lost over it last.", "MEMBER"),
)
KEYS = each(
    "keys",
    TOPIC,
    PARTITION,
    Field("hash", "text", "Hash of the key, 16 hex digits.", "HASH"),
    Field("offset", "integer", "Offset of the failing record.", "OFFSET"),
    Field("state", "text", "`deferred` or `parked`.", "STATE"),
    Field("attempts", "integer", "Attempts so far.", "ATTEMPTS"),
    Field("next_try_ms", "integer or null", "No attempt before this time; null if it waits for `release`.", "NEXT TRY"),
    Field("error", "text", "Class of the last exception; empty if unknown.", "ERROR"),
    Field("message", "text", "Its message.", "MESSAGE"),
)
