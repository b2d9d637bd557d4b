"""Translates redis-py's errors to this project's: which of them may be retried, and what the user can do."""

import re
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import redis

from coordinator.errors import (
    CheckpointMismatchError,
    InvalidOptionError,
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
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ClusterError,
    redis.exceptions.RedisClusterException,
    OSError,
)
_DENIED = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.NoPermissionError,
)
_UNAVAILABLE_CODE = re.compile("(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|BUSY|OOM|MISCONF|NOREPLICAS) ")
_DENIAL_CODE = re.compile("NOAUTH |NOPERM |ACL failure|The user executing the script can't ")
_CALL = re.compile(r"(ERR )?(Error running script \(call to \w+\): @user_script:\d+: )?(@user_script: ?\d+: -?)?")
_OURS = re.compile(r"user_script:\d+: ")  # an error that a script of this project raised
_ARGUMENT = "ARGUMENT "  # the prefix of an error about the caller's arguments: see arguments.lua
_TAIL = re.compile(r",? script: (\w+, )?on @user_script:\d+\.?$")
_DAMAGE = re.compile(
    "is damaged$|^WRONGTYPE |^(ERR )?hash value is not |^(ERR )?increment or decrement would overflow"
    "|^Expected .* but found .* at character|^Found too many nested data structures"  # errors of JSON in a script
)
_NO_DATABASE = "DB index is out of range"
_REPORT = (
    "nothing shows that the group's state is damaged: leave it as it is; if the call had very many or very long values "
    "(labels, topics), make them fewer; else report this with the version of the server"
)
_CUT = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLWantReadError, ssl.SSLSyscallError)


@contextmanager
def errors_as_ours(shown: str) -> Iterator[None]:
    """Raise this project's errors for those of redis-py. `shown` is the url of the server without its secrets.

    A `StoreError`; or a `CheckpointMismatchError` for a request that a script refuses to write.
    """
    try:
        yield
    except UnicodeEncodeError:
        raise InvalidOptionError("a name or a text holds bytes that are not UTF-8", "write it in UTF-8") from None
    except UnicodeDecodeError:
        raise StateFormatError(f"the Redis at {shown} holds a value under our keys that is not UTF-8") from None
    except (redis.exceptions.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
        raise _named(error, shown) from None


def sound(verb: Callable[P, T]) -> Callable[P, T]:
    """Decorate a verb that parses texts of Redis: an unreadable text is a `StateFormatError`, never a bare error."""

    @wraps(verb)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return verb(*args, **kwargs)
        except (ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise StateFormatError(f"the state of the group in Redis is damaged: {error}") from None

    return checked


def _named(error: Exception, shown: str) -> StoreError | CheckpointMismatchError:
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
    if isinstance(error, _UNAVAILABLE) or _UNAVAILABLE_CODE.match(_reply_text(error)):
        return _unavailable(error, shown)
    return _refused(_reply_text(error), shown)


def _refused(reply: str, shown: str) -> StoreError | CheckpointMismatchError:
    """The error for an answer of a working server. It is damage only if nothing else can cause that answer."""
    if _DENIAL_CODE.match(reply):
        return _denied(reply, shown)
    if reply.startswith(_NO_DATABASE):
        return _no_database(shown)
    what = _OURS.sub("", reply, count=1).removesuffix(".")
    if what.startswith(_ARGUMENT):
        return _unwritable(what.removeprefix(_ARGUMENT))
    if _DAMAGE.search(what):
        return StateFormatError(
            f"the Redis at {shown} holds a value under our keys that coop-kafka did not write: {what}"
        )
    return StoreError(f"the Redis at {shown} refuses a call: {what}", _REPORT)


def _unwritable(what: str) -> CheckpointMismatchError:
    return CheckpointMismatchError(
        f"the checkpoint holds a value that no script writes: {what!r}; nothing was written",
        "start the query with a new checkpointLocation and a new output; the group's positions stay in Redis",
    )


def _reply_text(error: Exception) -> str:
    """The answer of Redis without the place in the script. An error of a command begins with its code.

    Redis 6.2: Error running script (call to f_91): @user_script:7: @user_script: 7: -OOM command not allowed ...
    newer:     NOREPLICAS Not enough good replicas to write. script: 91, on @user_script:7.
    our own:   user_script:7: coop:v1:{OOM}:meta, a string, is damaged script: 91, on @user_script:7.
    """
    return _TAIL.sub("", _CALL.sub("", _plain(error), count=1))


def _of_the_wrong_kind(chain: Iterable[BaseException], shown: str) -> RedisConfigurationError | None:
    """The error if one server is addressed as a cluster, or one node of a cluster as all of it."""
    for error in chain:
        if "Cluster mode is not enabled" in str(error):
            return RedisConfigurationError(
                f"the Redis at {shown} is not a cluster", "leave cluster=true out of redis.url"
            )
        if isinstance(error, redis.exceptions.MovedError):
            return RedisConfigurationError(
                f"the Redis at {shown} is one node of a cluster, and other nodes hold some of our keys",
                "add ?cluster=true to redis.url",
            )
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes: a cluster's client reports every failure as one of the cluster."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _denied(why: str, shown: str) -> RedisAccessError:
    return RedisAccessError(
        f"the Redis at {shown} refuses: {why}",
        "put user and password in redis.url (redis://user:password@host, without a user redis://:password@host)"
        ", and allow the commands and keys of conf/redis.acl; backup, restore, delete: as coop-kafka-operator",
    )


def _no_database(shown: str) -> RedisConfigurationError:
    return RedisConfigurationError(
        f"the Redis at {shown} has no database of that number",
        "name another one in redis.url, below the server's setting databases: redis://host:port/0",
    )


def _untrusted(error: BaseException, shown: str) -> RedisTlsError:
    return RedisTlsError(
        f"TLS with the Redis at {shown} failed: {_plain(error)}",
        "name the authority that signed its certificate (rediss://host:port?ssl_ca_certs=/path/to/ca.pem) and a host "
        "of the certificate; use redis:// if the server has no TLS",
    )


def _unavailable(error: Exception, shown: str) -> RedisUnavailableError:
    return RedisUnavailableError(
        f"the Redis at {shown} does not answer ({_plain(error)})",
        "start Redis, or correct redis.url (rediss:// with TLS, redis:// without); positions stay in Redis and in "
        "the checkpoint",
    )


def _plain(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def _denial(error: BaseException) -> str:
    """The refusal in words. To a client without a password Redis answers with a long text about its protocol."""
    anonymous = any(words in str(error) for words in ("already authenticated", "Authentication required"))
    return "it asks for a password, and redis.url has none" if anonymous else _plain(error)
