"""Options as fields of settings: a field's declaration names the option, and parses the text that a user wrote for it.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings:
        session_ms: int = option("sessionTimeout", Duration(1_800_000, 1_000), "45s")
        max_lead_ms: int | None = optional("maxLaneLead", Duration(DAY_MS))

`Settings()` has the defaults; `option_fields(Settings)` are its options. An invalid text raises an error that names
option, value, limit and remedy.
"""

import dataclasses
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from coordinator.errors import ConflictingOptionsError, InvalidOptionError
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
    """An option: its name, its kind of value, and its default as a user would write it.

    `also` holds its other names, as Kafka and the KIPs spell it, each with its kind of value if that is another one.
    """

    name: str
    kind: OptionKind[T]
    default: str | None = None
    secret: bool = False  # no message shows its value
    hidden: bool = False  # `repr` of the settings shows no value
    most: int = CHARACTERS
    also: Mapping[str, OptionKind[T] | None] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """See `key_of`."""
        return key_of(self.name)

    def kind_of(self, name: str) -> OptionKind[T]:
        """The kind of value under one of its names."""
        return self.also.get(name) or self.kind

    def names_in(self, keys: Container[str]) -> list[str]:
        """Those of its names that a user set; `keys`: those of all names that the user set."""
        return [name for name in (self.name, *self.also) if key_of(name) in keys]

    def parse(self, text: str, name: str | None = None) -> T:
        """The value of a text, under one of the option's names; raises `InvalidOptionError`."""
        name = name or self.name
        kind = self.kind_of(name)
        check_length(name, text, kind.limit, self.most)
        try:
            return kind.parse(text)
        except ValueError as error:
            raise invalid(name, text, str(error), kind.limit, secret=self.secret) from None

    def value_in(self, texts: Mapping[str, str]) -> T:
        """The value that a user set. `texts`: by the keys of their names, at least one of this option's.

        Raises `InvalidOptionError`, and `ConflictingOptionsError` for two names with different values.
        """
        found = {name: texts[key_of(name)] for name in self.names_in(texts)}
        stripped = {
            name: text.strip() if name.startswith("kafka.") else text for name, text in found.items()
        }  # as Java
        values = {name: self.parse(text, name) for name, text in stripped.items()}
        first, *others = values
        for other in others:
            if values[other] != values[first]:
                raise ConflictingOptionsError(
                    f"options {first} ({shown(stripped[first])}) and {other} ({shown(stripped[other])}) differ",
                    "remove one of them: they mean the same",
                )
        return values[first]


class _More(TypedDict, total=False):
    secret: bool
    hidden: bool
    most: int
    also: Mapping[str, OptionKind[Any] | None]


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
    return {each.name: each.metadata[_OPTION] for each in dataclasses.fields(of) if _OPTION in each.metadata}


def part_of(options: Any, of: type[Any]) -> dict[str, Any]:
    """The fields of one class among these options, as arguments for another class that has them."""
    return {each.name: getattr(options, each.name) for each in dataclasses.fields(of)}


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
