"""A user's class gives the password of Redis at each connection."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
import redis

from coordinator.errors import InvalidOptionError, RedisAccessError, RedisUnavailableError
from coordinator.redis.client import RedisClient
from coordinator.redis.snapshot import list_groups
from own_valkey import OwnValkey


class Rotating:
    """Its password is what the test set last; each use is counted."""

    password, asked = "first", 0

    def get_credentials(self) -> tuple[str, str]:
        type(self).asked += 1
        return "default", self.password


class Broken:
    """Its endpoint is away."""

    def get_credentials(self) -> tuple[str, str]:
        raise OSError("the token endpoint does not answer")


class Strange:
    """Returns no text."""

    def get_credentials(self) -> tuple[str, str]:
        return "default", b"hunter2"  # type: ignore[return-value]


class Wrong:
    """Is no provider."""


def named(url: str, cls: type) -> str:
    return f"{url}?credential_provider={cls.__module__}:{cls.__name__}"


@pytest.fixture
def guarded(valkey: OwnValkey) -> Iterator[redis.Redis]:
    """The administrator of a server whose password is `first`."""
    Rotating.password, Rotating.asked = "first", 0
    with closing(redis.Redis.from_url(valkey.address)) as administrator:
        administrator.config_set("requirepass", "first")
        administrator.auth("first")
        yield administrator


@pytest.mark.server
def test_each_connection_asks_for_the_password_of_now(valkey: OwnValkey, guarded: redis.Redis) -> None:
    with closing(RedisClient(named(valkey.address, Rotating))) as client:
        list_groups(client)
        list_groups(client)
        assert Rotating.asked == 1, "one connection"
        guarded.config_set("requirepass", "second")
        guarded.client_kill_filter(skipme=True, _type="normal")
        with pytest.raises(RedisAccessError):
            list_groups(client)
        Rotating.password = "second"
        list_groups(client)


@pytest.mark.server
@pytest.mark.parametrize(
    ("cls", "why"),
    [
        pytest.param(Broken, "Broken failed: OSError: the token endpoint does not answer", id="it raises"),
        pytest.param(Strange, "something else than user and password", id="it returns no text"),
    ],
)
def test_a_provider_that_fails_is_an_outage(valkey: OwnValkey, guarded: redis.Redis, cls: type, why: str) -> None:
    with closing(RedisClient(named(valkey.address, cls))) as client, pytest.raises(RedisUnavailableError, match=why):
        list_groups(client)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (named("redis://127.0.0.1:1", Wrong), "Wrong of redisUrl has no get_credentials()"),
        ("redis://127.0.0.1:1?credential_provider=gone:Gone", "cannot be created: ModuleNotFoundError"),
        ("redis://127.0.0.1:1?credential_provider=gone", "credential_provider is not module:Class"),
        (named("redis://:hunter2@127.0.0.1:1", Rotating), "a user or a password, and also a credential_provider"),
    ],
)
def test_a_wrong_provider_is_named(url: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(why)) as error, closing(RedisClient(url)) as client:
        list_groups(client)
    assert "hunter2" not in str(error.value)
