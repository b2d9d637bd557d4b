"""The value of `sasl.jaas.config`: one login module with its options, in Java's syntax.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";

Accepts the syntax of Java's `StreamTokenizer`: words, quoted text with its escapes, comments. Messages never repeat
the text, because it contains a password.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<quoted>"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
      | (?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\xa0-\U0010ffff-]*)
      | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")

LIMIT = (
    "one line of the form org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="..." password="..."; (ScramLoginModule for SCRAM), with \\ before each " and \\ in a value'
)


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module: its class without the package, and its options."""

    name: str
    options: dict[str, str] = field(repr=False)


class _Token(NamedTuple):
    mark: bool  # an unquoted = or ;
    text: str


def parse(text: str) -> LoginModule:
    """The login module that the text configures; a `ValueError` names the fault."""
    tokens = list(_tokens(text))
    if not tokens or tokens[0].mark:
        raise ValueError("it names no login module")
    if len(tokens) == 1 or tokens[1].text.lower() not in _FLAGS:
        raise ValueError(f"the login module is not followed by one of {', '.join(_FLAGS)}")
    if _END not in tokens:
        raise ValueError("it does not end with a semicolon")
    end = tokens.index(_END)
    if tokens[end + 1 :]:
        raise ValueError("something follows the semicolon: it must hold one login module")
    return LoginModule(tokens[0].text.rpartition(".")[2], _options(tokens[2:end]))


_END = _Token(mark=True, text=";")


def _options(tokens: list[_Token]) -> dict[str, str]:
    found: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        triple = tokens[at : at + 3]
        if [token.mark for token in triple] != [False, True, False]:
            raise ValueError('an option of the login module is not of the form name="value"')
        found[triple[0].text] = triple[2].text
    return found


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError("a value must be put in quotes, or a quote is missing")
        at = match.end()
        if match["quoted"] is not None:
            yield _Token(mark=False, text=_ESCAPE.sub(_unescaped, match["quoted"][1:-1]))
        elif match["space"] is None:
            yield _Token(mark=match["mark"] is not None, text=match[0])


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _CONTROL.get(code, code)
