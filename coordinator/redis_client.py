"""The connection to Redis: own time-outs, the scripts, and Redis' errors as ours.

redis-py's defaults (10 retries, 5 s) are longer than a lease: here one second, one retry; whoever
calls decides how long an outage may last. Knows no key and no rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from coordinator import verdicts
from coordinator.errors import (
    InvalidOptionError,
    RedisAccessError,
    RedisConfigurationError,
    RedisUnavailableError,
    StateFormatError,
    StateLostError,
    redacted,
)

TIMEOUT_S = 1.0
_UNAVAILABLE = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
    OSError,
)
_DENIED = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.NoPermissionError,
)
_SCRIPT_UNAVAILABLE = ("LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY ", "OOM", "MISCONF", "NOREPLICAS")


@cache
def script(verb: str) -> str:
    """The Lua text of a verb, with the prelude before it."""
    lua = files("coordinator") / "lua"
    return (lua / "prelude.lua").read_text() + (lua / f"{verb}.lua").read_text()


class TextRedis(Protocol):
    """The plain commands we use, as they are with `decode_responses`: text in, text out."""

    def exists(self, key: str) -> int:
        """1 if there is such a key, else 0."""

    def hgetall(self, key: str) -> dict[str, str]:
        """All fields of a hash with their values."""

    def sadd(self, key: str, *values: str) -> int:
        """Add to a set; the number of values that are new."""

    def smembers(self, key: str) -> set[str]:
        """All values of a set."""

    def time(self) -> tuple[int, int]:
        """The server's clock: seconds, and microseconds of the second."""

    def xadd(self, key: str, fields: Mapping[str, str], *, maxlen: int) -> str:
        """Append to a stream that keeps about `maxlen` entries; the entry's id."""

    def zrange(self, key: str, start: int, end: int, *, withscores: bool) -> list[tuple[str, float]]:
        """Values of a sorted set with their scores, `end` included."""

    def pipeline(self, transaction: bool) -> "TextPipeline":
        """An empty pipeline."""


class TextPipeline(Protocol):
    """Commands that travel together."""

    def hgetall(self, key: str) -> "TextPipeline":
        """Ask for all fields of a hash."""

    def hset(self, key: str, field: str, value: str) -> "TextPipeline":
        """Set one field of a hash."""

    def execute(self) -> list[dict[str, str]]:
        """Send the commands; their replies, in order."""


class RedisClient:
    """Runs scripts and plain reads. Safe for several threads; opens a connection at the first call."""

    def __init__(self, url: str) -> None:
        self._shown = redacted(url)
        try:
            self._redis = redis.Redis.from_url(
                url,
                decode_responses=True,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                retry=Retry(NoBackoff(), 1),
            )
        except (ValueError, redis.exceptions.RedisError):
            raise InvalidOptionError(
                f"option 'redis.url' cannot be parsed: {self._shown}",
                "write redis://[user:password@]host:port/db, rediss:// for TLS, percent-encode special characters",
            ) from None

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> list[Any]:
        """The reply of a script after its verdict; raises a `Verdict`, `StoreError` or `StateFormatError`."""
        with self._errors():
            reply = self._redis.register_script(script(verb))(keys=list(keys), args=list(args))
        return _accepted(reply)

    @contextmanager
    def reading(self) -> Iterator[TextRedis]:
        """The plain client, with Redis' errors as ours."""
        with self._errors():
            yield cast(TextRedis, self._redis)

    def require_noeviction(self) -> None:
        """Refuse a server that may evict our keys when its memory is full; a server that hides its setting passes."""
        try:
            with self._errors():
                policy = self._redis.info("memory").get("maxmemory_policy", "noeviction")
        except RedisAccessError:
            return
        if policy != "noeviction":
            raise RedisConfigurationError(
                f"the Redis at {self._shown} has maxmemory-policy {policy!r}: "
                "it may drop positions when its memory is full",
                "set maxmemory-policy noeviction, or use another Redis for coop-kafka",
            )

    def close(self) -> None:
        """Drop the connections."""
        self._redis.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except _DENIED as error:
            raise RedisAccessError(
                f"the Redis at {self._shown} refuses: {_denial(error)}",
                "put user and password in redis.url (redis://user:password@host, without a user redis://:password@host)"
                ", and allow the commands of conf/redis.acl",
            ) from None
        except _UNAVAILABLE as error:
            raise self._unavailable(error) from None
        except redis.exceptions.ResponseError as error:
            if any(word in str(error) for word in _SCRIPT_UNAVAILABLE):
                raise self._unavailable(error) from None
            if "NOAUTH" in str(error) or "NOPERM" in str(error):
                raise RedisAccessError(
                    f"the Redis at {self._shown} refuses: {_plain(error)}",
                    "allow the commands and keys of conf/redis.acl",
                ) from None
            raise StateFormatError(
                f"the Redis at {self._shown} holds something under our keys that is not ours: {_plain(error)}",
                "look at the keys coop:v1:{group}:*; restore or delete the group's state",
            ) from None

    def _unavailable(self, error: Exception) -> RedisUnavailableError:
        return RedisUnavailableError(
            f"no answer from the Redis at {self._shown} ({_plain(error)})",
            "start it, or correct redis.url; the group's positions are kept in Redis and in the checkpoint",
        )


def _plain(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def _denial(error: Exception) -> str:
    """The refusal in words; to a client without a password Redis answers with a lesson on its protocol."""
    anonymous = any(words in str(error) for words in ("already authenticated", "Authentication required"))
    return "it asks for a password, and redis.url has none" if anonymous else _plain(error)


def _accepted(reply: list[Any]) -> list[Any]:
    match reply:
        case ["OK", *rest]:
            return rest
        case ["ABSENT"]:
            raise verdicts.Absent("Redis holds nothing of this group")
        case ["LOST", why]:
            raise verdicts.Lost(why)
        case ["RECOVERING", *_]:
            raise verdicts.Recovering
        case ["REJOIN"]:
            raise verdicts.Rejoin
        case ["FENCED"]:
            raise verdicts.Fenced
        case ["BUSY", member, lease_end, now]:
            raise verdicts.Busy(member, int(float(lease_end)), int(float(now)))
        case ["UNPROVEN", partition]:
            raise StateLostError(
                f"Redis lost the position of {partition}, and neither Kafka's group nor a running query proves one",
                "restore Redis from a copy, or set onStateLoss=earliest to read from the beginning again",
            )
        case ["SCHEMA", schema]:
            raise StateFormatError(
                f"the group's state in Redis is of schema {schema!r}, this coop-kafka reads schema '1'",
                "run a coop-kafka of the version that wrote it, or a newer one",
            )
    raise StateFormatError(f"a script replied {reply!r}", "report this: a script and its caller disagree")
