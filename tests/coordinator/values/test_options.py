"""A field of settings that declares an option: its default, its text, and what `repr` shows of it."""

from dataclasses import dataclass

import pytest

from coordinator.errors import InvalidOptionError
from coordinator.values.option_kinds import Integer, Word
from coordinator.values.options import option, option_fields, option_or, optional


@dataclass(frozen=True, slots=True)
class Ports:
    limit: str = "a number of ports"

    def parse(self, text: str) -> range:
        return range(int(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    most: int = option("the.most", Integer(1, 10, unit=60), "2")
    least: int | None = optional("the.least", Integer(1, 10))
    ports: range = option_or(range(1), "ports", Ports())
    password: str | None = optional("password", Word(("a", "b")), secret=True)
    keys: str | None = optional("keys", Word(("a", "b")), hidden=True)
    plain: int = 0


def test_a_setting_has_the_value_of_its_default_text() -> None:
    assert Settings() == Settings(most=120, least=None, ports=range(1), password=None, keys=None, plain=0)


def test_the_options_of_settings_are_found_by_field() -> None:
    found = option_fields(Settings)
    assert [*found] == ["most", "least", "ports", "password", "keys"]
    assert (found["most"].name, found["most"].parse("10")) == ("the.most", 600)


def test_a_refused_text_is_named_with_its_limit() -> None:
    with pytest.raises(InvalidOptionError, match=r"option the\.most = '11': too large.*from 1 to 10"):
        option_fields(Settings)["most"].parse("11")


def test_no_text_shows_a_secret() -> None:
    assert "hunter2" not in repr(Settings(password="hunter2", keys="hunter2"))
    with pytest.raises(InvalidOptionError) as refused:
        option_fields(Settings)["password"].parse("hunter2")
    assert "hunter2" not in str(refused.value)


def test_a_text_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(InvalidOptionError, match="has 1000001 characters"):
        option_fields(Settings)["most"].parse("1" * 1_000_001)
