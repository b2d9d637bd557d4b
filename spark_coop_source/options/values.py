"""The class of an option, and the plain kinds of value: whole numbers, switches, durations, words, text.

A kind parses the text of an option, or raises the reason why it cannot. `Option` turns that into an error with option,
value, limit and remedy. Knows no option by name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from coordinator.errors import InvalidOptionError
from coordinator.errors.quoting import NOT_SHOWN, has_control_character, may_hold_secret, quoted, shown

INT = 2**31 - 1
LONG = 2**63 - 1
CHARACTERS = 1_000_000
"""Most characters of a value, unless its kind allows less: offsets of 40,000 partitions, parsed within a second."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Kind(Protocol[T_co]):
    """A kind of option value: the parser of its text."""

    @property
    def limit(self) -> str:
        """The allowed values, as the end of the sentence "set NAME to ..."."""

    def parse(self, text: str) -> T_co:
        """The value; a `ValueError` names the fault."""


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within bounds, written as Java's `parseLong` reads it."""

    least: int = 0
    most: int = LONG

    @property
    def limit(self) -> str:
        """Its bounds."""
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, text: str) -> int:
        """The number."""
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
            raise ValueError("not a whole number")
        number = int(text)
        if not self.least <= number <= self.most:
            raise ValueError("too small" if number < self.least else "too large")
        return number


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Milliseconds since 1970; spaces around it are ignored, as Spark does."""

    limit: str = "one time in milliseconds since 1970-01-01 UTC, for example 1700000000000"

    def parse(self, text: str) -> int:
        """The time in milliseconds."""
        return Integer(0, LONG).parse(text.strip())


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false, in any case."""

    limit: str = "true or false"

    def parse(self, text: str) -> bool:
        """The truth value."""
        if text.lower() not in ("true", "false"):
            raise ValueError("neither true nor false")
        return text.lower() == "true"


@dataclass(frozen=True, slots=True)
class Word:
    """One of a few words; with `any_case`, the case does not matter."""

    words: tuple[str, ...]
    any_case: bool = True

    @property
    def limit(self) -> str:
        """The words."""
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def parse(self, text: str) -> str:
        """The word as this project spells it."""
        for word in self.words:
            if text == word or (self.any_case and text.lower() == word.lower()):
                return word
        raise ValueError("unknown word")


_UNITS_US = {"us": 1, "ms": 1_000, "s": 10**6, "m": 6 * 10**7, "min": 6 * 10**7, "h": 36 * 10**8, "d": 864 * 10**8}


@dataclass(frozen=True, slots=True)
class Duration:
    """A time span as Spark writes it: 500ms, 60s, 15m, 2h; without a unit, milliseconds."""

    most_ms: int = LONG

    @property
    def limit(self) -> str:
        """The form and the bound."""
        bound = "" if self.most_ms == LONG else f", at most {self.most_ms} ms"
        return f"a duration like 500ms, 60s, 15m or 2h (a plain number is milliseconds){bound}"

    def parse(self, text: str) -> int:
        """The span in milliseconds."""
        match = re.fullmatch(r"([0-9]{1,19})([a-z]*)", text.strip().lower())
        if match is None or (match[2] or "ms") not in _UNITS_US:
            raise ValueError("not a duration")
        milliseconds, rest_us = divmod(int(match[1]) * _UNITS_US[match[2] or "ms"], 1_000)
        if rest_us:
            raise ValueError("not a whole number of milliseconds")
        if milliseconds > self.most_ms:
            raise ValueError("too long")
        return milliseconds


@dataclass(frozen=True, slots=True)
class Text:
    """A short text on one line."""

    most: int = 1_000

    @property
    def limit(self) -> str:
        """Its length."""
        return f"at most {self.most} characters, no control characters"

    def parse(self, text: str) -> str:
        """The text itself."""
        if len(text) > self.most:
            raise ValueError(f"it has {len(text)} characters")
        if has_control_character(text):
            raise ValueError("it has a line break or a control character")
        return text


class Section(StrEnum):
    """The headings of the option table."""

    WHAT = "What is read"
    FILTER = "Which records are handed over"
    START = "Where it starts and where it ends"
    RATE = "How much a micro-batch reads"
    GROUP = "The group"
    TIMES = "Leases and Redis"
    READ = "How it is read"
    CACHE = "Fetching once on a host"
    FUNCTION = "A function inside the read"


class Where(StrEnum):
    """The queries in which an option has an effect."""

    BOTH = "stream, batch"
    STREAM = "stream"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Option(Generic[T_co]):
    """An option: its name, its kind of value, and its meaning."""

    name: str
    kind: Kind[T_co]
    section: Section
    where: Where
    meaning: str
    default: str | None = None
    default_shown: str = "none"  # for the docs, where there is no fixed default
    secret: bool = False
    most: int = CHARACTERS

    def parse(self, text: str) -> T_co:
        """The value of a text; raises `InvalidOptionError`."""
        check_length(self.name, text, self.kind.limit, self.most)
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise invalid(self.name, text, str(error), self.kind.limit, secret=self.secret) from None


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


@dataclass(frozen=True, slots=True)
class Given:
    """A user's options, by their names in lower case."""

    texts: Mapping[str, str] = field(repr=False)

    def __contains__(self, option: Option[T]) -> bool:
        return option.name.lower() in self.texts

    def get(self, option: Option[T]) -> T | None:
        """The value, the default's value, or None without either; raises `InvalidOptionError`."""
        text = self.texts.get(option.name.lower(), option.default)
        return None if text is None else option.parse(text)

    def need(self, option: Option[T]) -> T:
        """The value of an option that has a default; raises `InvalidOptionError`."""
        return option.parse(self.texts.get(option.name.lower(), option.default or ""))
