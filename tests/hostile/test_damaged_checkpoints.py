"""Offsets that a checkpoint should not hold: each is refused by name, whatever somebody wrote into the file.

`test_stream_offset` has offsets of other sources and the plainest damage; these are the ways to be nearly right.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import CheckpointMismatchError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.key_hash import cuts

LOWER, UPPER = (str(h) for h in cuts(2))
GOOD: dict[str, Any] = {
    "#": {"v": 2, "group": "g", "member": "m-1", "reset": 7, "topics": {"orders": "id-1"}},
    "orders": {"0": {LOWER: "ab.1@120-160,171-240", UPPER: "ab.2@241"}},
}
Damage = Callable[[dict[str, Any]], object]


def header(**fields: object) -> Damage:
    """The header with other fields; None takes one out."""

    def damage(body: dict[str, Any]) -> None:
        body["#"].update(fields)
        body["#"] = {k: v for k, v in body["#"].items() if v != "(gone)"}

    return damage


def lane(text: object) -> Damage:
    return lambda body: body["orders"]["0"].update({LOWER: text})


def hashes(name: str) -> Damage:
    return lambda body: body["orders"].update({"0": {name: "ab.1@5"}})


def lane_too(name: str) -> Damage:
    return lambda body: body["orders"]["0"].update({name: "ab.3@1"})


def partition(name: str) -> Damage:
    return lambda body: body["orders"].update({name: {LOWER: "ab.1@5"}})


def test_the_sample_without_damage_is_valid() -> None:
    assert StreamOffset.from_json(GOOD).to_json() == GOOD


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda body: body.pop("#"), id="no header"),
        pytest.param(lambda body: body.update({"#": None}), id="a header that is nothing"),
        pytest.param(lambda body: body.update({"#": []}), id="a header that is a list"),
        pytest.param(lambda body: body.update({"#": "v1"}), id="a header that is text"),
        pytest.param(header(v="(gone)"), id="no version"),
        pytest.param(header(v="1"), id="a version that is text"),
        pytest.param(header(v=0), id="version 0"),
        pytest.param(header(v=None), id="a version that is nothing"),
        pytest.param(header(v=[1]), id="a version that is a list"),
        pytest.param(header(v=10**30), id="a version of the far future"),
        pytest.param(header(group=["g"]), id="a group that is a list"),
        pytest.param(header(group={"name": "g"}), id="a group that is an object"),
        pytest.param(header(group=True), id="a group that is a truth value"),
        pytest.param(header(member=3), id="a member that is a number"),
        pytest.param(header(member=["m-1"]), id="a member that is a list"),
        pytest.param(header(reset="(gone)"), id="no reset epoch"),
        pytest.param(header(reset=None), id="a reset epoch that is nothing"),
        pytest.param(header(reset="7"), id="a reset epoch that is text"),
        pytest.param(header(reset=7.0), id="a reset epoch with a fraction"),
        pytest.param(header(reset=[7]), id="a reset epoch that is a list"),
        pytest.param(header(reset=False), id="a reset epoch that is a truth value"),
        pytest.param(header(topics=None), id="topic ids that are nothing"),
        pytest.param(header(topics=[]), id="topic ids in a list"),
        pytest.param(header(topics="id-1"), id="one topic id for all"),
        pytest.param(header(topics={"orders": 5}), id="a topic id that is a number"),
        pytest.param(header(topics={"orders": ["id-1"]}), id="a topic id that is a list"),
        pytest.param(lambda body: body.update({"orders": 5}), id="a topic that is a number"),
        pytest.param(lambda body: body.update({"orders": None}), id="a topic that is nothing"),
        pytest.param(lambda body: body.update({"orders": ["0"]}), id="a topic that is a list"),
        pytest.param(lambda body: body["orders"].update({"0": 240}), id="a partition with Spark's own offset"),
        pytest.param(lambda body: body["orders"].update({"0": None}), id="a partition that is nothing"),
        pytest.param(lambda body: body["orders"].update({"0": [LOWER]}), id="a partition with a list of lanes"),
        pytest.param(partition(""), id="a partition without a number"),
        pytest.param(partition("-1"), id="a negative partition"),
        pytest.param(partition("0x1"), id="a partition in hexadecimal"),
        pytest.param(partition("1.0"), id="a partition with a fraction"),
        pytest.param(partition(" 1"), id="a partition with a space"),
        pytest.param(partition("１"), id="a partition in digits of another script"),
        pytest.param(hashes(""), id="a lane without hashes"),
        pytest.param(hashes("-"), id="a lane with nothing but the dash"),
        pytest.param(hashes(LOWER[:16]), id="a lane with one hash"),
        pytest.param(hashes(LOWER.replace("-", ":")), id="hashes with another sign between"),
        pytest.param(hashes(f"{LOWER}-{UPPER}"), id="three hashes and more"),
        pytest.param(hashes(LOWER[17:] + "-" + LOWER[:16]), id="an inverted hash range"),
        pytest.param(hashes("g" * 16 + "-" + "h" * 16), id="hashes that are no hexadecimal"),
        pytest.param(hashes("8000000000000000-ffffffffffffffff"), id="hashes beyond 2^63"),
        pytest.param(lane(None), id="a lane that is nothing"),
        pytest.param(lane(120), id="a lane that is a number"),
        pytest.param(lane(["ab.1@5"]), id="a lane that is a list"),
        pytest.param(lane(""), id="an empty lane"),
        pytest.param(lane("@"), id="a lane with nothing but the sign"),
        pytest.param(lane("@5-9"), id="a lane with an empty epoch"),
        pytest.param(lane("ab.1@5-9,"), id="offsets that end in a comma"),
        pytest.param(lane("ab.1@,5-9"), id="offsets that begin with a comma"),
        pytest.param(lane("ab.1@5--9"), id="offsets with two dashes"),
        pytest.param(lane("ab.1@-5-9"), id="a negative offset"),
        pytest.param(lane("ab.1@5.0-9"), id="an offset with a fraction"),
        pytest.param(lane("ab.1@5-9,20"), id="a lone offset among ranges"),
        pytest.param(lane("ab.1@20-25,5-9"), id="offset ranges in the wrong order"),
        pytest.param(lane("ab.1@9223372036854775807-9223372036854775807"), id="the last offset there could be"),
        pytest.param(lane("ab.1@5-9;10-12"), id="offset ranges with another sign between"),
        pytest.param(lane("ab.1@five"), id="an offset in words"),
        pytest.param(lane_too("0" * 16 + "-" + "0" * 15 + "1"), id="a lane in a lane"),
    ],
)  # fmt: skip
def test_it_is_refused_by_name(damage: Damage) -> None:
    body = copy.deepcopy(GOOD)
    damage(body)
    with pytest.raises(CheckpointMismatchError, match=r"checkpoint.*\n?.*Remedy"):
        StreamOffset.from_json(json.loads(json.dumps(body)))
