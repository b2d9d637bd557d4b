"""Opens a `redisUrl`: one server, plain or by TLS, a cluster (`?cluster=true`), or the master that sentinels name.

redis-py's defaults (10 retries, 5 s) take longer than a lease. Here a call has one second and one retry; the
caller decides how long an outage may last. Knows no key, no script and no rule.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry
from redis.sentinel import Sentinel

from coordinator.errors import InvalidOptionError, redacted
from coordinator.redis import credentials, sentinel_urls
from coordinator.redis.urls import LIMIT, check_url

CONNECT_S = 1.0
_OURS = ("cluster=", f"{credentials.ARGUMENT}=")
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


def check(url: str) -> None:
    """Raise `InvalidOptionError` for a url that cannot be used. Connects to nothing."""
    try:
        check_url(url)
    except ValueError as error:
        raise _unusable(str(error)) from None
    server = sentinel_urls.parsed(url).server if url.startswith(sentinel_urls.SCHEMES) else url
    try:
        place = redis.ConnectionPool.from_url(_as_of_redis_py(server)).connection_kwargs
    except (ValueError, redis.exceptions.RedisError):
        raise _unusable("redis-py cannot parse it") from None
    if _of_cluster(url) and place.get("db"):
        raise InvalidOptionError(
            f"option 'redisUrl' names database {place['db']} of a cluster: {redacted(url)}",
            "leave the number out: a cluster has database 0 only",
        )


def _unusable(why: str) -> InvalidOptionError:
    return InvalidOptionError(f"option 'redisUrl' cannot be used: {why}", f"set redisUrl to {LIMIT}")


def opened(url: str, timeout_s: float) -> "redis.Redis | RedisCluster":
    """A client of that url. A cluster's client reads the slots of the cluster at once. Raises redis-py's errors."""
    settings: dict[str, Any] = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": CONNECT_S,
        "retry": Retry(NoBackoff(), 1),
    }
    if url.startswith(sentinel_urls.SCHEMES):
        return _of_sentinels(sentinel_urls.parsed(url), settings)
    _check_files(url)
    client = RedisCluster if _of_cluster(url) else redis.Redis
    asked = credentials.provider(url)
    return client.from_url(_as_of_redis_py(url), decode_responses=True, credential_provider=asked, **settings)


def drop_idle(client: "redis.Redis | RedisCluster") -> None:
    """Drop the connections of a client that no other thread uses at this moment."""
    nodes = client.get_nodes() if isinstance(client, RedisCluster) else ()  # type: ignore[no-untyped-call]
    for each in [node.redis_connection for node in nodes] if nodes else [client]:
        if isinstance(each, redis.Redis):
            each.connection_pool.disconnect(inuse_connections=False)


def _of_sentinels(url: sentinel_urls.SentinelUrl, settings: Mapping[str, Any]) -> redis.Redis:
    """A client that asks the sentinels for the master whenever it connects."""
    _check_files(url.server)
    pool = redis.ConnectionPool.from_url(_as_of_redis_py(url.server))
    of_server = {name: value for name, value in pool.connection_kwargs.items() if name not in ("host", "port")}
    of_server["ssl"] = issubclass(pool.connection_class, redis.SSLConnection)
    asked = credentials.provider(url.server)
    settings_of_server = {"decode_responses": True, "credential_provider": asked, **settings, **of_server}
    manager = Sentinel([], **settings_of_server)  # type: ignore[no-untyped-call]
    manager.sentinels = [redis.Redis.from_url(each, **settings) for each in url.sentinels]
    return cast(redis.Redis, manager.master_for(url.service))  # type: ignore[no-untyped-call]


def _of_cluster(url: str) -> bool:
    return ("cluster", "true") in parse_qsl(urlsplit(url).query)


def _as_of_redis_py(url: str) -> str:
    """The url without the arguments of ours."""
    parts = urlsplit(url)
    given = parts.query.split("&")
    kept = [argument for argument in given if not argument.startswith(_OURS)]
    return url if kept == given else urlunsplit(parts._replace(query="&".join(kept)))


def _check_files(url: str) -> None:
    """Name the missing file: the error of OpenSSL does not."""
    for name, value in parse_qsl(urlsplit(url).query):
        if name in _FILES and not Path(value).is_file():
            raise InvalidOptionError(
                f"option 'redisUrl' has {name}={value}, and there is no such file here",
                f"set {name} to the path of a PEM file on the driver's host",
            )
