"""Finds the places that faults change by their names, and the words, conditions and statements in them. Pure.

A place is a file, or a symbol of it: `coordinator/plan/poison.py:Strike.trial_end`,
`coordinator/redis/lua/shared/leases.lua:takeable`. Words are tokens, so spaces and line breaks do not matter. Both
languages have the same kinds of tokens; there is no parser of Lua here, and none is needed.
"""

import ast
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_TOKEN = (
    r'"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|\w+|[=~!<>:]=|\*\*|//|\.\.|>>|<<|\S',
    r"#[^\n]*|",  # a comment of Python
    r"--[^\n]*|",  # and of Lua
)
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_EDGES = tuple(
    frozenset([*words.split(), ",", ":=", "=", ";"])
    for words in (
        "if elif while and or else return yield assert for lambda :",
        "if elseif while until and or else return then do local end",
    )
)
"""The words around a condition, in Python and in Lua."""


class OutOfDateError(Exception):
    """A fault does not fit the code any more: it needs another place, or other words."""


class Token(NamedTuple):
    """A word of the code."""

    text: str
    start: int
    end: int
    depth: int  # of open brackets before it
    begins: bool  # a line, outside of brackets


def tokens(text: str, *, lua: bool) -> list[Token]:
    """The tokens of a text, without comments."""
    found, depth, end = list[Token](), 0, 0
    for match in re.finditer(_TOKEN[1 + lua] + _TOKEN[0], text, re.DOTALL):
        word, start = match[0], match.start()
        if not word.startswith("--" if lua else "#"):
            begins = not depth and (not found or "\n" in text[end:start])
            end = match.end()
            found.append(Token(word, start, end, depth, begins))
            depth += (word in _OPEN) - (word in _CLOSE)
    return found


def is_lua(place: str) -> bool:
    """Whether a place is in a script of Redis."""
    return place.partition(":")[0].endswith(".lua")


def span(text: str, place: str) -> tuple[int, int]:
    """Where the symbol of a place begins and ends in its file, in whole lines; the whole file without a symbol."""
    _, _, symbol = place.partition(":")
    if not symbol:
        return 0, len(text)
    found = list(_of_lua(text, symbol) if is_lua(place) else _of_python(text, symbol))
    if len(found) != 1:
        raise OutOfDateError(f"{place} is there {len(found)} times")
    return found[0]


def _of_lua(text: str, name: str) -> list[tuple[int, int]]:
    """The functions of that name: to the `end` at the indentation of their first line."""
    head = rf"^( *)(?:local )?function {name}\("
    whole = rf"{head}(?:[^\n]*\bend$|.*?^\1end$)"
    return [match.span() for match in re.finditer(whole, text, re.MULTILINE | re.DOTALL)]


def _of_python(text: str, symbol: str) -> list[tuple[int, int]]:
    """The functions, classes or assignments of that name, in the classes and functions before its dots."""
    lines = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    nodes: list[ast.stmt] = ast.parse(text).body
    for name in symbol.split("."):
        found = [node for node in nodes if name in _names(node)]
        nodes = [inner for node in found for inner in getattr(node, "body", [])]
    return [(lines[node.lineno - 1], lines[node.end_lineno or node.lineno]) for node in found]


def _names(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


@dataclass(frozen=True)
class Code:
    """The text of one place."""

    text: str
    lua: bool

    @cached_property
    def tokens(self) -> list[Token]:
        """Its words."""
        return tokens(self.text, lua=self.lua)

    def found(self, words: str) -> range:
        """The numbers of these tokens; they must be there exactly once."""
        wanted, all_words = [t.text for t in tokens(words, lua=self.lua)], [t.text for t in self.tokens]
        starts = [i for i in range(len(all_words)) if all_words[i : i + len(wanted)] == wanted]
        if len(starts) != 1:
            raise OutOfDateError(f"{words!r} is there {len(starts)} times")
        return range(starts[0], starts[0] + len(wanted))

    def condition(self, words: str) -> tuple[int, int]:
        """The span of the condition around these words: what `if` asks, or an operand of `and` or `or`; with its `not`.

        Words at its edges, such as `if`, only help to name it.
        """
        inner = [i for i in self.found(words) if self.tokens[i].text not in _EDGES[self.lua]]
        first, last, depth = inner[0], inner[-1], min(self.tokens[i].depth for i in inner)
        while first and not self._edge(self.tokens[first - 1], self.tokens[first], depth):
            first -= 1
        while last + 1 < len(self.tokens) and not self._edge(self.tokens[last + 1], self.tokens[last + 1], depth):
            last += 1
        return self.tokens[first].start, self.tokens[last].end

    def _edge(self, token: Token, after: Token, depth: int) -> bool:
        """Whether a condition at this depth ends before or behind a token, or with the line before the one `after`."""
        around = token.depth == depth and token.text in _EDGES[self.lua] | _CLOSE
        return token.depth < depth or around or after.begins

    def statement(self, words: str) -> tuple[int, int]:
        """The span of the innermost statement that has these words, with its block, without its indentation."""
        at = self.found(words)
        starts = [*self._statements, len(self.text) + 1]
        n = bisect_right(starts, self.tokens[at[0]].start) - 1
        first, last = starts[n], max(n, bisect_right(starts, self.tokens[at[-1]].start) - 1)
        if [t.text for t in self.tokens if t.end < starts[last + 1]][-1] in (":", "then", "do"):
            column = self._column(first)
            while last + 2 < len(starts) and self._column(starts[last + 1]) > column:
                last += 1
            last += self.lua  # its `end`
        return first + self._column(first), starts[last + 1] - 1

    @cached_property
    def _statements(self) -> list[int]:
        """Where the lines begin that begin with a statement."""
        return [self.text.rfind("\n", 0, token.start) + 1 for token in self.tokens if token.begins]

    def _column(self, line: int) -> int:
        return len(self.text[line:]) - len(self.text[line:].lstrip(" "))

    @property
    def body(self) -> tuple[int, int]:
        """Where the body of this function begins, and its indentation."""
        begin = self._statements[1]
        return begin, self._column(begin)
