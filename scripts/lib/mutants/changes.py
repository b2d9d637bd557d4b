"""The changes that faults make: few, small, the same for Python and Lua. They name words, and quote no lines. Pure."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from mutants.places import Code, OutOfDateError, is_lua, span


@dataclass(frozen=True, slots=True)
class Change(ABC):
    """A change at a place. Its words must be there exactly once, or it is out of date."""

    place: str
    words: str

    @property
    def path(self) -> str:
        """The file."""
        return self.place.partition(":")[0]

    def of(self, text: str) -> str:
        """The text of the file with the change; raises `OutOfDateError`."""
        begin, end = span(text, self.place)
        try:
            first, last, new = self._replaced(Code(text[begin:end], is_lua(self.place)))
        except OutOfDateError as error:
            raise OutOfDateError(f"{self.place}: {error}") from None
        return text[: begin + first] + new + text[begin + last :]

    @abstractmethod
    def _replaced(self, code: Code) -> tuple[int, int, str]:
        """What becomes another text, and that text."""


class Without(Change):
    """The statement that has these words is gone."""

    def _replaced(self, code: Code) -> tuple[int, int, str]:
        return *code.statement(self.words), "" if code.lua else "pass"


class Holds(Change):
    """The condition that has these words always holds."""

    def _replaced(self, code: Code) -> tuple[int, int, str]:
        return *code.condition(self.words), "true" if code.lua else "True"


class Fails(Change):
    """The condition that has these words never holds."""

    def _replaced(self, code: Code) -> tuple[int, int, str]:
        return *code.condition(self.words), "false" if code.lua else "False"


@dataclass(frozen=True, slots=True)
class Put(Change):
    """These words become others."""

    new: str

    def _replaced(self, code: Code) -> tuple[int, int, str]:
        at = code.found(self.words)
        return code.tokens[at[0]].start, code.tokens[at[-1]].end, self.new


class Begins(Change):
    """The function begins with these words, a statement."""

    def _replaced(self, code: Code) -> tuple[int, int, str]:
        begin, column = code.body
        first = f"do {self.words} end" if code.lua else self.words
        return begin, begin, f"{' ' * column}{first}\n"
