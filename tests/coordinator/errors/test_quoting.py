"""Messages repeat texts of users: bounded, escaped, without secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors.quoting import VALUE, bounded, has_control_character, may_hold_secret, quoted


@given(st.text(max_size=400), st.integers(60, 300))
def test_a_bounded_text_is_the_text_or_exactly_as_long_as_it_may_be(text: str, most: int) -> None:
    short = bounded(text, most)
    assert short == text if len(text) <= most else len(short) == most
    assert bounded(short, most) == short


def test_a_long_text_keeps_its_head_its_length_and_its_tail() -> None:
    assert bounded("a" * 60 + "b" * 40, 60) == "a" * 27 + "... (100 characters) ..." + "b" * 9


def test_a_quoted_text_is_escaped_and_bounded() -> None:
    assert quoted("\x1b]0;x\x07") == r"'\x1b]0;x\x07'"
    assert quoted("x" * 1_000) == f"'{'x' * VALUE}'... (1000 characters)"


@pytest.mark.parametrize("text", ["\x1b[31m", "a\nb", "\x9b31m", "\u202eabc", "\u2028", "\ud800", "\x00", "\x7f"])
def test_a_character_that_changes_a_terminal_or_breaks_a_line_is_a_control_character(text: str) -> None:
    assert has_control_character(text)


@pytest.mark.parametrize("text", ["", "orders of today", "Größe €😀", "👩\u200d🔬", "{a:b}*?"])
def test_ordinary_text_has_no_control_character(text: str) -> None:
    assert not has_control_character(text)


@pytest.mark.parametrize(
    "text",
    [
        "u:secret@host:9092",
        "a:1,redis://:secret@h",
        "redis://u:a:b@h",
        "u:a,b@h:9092",
        'u:a"b c@h:9092',
        'x required username="u" password="p";',
        "Password = p",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_a_text_with_a_login_or_a_key_is_known(text: str) -> None:
    assert may_hold_secret(text)


@pytest.mark.parametrize("text", ["a:9092,b:9092", "team@host:9092", "password-resets", '{"orders":{"0":1}}'])
def test_other_texts_may_be_shown(text: str) -> None:
    assert not may_hold_secret(text)
