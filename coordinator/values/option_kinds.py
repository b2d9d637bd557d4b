"""The plain kinds of an option's value: whole numbers, switches, durations, words, text.

A kind parses the text of an option, or raises the reason why it cannot. Knows no option.
"""

import re
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from coordinator.errors.quoting import has_control_character

INT = 2**31 - 1
LONG = 2**63 - 1
DAY_MS = 86_400_000

T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W", bound=str)


class OptionKind(Protocol[T_co]):
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
    unit: int = 1  # that the value counts

    @property
    def limit(self) -> str:
        """Its bounds."""
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, text: str) -> int:
        """The number, in the smallest unit."""
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
            raise ValueError("not a whole number")
        number = int(text)
        if not self.least <= number <= self.most:
            raise ValueError("too small" if number < self.least else "too large")
        return number * self.unit


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
class Word(Generic[W]):
    """One of a few words; with `any_case`, the case does not matter."""

    words: tuple[W, ...]
    any_case: bool = True

    @property
    def limit(self) -> str:
        """The words."""
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def parse(self, text: str) -> W:
        """The word as this project spells it."""
        for word in self.words:
            if text == word or (self.any_case and text.lower() == word.lower()):
                return word
        raise ValueError("unknown word")


_READABLE, _MANY_DAYS = 6, 1_000  # characters of a limit, and days beside which hours do not count
_UNITS_OF_SPANS = {"d": DAY_MS, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_UNITS_US = {"us": 1, "ms": 1_000, "s": 10**6, "m": 6 * 10**7, "min": 6 * 10**7, "h": 36 * 10**8, "d": 864 * 10**8}


@dataclass(frozen=True, slots=True)
class Duration:
    """A time span as Spark writes it: 500ms, 60s, 15m, 2h; without a unit, milliseconds."""

    most_ms: int = LONG
    least_ms: int = 0

    @property
    def limit(self) -> str:
        """The form and the bounds."""
        bound = "" if self.most_ms == LONG else f", at most {_rounded(self.most_ms)}"
        bound = f", at least {in_units(self.least_ms)}{bound}" if self.least_ms else bound
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
        if milliseconds < self.least_ms:
            raise ValueError("too short")
        return milliseconds


def in_units(milliseconds: int) -> str:
    """A time span as a user would write it: 1500ms, 45s, 1d."""
    unit = next(unit for unit, length in _UNITS_OF_SPANS.items() if milliseconds % length == 0)
    return f"{milliseconds // _UNITS_OF_SPANS[unit]}{unit}"


def _rounded(milliseconds: int) -> str:
    """A limit for people: 5m, and of one that has many digits the days and hours, rounded down."""
    if len(exact := in_units(milliseconds)) <= _READABLE:
        return exact
    days, rest = divmod(milliseconds, DAY_MS)
    return f"{days}d {rest // 3_600_000}h" if days < _MANY_DAYS else f"{days}d"


_UNITS_OF_BYTES: dict[str, int] = {"": 1, "b": 1} | {
    unit + rest: 1 << (10 * power) for power, unit in enumerate("kmgt", 1) for rest in ("", "b", "ib")
}


_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes as Spark writes it: 64KiB, 200MiB, 1g; each unit is 1,024 times the one before."""

    least: int = 0
    most: int = LONG

    @property
    def limit(self) -> str:
        """The form and the bounds."""
        bound = f", at least {self.least} bytes" if self.least else ""
        if self.most != LONG:
            bound += (
                f", less than {more >> 30}GiB"
                if (more := self.most + 1) % _GIB == 0
                else f", at most {self.most} bytes"
            )
        return f"a size like 64KiB, 200MiB or 1GiB (a plain number is bytes){bound}"

    def parse(self, text: str) -> int:
        """The number of bytes."""
        match = re.fullmatch(r"([0-9]{1,19})([a-z]*)", text.strip().lower())
        if match is None or match[2] not in _UNITS_OF_BYTES:
            raise ValueError("not a size")
        number = int(match[1]) * _UNITS_OF_BYTES[match[2]]
        if not self.least <= number <= self.most:
            raise ValueError("too small" if number < self.least else "too large")
        return number


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
