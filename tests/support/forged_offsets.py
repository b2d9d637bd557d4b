"""Damages of an offset's JSON: each makes another text of a parsed offset, and has the test case's name."""

from collections.abc import Callable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE

Json = dict[str, Any]
Damage = Callable[[Json], object]
LOWER, UPPER = map(str, cuts(2))


def header(**fields: object) -> Damage:
    return lambda body: body["#"].update(fields)


def named(text: object) -> Damage:
    """Another id for the topic of the group."""
    return lambda body: body["#"]["topics"].update(dict.fromkeys(body["#"]["topics"], text))


def leader(partition: str, epoch: object) -> Damage:
    return lambda body: body["#"].update(epochs={topic_of(body): {partition: epoch}})


def topic_of(body: Json) -> str:
    return next(name for name in body if name != "#")


def lanes(texts: Json) -> Damage:
    return lambda body: body[topic_of(body)].update({"0": texts})


def lane(text: str) -> Damage:
    """All hashes in one lane; {} is its epoch."""
    return lambda body: lanes({str(WHOLE): text.format(epoch_of(body))})(body)


def epoch_of(body: Json) -> str:
    return str(next(iter(body[topic_of(body)]["0"].values()))).partition("@")[0]


def epoch(text: str) -> Damage:
    return lanes({str(WHOLE): f"{text}@5"})


def partition(number: str) -> Damage:
    return lambda body: body[topic_of(body)].update({number: body[topic_of(body)]["0"]})


def topic(name: str) -> Damage:
    def damage(body: Json) -> None:
        body[name] = body.pop(topic_of(body))
        body["#"]["topics"] = {name: "id-1"}

    return damage


def unnamed_topic(body: Json) -> None:
    body["#"]["topics"] = {}


def standalone(body: Json) -> None:
    del body["#"]["group"], body["#"]["member"]


def halves(lower: str, upper: str) -> Damage:
    """Two lanes; {} is their epoch."""
    return lambda body: lanes({LOWER: lower.format(epoch_of(body)), UPPER: upper.format(epoch_of(body))})(body)


def both(first: Damage, second: Damage) -> Damage:
    return lambda body: (first(body), second(body))


def case(sentence: str, *what: object) -> ParameterSet:
    return pytest.param(*what, id=sentence)
