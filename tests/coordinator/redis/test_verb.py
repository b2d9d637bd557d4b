"""Declarations of verbs: each script has one, and names only what is declared."""

import json
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import pytest

from coordinator.redis import calls, commits, members, operator, poison, policies, position_verbs, reports
from coordinator.redis.keys import GroupKeys
from coordinator.redis.verb import Verb, fields, nothing, number, truth, verb
from coordinator.values.subscription import TopicPartition
from group_life import Life

MODULES = (calls, commits, members, operator, poison, policies, position_verbs, reports)
VERBS: list[Verb[Any]] = [v for module in MODULES for v in vars(module).values() if isinstance(v, Verb)]
LUA = files("coordinator.redis") / "lua"
SCRIPTS = {script.name.removesuffix(".lua"): script for script in LUA.iterdir() if script.is_file()}
SHARED = {file.name: file for file in (LUA / "shared").iterdir()}
ORDERS = TopicPartition("orders", 3)


def head_and_code(script: Traversable) -> tuple[str, str]:
    """The comment at the top of a script, and the rest without comments."""
    head, code = re.fullmatch(r"((?:--[^\n]*\n)*)(.*)", script.read_text("utf-8"), re.DOTALL).groups()  # type: ignore[union-attr]
    return head, re.sub(r"--.*", "", code)


def test_each_script_is_declared() -> None:
    assert {v.name for v in VERBS} == SCRIPTS.keys()


def test_only_names_lua_knows_positions() -> None:
    texts = {name: file.read_text("utf-8") for name, file in (SCRIPTS | SHARED).items()}
    assert [name for name, text in texts.items() if re.search(r"\b(KEYS|ARGV)\b", text)] == ["names.lua"]


def with_shared(code: str) -> str:
    """The code of a script, with that of the shared functions that it reaches."""
    found, texts, wanted = dict[str, str](), [code], {*re.findall(r"\b(\w+)\(", code)}
    for file in SHARED.values():
        chunks = re.split(r"^(?=local )", re.sub(r"--.*", "", file.read_text("utf-8")), flags=re.MULTILINE)
        found |= {name[1]: chunk for chunk in chunks if (name := re.match(r"local function (\w+)", chunk))}
    while reached := wanted & found.keys():
        texts += [found.pop(name) for name in sorted(reached)]
        wanted = {*re.findall(r"\b(\w+)\(", "".join(texts))}
    return "".join(texts)


@pytest.mark.parametrize("declared", VERBS, ids=lambda v: v.name)
def test_a_script_names_what_is_declared(declared: Verb[Any]) -> None:
    head, code = head_and_code(SCRIPTS[declared.name])
    keys, code = {*declared.keys, *declared.lists}, with_shared(code)
    assert set(re.findall(r"\bK\.(\w+)", head + code)) <= keys, "keys"
    assert set(re.findall(r"\bA\.(\w+)", head)) == {*declared.arguments}, "the head describes each argument"
    assert set(re.findall(r"\bA\.(\w+)", code)) == {*declared.arguments}, "arguments"


def test_a_declaration_makes_keys_in_its_order() -> None:
    one = verb(
        "one",
        "meta entries=events member owners",
        "",
        nothing,
        partitions="segments at=stable",
        topics="end",
        others="",
    )
    lists = {"partitions": [ORDERS], "topics": ["orders", "returns"], "others": ["k"]}
    k = GroupKeys("g")
    fixed, of_partition = (
        [k.meta, k.events, k.member("m-1"), k.owners(ORDERS)],
        [k.segments(ORDERS), k.stable("orders")],
    )
    assert one.keys_of(k, "m-1", ORDERS, lists) == [*fixed, *of_partition, k.end("orders"), k.end("returns"), "k"]


def test_an_argument_that_is_none_is_left_out_and_texts_travel_as_they_are() -> None:
    one = verb("one", "meta", "big word no", nothing, partitions="owners")
    asked = one.argument({"now": ""}, {"partitions": [ORDERS], "big": str(2**63 - 1), "word": "ü\n", "no": None})
    shape = [{"name": "partitions", "keys": ["owners"], "count": 1}]
    arguments = {"big": "9223372036854775807", "word": "ü\n"}
    assert json.loads(asked) == {"call": {"now": ""}, "keys": ["meta"], "lists": shape, "arguments": arguments}


@pytest.mark.parametrize("given", [{}, {"word": "a", "others": "b"}])
def test_other_arguments_than_the_declared_ones_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"one takes \['word'\]"):
        verb("one", "meta", "word", nothing).argument({}, given)


def test_replies_are_read_by_name() -> None:
    reply = {"kept": "3", "sealed": "", "finished": "1"}
    assert (number("kept")(reply), truth("sealed")(reply), truth("finished")(reply)) == (3, False, True)
    assert fields(reply) == reply


def test_numbers_travel_as_text(redis_url: str) -> None:
    """In the first call of each verb: Lua has 53 bits for a number, offsets have 63."""
    life = Life(redis_url)
    life.live()
    for name, (_, (asked,)) in life.calls.items():
        sent = json.loads(asked)
        for part in (sent["call"], sent["arguments"]):
            assert not re.findall(
                r"(?<=[\[:,])-?\d", re.sub(r'"(?:[^"\\]|\\.)*"', '""', json.dumps(part, separators=(",", ":")))
            ), name
