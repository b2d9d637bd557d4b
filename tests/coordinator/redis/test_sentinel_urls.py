"""Urls of Redis Sentinel: their parts, their errors, and a group that lives on the master which sentinels name."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.errors import InvalidOptionError, RedisUnavailableError, redacted
from coordinator.redis.client import RedisClient
from coordinator.redis.sentinel_urls import SentinelUrl, parsed
from coordinator.redis.snapshot import list_groups
from group_life import Life
from redis_sentinels import Watched, watched
from streams import eventually


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        pytest.param(
            "redis+sentinel://a:1,b/orders",
            SentinelUrl(("redis://a:1", "redis://b:26379"), "orders", "redis://a:1"),
            id="without a login",
        ),
        pytest.param(
            "redis+sentinel://u:p%40@a,b/orders/2?sentinel_username=s&sentinel_password=t&client_name=c",
            SentinelUrl(
                ("redis://a:26379?username=s&password=t", "redis://b:26379?username=s&password=t"),
                "orders",
                "redis://u:p%40@a:26379/2?client_name=c",
            ),
            id="logins of the servers and of the sentinels",
        ),
        pytest.param(
            "rediss+sentinel://[::1]:5/orders?ssl_ca_certs=/ca.pem",
            SentinelUrl(("rediss://[::1]:5?ssl_ca_certs=/ca.pem",), "orders", "rediss://[::1]:5?ssl_ca_certs=/ca.pem"),
            id="TLS to both",
        ),
    ],
)
def test_the_parts_of_a_url(url: str, parts: SentinelUrl) -> None:
    assert parsed(url) == parts


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis+sentinel://hunter2@a:1,b:2", "names no service"),
        ("redis+sentinel://hunter2@a:1,,b:2/orders", "names no host"),
        ("redis+sentinel://a:hunter2/orders", "host and port cannot be separated"),
        ("redis+sentinel://x:hunter2@y@a:1/orders", "not percent-encoded"),
        ("redis+sentinel://a/orders/hunter2", "not the number of a database"),
        ("redis+sentinel://a/orders?cluster=true", "no cluster"),
        ("redis+sentinel://a/orders?hunter2=1", "an argument behind"),
    ],
)
def test_a_wrong_url_is_named_and_not_repeated(url: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=why) as error:
        RedisClient(url)
    assert "hunter2" not in str(error.value)


def test_messages_show_the_places_and_no_login() -> None:
    assert redacted("redis+sentinel://u:p@a:1,b/orders?x=y") == "redis+sentinel://a:1,b/orders"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Servers that sentinels watch."""
    with watched(tmp_path_factory.mktemp("sentinels")) as servers:
        yield servers


@pytest.mark.long
@pytest.mark.server
def test_a_group_lives_on_the_master(two: Watched) -> None:
    Life(two.url).live()


@pytest.mark.server
def test_a_service_that_the_sentinels_do_not_know_is_unavailable(two: Watched) -> None:
    with (
        closing(RedisClient(two.url.replace("/positions", "/hunter3"))) as client,
        pytest.raises(RedisUnavailableError, match="No master found for 'hunter3'"),
    ):
        list_groups(client)


@pytest.mark.server
def test_without_sentinels_redis_is_unavailable(tmp_path: Path) -> None:
    with closing(RedisClient("redis+sentinel://127.0.0.1:1/x")) as client, pytest.raises(RedisUnavailableError):
        list_groups(client)


@pytest.mark.long
@pytest.mark.server
def test_a_client_follows_the_master(two: Watched) -> None:
    """For a moment, no server is the master: then Redis is away."""
    with closing(RedisClient(two.url)) as client:
        assert _written(client)
        two.kill_master()
        eventually(lambda: _written(client), "the client has found the new master", 20)


def _written(client: RedisClient) -> bool:
    try:
        with client.reading() as plain:
            return plain.set("coop:v1:sentinels", "written", nx=False, px=60_000) is not None
    except RedisUnavailableError:
        return False
