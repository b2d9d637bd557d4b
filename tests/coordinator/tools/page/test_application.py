"""The answers of `coop-kafka ui` over HTTP, from a real Redis: what they hold, what they refuse, and their headers."""

import json
import secrets
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from email.message import Message
from typing import Any

import pytest
import redis

from coordinator.redis.keys import GroupKeys
from coordinator.tools.page.application import HEADERS
from own_valkey import OwnValkey
from served import PATIENCE_S
from sites import Site, site
from watched_groups import live

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def served(redis_url: str) -> Iterator[Site]:
    with site(redis_url) as running:
        yield running


def get(running: Site, path: str, host: str = "", **query: str) -> tuple[int, Mapping[str, str], bytes]:
    """The status, the headers and the body of an answer."""
    request = urllib.request.Request(f"{running.url}{path}?{urllib.parse.urlencode(query)}")
    if host:
        request.add_header("Host", host)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, _lower(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _lower(error.headers), error.read()


def _lower(headers: Message) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def answered(running: Site, path: str, **query: str) -> Any:
    status, _, body = get(running, f"api/{path}", **query)
    assert status == 200, body
    return json.loads(body)


def test_a_group_with_any_name(served: Site, redis_url: str) -> None:
    group = f"<b>\x1b[31m\u202e & a/b?c=d# {secrets.token_hex(4)}"
    live(redis_url, group, "orders")
    assert group in answered(served, "groups")
    seen = answered(served, "group", group=group)
    assert (seen["group"], seen["lag"], [m["member"] for m in seen["members"]]) == (group, 0, ["m-1"])
    assert len(seen["lags"]) == 1
    assert "join" in {event["kind"] for event in answered(served, "events", group=group)}
    (owner,) = answered(served, "owner", group=group, topic="orders", key="\u00e4")
    assert (owner["member"], owner["position"], owner["usual"]) == ("m-1", 5, True)
    status, headers, drawn = get(served, "api/picture", group=group, topic="orders", partition="0")
    assert (status, headers["content-type"]) == (200, "image/svg+xml")
    assert drawn.startswith(b"<svg")


@pytest.mark.parametrize("path", ["", "static/page.js", "static/page.css", "api/groups", "api/group"])
def test_each_answer_forbids_the_browser_all_but_our_own_files(served: Site, path: str) -> None:
    _, headers, _ = get(served, path)
    assert {name: headers[name.lower()] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    ("path", "query", "words"),
    [
        ("group", {}, "the address has no group"),
        ("group", {"group": "nobody's"}, "UNKNOWN_GROUP"),
        ("owner", {"topic": "orders", "key": "a"}, "the address has no group"),
        ("picture", {"topic": "orders", "partition": "first"}, "is no number"),
        ("picture", {"topic": "orders", "partition": "\u0661"}, "is no number"),
        ("picture", {"topic": "orders", "partition": "7"}, "no position there"),
        ("picture", {"topic": "bills", "partition": "0"}, "no position there"),
    ],
)
def test_what_is_not_there_is_a_404_with_a_remedy(
    served: Site, redis_url: str, group: str, path: str, query: dict[str, str], words: str
) -> None:
    live(redis_url, group, "orders")
    group_of = {"group": group} if path == "picture" else {}
    status, _, body = get(served, f"api/{path}", **group_of, **query)
    found = json.loads(body)
    assert status == 404
    assert words in found["error"]
    assert found["remedy"]


def test_a_damaged_group_is_named(served: Site, redis_url: str, group: str) -> None:
    live(redis_url, group, "orders")
    with closing(redis.Redis.from_url(redis_url)) as plain:
        plain.hset(GroupKeys(group).meta, "nonce", "x")
    status, _, body = get(served, "api/group", group=group)
    assert (status, json.loads(body)["error"].partition(":")[0]) == (404, "STATE_FORMAT")


def test_the_page_of_another_host_asks_in_vain(served: Site) -> None:
    """A name of its own that points at this host (DNS rebinding)."""
    assert get(served, "api/groups", host="evil.example")[0] == 400


def test_nothing_can_be_changed(served: Site) -> None:
    request = urllib.request.Request(f"{served.url}api/groups", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError, match="405") as refused:
        urllib.request.urlopen(request, timeout=PATIENCE_S)
    refused.value.close()


def test_redis_is_away_for_a_while(valkey: OwnValkey) -> None:
    live(valkey.address, "g", "orders")
    with site(valkey.address) as running:
        assert answered(running, "groups") == ["g"]
        valkey.stop()
        status, _, body = get(running, "api/groups")
        assert (status, json.loads(body)["error"].partition(":")[0]) == (503, "REDIS_UNAVAILABLE")
        valkey.restart(emptied=True)
        assert answered(running, "groups") == []
        assert running.end() == (0, "")
