"""redis-py's errors as ours: which of them is worth another try, and what each asks of the user."""

import re
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import redis

from coordinator.errors import (
    RedisAccessError,
    RedisConfigurationError,
    RedisTlsError,
    RedisUnavailableError,
    StateFormatError,
    StoreError,
)

P = ParamSpec("P")
T = TypeVar("T")
_UNAVAILABLE = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
    redis.exceptions.ClusterError,
    redis.exceptions.RedisClusterException,
    OSError,
)
_DENIED = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.NoPermissionError,
)
_SCRIPT_UNAVAILABLE = ("LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY ", "OOM", "MISCONF", "NOREPLICAS")
_SCRIPT_PLACE = re.compile(r"^(ERR )?(Error running script.*?: )?@?user_script:\d+: |,? script: .*$")
_CUT = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLWantReadError, ssl.SSLSyscallError)


@contextmanager
def errors_as_ours(shown: str) -> Iterator[None]:
    """Raise a `StoreError` for what redis-py raises; `shown` is the server's url without its secrets."""
    try:
        yield
    except (redis.exceptions.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
        raise _named(error, shown) from None


def sound(verb: Callable[P, T]) -> Callable[P, T]:
    """A verb that parses what Redis holds: a text that is none of ours is a `StateFormatError`, never a bare error."""

    @wraps(verb)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return verb(*args, **kwargs)
        except (ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise StateFormatError(f"what Redis holds of the group is damaged: {error}") from None

    return checked


def _named(error: Exception, shown: str) -> StoreError:
    chain = tuple(_chain(error))
    denied = next((e for e in chain if isinstance(e, _DENIED)), None)
    untrusted = next((e for e in chain if isinstance(e, ssl.SSLError) and not isinstance(e, _CUT)), None)
    if denied:
        return _denied(_denial(denied), shown)
    if untrusted:
        return _untrusted(untrusted, shown)
    misconfigured = _of_the_wrong_kind(chain, shown)
    if misconfigured:
        return misconfigured
    if isinstance(error, _UNAVAILABLE) or any(word in str(error) for word in _SCRIPT_UNAVAILABLE):
        return _unavailable(error, shown)
    if any(word in str(error) for word in ("NOAUTH", "NOPERM", "ACL failure")):
        return _denied(_plain(error), shown)
    what = _SCRIPT_PLACE.sub("", _plain(error)).removesuffix(".")
    return StateFormatError(f"the Redis at {shown} holds something under our keys that is not ours: {what}")


def _of_the_wrong_kind(chain: Iterable[BaseException], shown: str) -> RedisConfigurationError | None:
    """One server that is taken for a cluster, or one node of a cluster for all of it."""
    for error in chain:
        if "Cluster mode is not enabled" in str(error):
            return RedisConfigurationError(f"the Redis at {shown} is no cluster", "leave cluster=true out of redis.url")
        if isinstance(error, redis.exceptions.MovedError):
            return RedisConfigurationError(
                f"the Redis at {shown} is a node of a cluster, and other nodes have some of our keys",
                "add ?cluster=true to redis.url",
            )
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """What happened, and what it came from: a cluster's client tells every failure as one of the cluster."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _denied(why: str, shown: str) -> RedisAccessError:
    return RedisAccessError(
        f"the Redis at {shown} refuses: {why}",
        "put user and password in redis.url (redis://user:password@host, without a user redis://:password@host)"
        ", and allow the commands and keys of conf/redis.acl",
    )


def _untrusted(error: BaseException, shown: str) -> RedisTlsError:
    return RedisTlsError(
        f"no TLS with the Redis at {shown}: {_plain(error)}",
        "name the authority that signed its certificate (rediss://host:port?ssl_ca_certs=/path/to/ca.pem) and a host "
        "that the certificate is for; redis:// where the server speaks no TLS",
    )


def _unavailable(error: Exception, shown: str) -> RedisUnavailableError:
    return RedisUnavailableError(
        f"no answer from the Redis at {shown} ({_plain(error)})",
        "start it, or correct redis.url (rediss:// where it speaks TLS, redis:// where it does not); positions are "
        "kept in Redis and in the checkpoint",
    )


def _plain(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def _denial(error: BaseException) -> str:
    """The refusal in words; to a client without a password Redis answers with a lesson on its protocol."""
    anonymous = any(words in str(error) for words in ("already authenticated", "Authentication required"))
    return "it asks for a password, and redis.url has none" if anonymous else _plain(error)
