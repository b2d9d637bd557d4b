"""`coop-kafka picture`, against a real Redis."""

import secrets
import xml.etree.ElementTree as ET
from contextlib import closing

import pytest
import redis

from command_runs import Run
from coordinator.progress.failing import FailingRecord
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.store import store_of
from coordinator.values.subscription import Topic, TopicPartition

SVG = "{http://www.w3.org/2000/svg}"
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def group(redis_url: str) -> str:
    """A group with a failing key; its name and the error are hostile to a terminal and to a browser."""
    name = f"<script>\x1b[31m & {secrets.token_hex(4)}"
    with closing(RedisClient(redis_url)) as client, redis.Redis.from_url(redis_url) as plain:
        store = store_of(ScriptCalls(client, name, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        store.positions.create("aa", {"orders": Topic("orders", "id-1", (0, 1))}, {FIRST: 5, SECOND: 7})
        bad = FailingRecord(SECOND, 77, 7, 2, 0, True, "<b>\x1b", "\x1b[2J")
        plain.hset(GroupKeys(name).failing, bad.field, bad.text)
    return name


def test_it_prints_one_svg_of_the_partition(run: Run, redis_url: str, group: str) -> None:
    code, out, err = run("picture", group, "--redis", redis_url, "--partition", "1")
    drawn = ET.fromstring(out)
    assert (code, err) == (0, "")
    assert drawn.findtext(f"{SVG}title") == f"orders-1 of group {group}".replace("\x1b", "\\x1b")
    assert "1 lane, 0 owners, 1 failing key" in (drawn.findtext(f"{SVG}desc") or "")
    assert "\x1b" not in out
    assert [mark.attrib["class"] for mark in drawn.iter(f"{SVG}circle")] == ["failing parked"]


def test_an_unknown_partition_is_one_line(run: Run, redis_url: str, group: str) -> None:
    code, out, err = run("picture", group, "--redis", redis_url, "--topic", "bills")
    assert (code, out) == (1, "")
    assert err.startswith("UNKNOWN_TOPIC_OR_PARTITION: ")
    assert err.count("\n") == 1
