"""Foreign texts in messages: escaped, bounded, without secrets. Pure."""

import re
import unicodedata

MESSAGE = 4_000
"""The most characters of a message, and of its remedy."""

VALUE = 200
"""The most characters of a value inside a message."""

NOT_SHOWN = "(not shown)"

_BREAKING = ("Cc", "Cs", "Zl", "Zp")  # control characters, half surrogates, line and paragraph separators
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # show text in another order
_SECRET = re.compile(r"password *[=\"]|-----BEGIN", re.IGNORECASE)


def bounded(text: str, most: int = MESSAGE) -> str:
    """The text, or its head and its tail with its length between them, `most` characters in all.

    bounded("a" * 5_000_000) == "aaa... (5000000 characters) ...aaa"
    """
    if len(text) <= most:
        return text
    middle = f"... ({len(text)} characters) ..."
    tail = (most - len(middle)) // 4
    return f"{text[: most - len(middle) - tail]}{middle}{text[len(text) - tail :]}"


def quoted(text: str) -> str:
    """The text in quotes, with escaped control characters; of a long text only its head and its length."""
    if len(text) <= VALUE:
        return repr(text)
    return f"{text[:VALUE]!r}... ({len(text)} characters)"


def shown(text: str) -> str:
    """`quoted`, or a note that the text is not shown because it may hold a secret."""
    return NOT_SHOWN if may_hold_secret(text) else quoted(text)


def has_control_character(text: str) -> bool:
    """Whether the text holds a character that breaks a line or changes how a terminal shows the rest."""
    if text.isascii():
        return not text.isprintable()
    return any(unicodedata.category(c) in _BREAKING or c in _TURNING for c in text)


def may_hold_secret(text: str) -> bool:
    """Whether the text looks like a url with a password, a login, or a key.

    A password may hold any character: so a colon anywhere before an @ is enough.
    """
    return -1 < text.find(":") < text.rfind("@") or _SECRET.search(text) is not None
