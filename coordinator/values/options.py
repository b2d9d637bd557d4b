"""Options as fields of settings: a field's declaration names the option, and parses the text that a user wrote for it.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings:
        session_ms: int = option("session.timeout.ms", Integer(1_000, 1_800_000), "45000")
        max_lead_ms: int | None = optional("max.lane.lead", Duration(DAY_MS))

`Settings()` has the defaults; `option_fields(Settings)` are its options. An invalid text raises an error that names
option, value, limit and remedy.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from coordinator.errors import InvalidOptionError
from coordinator.errors.quoting import NOT_SHOWN, may_hold_secret, quoted, shown
from coordinator.values.option_kinds import OptionKind

CHARACTERS = 1_000_000
"""Most characters of a value, unless its option allows other: offsets of 40,000 partitions, parsed within a second."""

T = TypeVar("T")
_OPTION = "option"


def key_of(name: str) -> str:
    """A user's spelling of a name, as names are compared: without case, dots and underscores.

    A keyword argument of Python cannot hold a dot. Kafka's own names keep theirs.
    """
    lower = name.lower()
    return lower if lower.startswith("kafka.") else lower.replace(".", "").replace("_", "")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """An option: its name, its kind of value, and its default as a user would write it."""

    name: str
    kind: OptionKind[T]
    default: str | None = None
    secret: bool = False  # no message shows its value
    hidden: bool = False  # `repr` of the settings shows no value
    most: int = CHARACTERS

    @property
    def key(self) -> str:
        """See `key_of`."""
        return key_of(self.name)

    def parse(self, text: str) -> T:
        """The value of a text; raises `InvalidOptionError`."""
        check_length(self.name, text, self.kind.limit, self.most)
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise invalid(self.name, text, str(error), self.kind.limit, secret=self.secret) from None


class _More(TypedDict, total=False):
    secret: bool
    hidden: bool
    most: int


def option(name: str, kind: OptionKind[T], default: str, **more: Unpack[_More]) -> T:
    """A field with an option that has a default text."""
    return _field(Option(name, kind, default, **more), kind.parse(default))


def option_or(otherwise: T, name: str, kind: OptionKind[T], **more: Unpack[_More]) -> T:
    """A field with this value where the option is not set."""
    return _field(Option(name, kind, None, **more), otherwise)


def optional(name: str, kind: OptionKind[T], **more: Unpack[_More]) -> T | None:
    """A field that is None where the option is not set."""
    return _field(Option(name, kind, None, **more), None)


def _field(declared: Option[Any], default: T) -> T:
    in_repr = not (declared.secret or declared.hidden)
    return dataclasses.field(default_factory=lambda: default, metadata={_OPTION: declared}, repr=in_repr)


def option_fields(of: type[Any]) -> dict[str, Option[Any]]:
    """The options of a class of settings, by the names of its fields."""
    return {field.name: field.metadata[_OPTION] for field in dataclasses.fields(of) if _OPTION in field.metadata}


def part_of(options: Any, of: type[Any]) -> dict[str, Any]:
    """The fields of one class among these options, as arguments for another class that has them."""
    return {field.name: getattr(options, field.name) for field in dataclasses.fields(of)}


def check_length(name: str, text: str, limit: str, most: int = CHARACTERS) -> None:
    """Refuse a value that would take long to parse. The message does not repeat it."""
    if len(text) > most:
        raise InvalidOptionError(
            f"option {named(name)} has {len(text)} characters; the limit is {most}", f"set {named(name)} to {limit}"
        )


def named(name: str) -> str:
    """An option's name for a message: unchanged if it is a possible name."""
    return name if re.fullmatch(r"[\w.-]{1,100}", name) else shown(name)


def invalid(name: str, text: str, why: str, limit: str, *, secret: bool = False) -> InvalidOptionError:
    """The error for an invalid value.

    The message does not repeat a secret value. If a value may contain a secret, the message leaves out `why` too.
    """
    if not secret and may_hold_secret(text):
        secret, why = True, "it cannot be used, and may hold a password (user:password@) or a key"
    what = f"option {name} = {NOT_SHOWN if secret else quoted(text)}: {why}"
    return InvalidOptionError(what, f"set {name} to {limit}")
