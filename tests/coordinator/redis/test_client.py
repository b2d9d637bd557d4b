"""The Redis client names a server that does not answer or refuses, without the password."""

from contextlib import closing

import pytest
from redis.exceptions import ConnectionError as NoConnectionError

from coordinator.errors import RedisAccessError, RedisUnavailableError
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.store import store_of

ON_EACH_SERVER = True


def test_a_redis_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(RedisUnavailableError) as error:
        store_of(ScriptCalls(RedisClient("redis://:hunter2@127.0.0.1:1/0"), "g")).positions.status()
    assert "127.0.0.1:1" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_wrong_password_is_an_access_error_without_the_password(redis_url: str) -> None:
    url = redis_url.replace("redis://", "redis://nobody:hunter2@")
    with pytest.raises(RedisAccessError) as error:
        store_of(ScriptCalls(RedisClient(url), "g")).positions.status()
    assert "hunter2" not in str(error.value)


def test_a_client_makes_the_digest_of_a_script_once_until_an_outage(redis_url: str) -> None:
    with closing(RedisClient(redis_url)) as client:
        made = client._script("status")
        assert client._script("status") is made
        with pytest.raises(RedisUnavailableError), client.reading():
            raise NoConnectionError
        assert client._script("status") is not made, "it would keep the connections of the client before"
