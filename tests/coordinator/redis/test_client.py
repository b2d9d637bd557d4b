"""The Redis client names a server that does not answer or refuses, without the password."""

import pytest

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
