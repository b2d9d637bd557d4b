"""The client of Redis: scripts, plain commands, and the verdicts of scripts.

Knows no key and no rule. `connection` reads urls, `errors` translates errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any, Protocol, cast

import redis
from redis.cluster import RedisCluster
from redis.commands.core import Script

from coordinator.errors import (
    RedisAccessError,
    RedisConfigurationError,
    RedisUnavailableError,
    StateFormatError,
    StateLostError,
    redacted,
)
from coordinator.redis import connection as redis_connection
from coordinator.redis.errors import errors_as_ours
from coordinator.redis.group_state import other_schema
from coordinator.redis.verb import Reply
from coordinator.values import verdicts

TIMEOUT_S = 1.0
_PLAIN: Mapping[object, type[verdicts.Verdict]] = {
    "RECOVERING": verdicts.Recovering,
    "REJOIN": verdicts.Rejoin,
    "FENCED": verdicts.Fenced,
    "MISSED": verdicts.Missed,
    "SUPERSEDED": verdicts.Superseded,
}


SHARED = (
    "names",
    "damage",
    "failing",
    "arguments",
    "prelude",
    "events",
    "founding",
    "policies",
    "ownership",
    "leases",
    "pinned",
    "standbys",
    "progress",
    "slices",
    "strikes",
    "leader_epochs",
)
"""The files of `lua/shared/`, in the order in which they precede each verb."""


@cache
def script(verb: str) -> str:
    """The Lua text of a verb, behind the files that all verbs share."""
    lua = files("coordinator.redis") / "lua"
    parts = [*(lua / "shared" / f"{name}.lua" for name in SHARED), lua / f"{verb}.lua"]
    return "".join(part.read_text() for part in parts)


Entries = list[tuple[str, dict[str, str]]]
"""Entries of a stream: id and fields."""


class TextRedis(Protocol):
    """The plain commands that this project uses, with `decode_responses`: text in, text out."""

    def exists(self, key: str) -> int:
        """1 if there is such a key, else 0."""

    def hgetall(self, key: str) -> dict[str, str]:
        """All fields of a hash with their values."""

    def set(self, key: str, value: str, *, nx: bool, px: int) -> bool | None:
        """Write a text that lives for `px` ms; with `nx` only if there is none. None if it was not written."""

    def sadd(self, key: str, *values: str) -> int:
        """Add to a set; the number of values that are new."""

    def srem(self, key: str, *values: str) -> int:
        """Remove from a set; the number of values that were there."""

    def scan_iter(self, match: str, *, count: int) -> Iterator[str]:
        """The names of all keys of a pattern; a name may come twice."""

    def smembers(self, key: str) -> AbstractSet[str]:
        """All values of a set."""

    def time(self) -> tuple[int, int]:
        """The server's clock: seconds, and microseconds of the second."""

    def xread(self, streams: dict[str, str], *, count: int, block: int) -> list[tuple[str, Entries]]:
        """Entries of streams after an id; waits up to `block` ms for the first."""

    def xrevrange(self, key: str, *, count: int) -> Entries:
        """The latest entries of a stream, the latest first."""

    def zadd(self, key: str, scores: dict[str, int], *, xx: bool) -> int:
        """Set scores of a sorted set, with `xx` only of values that it has; the number of new values."""

    def zrange(self, key: str, start: int, end: int, *, withscores: bool) -> list[tuple[str, float]]:
        """Values of a sorted set with their scores, `end` included."""

    def pipeline(self, transaction: bool) -> "TextPipeline":
        """An empty pipeline."""


class TextPipeline(Protocol):
    """Commands that travel together."""

    def hgetall(self, key: str) -> "TextPipeline":
        """Queue a read of all fields of a hash."""

    def execute(self) -> list[dict[str, str]]:
        """Send the commands; return their replies in order."""


