"""The fields of a class: paths, types and columns, as docs/command.md and the tables have them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from coordinator.tools.fields import Field, Means, TopicField, columns_of, fields_of


class Colour(StrEnum):
    RED = "red"


@dataclass
class Row:
    topic: TopicField
    lag: Annotated[int | None, Means("Its lag.", "LAG")]
    at_least: Annotated[bool, Means("A lower bound.", "LAG")]
    colour: Annotated[Colour, Means("Its colour.", "the star")]


@dataclass
class Sheet:
    age_s: Annotated[float, Means("Its age.")]
    rows: tuple[Row, ...]
    late: Annotated[tuple[Row, ...] | None, Means("Late ones.")] = None
    words: Annotated[tuple[str, ...], Means("Words.", "WORDS")] = ()
    policy: Annotated[Mapping[str, str] | None, Means("A policy.")] = None


ROW = [
    ("topic", "text", "Topic.", "TOPIC"),
    ("lag", "integer or null", "Its lag.", "LAG"),
    ("at_least", "boolean", "A lower bound.", "LAG"),
    ("colour", "text", "Its colour.", "the star"),
]


def test_fields_have_their_path_and_their_type() -> None:
    assert [*fields_of(Row, "rows[].")] == [Field(f"rows[].{name}", *rest) for name, *rest in ROW]


def test_objects_of_a_list_are_listed_and_a_list_with_a_meaning_too() -> None:
    assert [*fields_of(Sheet)] == [
        Field("age_s", "number", "Its age."),
        *fields_of(Row, "rows[]."),
        Field("late", "list of object or null", "Late ones."),
        *fields_of(Row, "late[]."),
        Field("words", "list of text", "Words.", "WORDS"),
        Field("policy", "object or null", "A policy."),
    ]


def test_a_column_shows_its_first_field_and_is_of_the_class_itself() -> None:
    assert columns_of(Row) == {"TOPIC": "topic", "LAG": "lag"}
    assert columns_of(Sheet) == {"WORDS": "words"}