class RedisClient:
    """Runs scripts and plain reads. Safe for several threads; opens a connection at the first call.

    After an outage, or a reply that says "not now", the next call asks for the address again and connects anew: behind
    one address, another server may be the primary by then.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        redis_connection.check(url)
        self._url, self._timeout_s = url, timeout_s
        self._shown = redacted(url)
        self._opening = Lock()
        self._redis: redis.Redis | RedisCluster | None = None
        self._scripts: dict[str, Script] = {}

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        """The named fields of a script's reply. Raises a `Verdict`, `StoreError` or `StateFormatError`."""
        with self._outages():
            reply = self._script(verb)(keys=list(keys), args=list(args), client=self._opened())
        return _accepted(reply)

    def _script(self, verb: str) -> Script:
        """The script of a verb. redis-py computes the digest of its text once: that costs as much as a short call."""
        if verb not in self._scripts:
            self._scripts[verb] = self._opened().register_script(script(verb))
        return self._scripts[verb]

    @contextmanager
    def reading(self) -> Iterator[TextRedis]:
        """The plain client. It raises this project's errors for those of redis-py."""
        with self._outages():
            yield cast(TextRedis, self._opened())

    def require_noeviction(self) -> None:
        """Refuse a server that may evict keys when its memory is full. A server that hides this setting passes."""
        try:
            policies = self._eviction_policies()
        except RedisAccessError:
            return
        for policy in policies - {"noeviction"}:
            raise RedisConfigurationError(
                f"the Redis at {self._shown} has maxmemory-policy {policy!r}: "
                "it may drop positions when its memory is full",
                "set maxmemory-policy noeviction, or use another Redis for coop-kafka",
            )

    def try_to_write(self, key: str) -> None:
        """Write to a sorted set, and change nothing. `RedisNotReadyError` if its server takes no writes now.

        A user that may not write passes.
        """
        with suppress(RedisAccessError), self.reading() as plain:
            plain.zadd(key, {"": 0}, xx=True)

    def close(self) -> None:
        """Drop the connections."""
        if self._redis is not None:
            self._redis.close()

    @contextmanager
    def _outages(self) -> Iterator[None]:
        """Raise this project's errors. After an outage the next call opens a new client."""
        try:
            with errors_as_ours(self._shown):
                yield
        except RedisUnavailableError:
            with self._opening:
                used, self._redis, self._scripts = self._redis, None, {}
            if used is not None:
                redis_connection.drop_idle(used)
            raise

    def _eviction_policies(self) -> set[str]:
        """The eviction policy of the server, or of each primary of the cluster."""
        with self._outages():
            client = self._opened()
            if isinstance(client, RedisCluster):
                answers = [client.info("memory", target_nodes=node) for node in client.get_primaries()]  # type: ignore[no-untyped-call]
            else:
                answers = [client.info("memory")]
        return {str(memory.get("maxmemory_policy", "noeviction")) for memory in answers}

    def _opened(self) -> redis.Redis | RedisCluster:
        with self._opening:
            if self._redis is None:
                self._redis = redis_connection.opened(self._url, self._timeout_s)
            return self._redis


def _accepted(reply: list[Any]) -> Reply:
    match reply:
        case ["OK", *fields]:
            return dict(zip(fields[::2], fields[1::2], strict=True))
        case ["ABSENT"]:
            raise verdicts.Absent("Redis holds nothing of this group")
        case ["LOST", why]:
            raise verdicts.Lost(why)
        case ["REPLACED", founding]:
            raise verdicts.Replaced(founding)
        case [verdict, *_] if verdict in _PLAIN:
            raise _PLAIN[verdict]
        case ["BUSY" | "HELD" | "FILTER" | "ORDERING" | "ALONE" as verdict, *words]:
            raise _by_other(verdict, *words)
        case ["UNPROVEN", partition]:
            raise StateLostError(
                f"Redis lost the position of {partition}, and neither Kafka's group nor a running query proves one",
                "restore Redis from a copy, or set onStateLoss=earliest to read from the beginning again",
            )
        case ["SCHEMA", schema]:
            raise other_schema(schema)
    raise StateFormatError(f"a script replied {reply!r}", "report this: a script and its caller disagree")


def _by_other(verdict: str, member: str, lease_end: str, now: str, other: str = "") -> verdicts.Verdict:
    """The verdict of `join` about another member, with its filter or ordering."""
    times = int(float(lease_end)), int(float(now))
    match verdict:
        case "BUSY":
            return verdicts.Busy(member, *times)
        case "HELD":
            return verdicts.Held(member, *times)
        case "FILTER":
            return verdicts.OtherFilter(member, *times, other)
        case "ALONE":
            return verdicts.Alone(member, *times, other)
        case _:
            return verdicts.OtherOrdering(member, *times, other)
