"""Translates redis-py's errors to this project's: which of them may be retried, and what the user can do."""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from coordinator.errors import (
    CheckpointMismatchError,
    InvalidOptionError,
    RedisTlsError,
    RedisUnavailableError,
    StateFormatError,
    StoreError,
)
from coordinator.redis.error_replies import chain, first_line, reply_of, row_of

_UNAVAILABLE = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.ClusterError,
    redis.exceptions.RedisClusterException,
    OSError,
)
_OURS = re.compile(r"user_script:\d+: ")  # an error that a script of this project raised
_ARGUMENT = "ARGUMENT "  # the prefix of an error about the caller's arguments: see arguments.lua
_DAMAGE = re.compile(
    "is damaged$|^WRONGTYPE |^(ERR )?hash value is not |^(ERR )?increment or decrement would overflow"
    "|^Expected .* but found .* at character|^Found too many nested data structures"  # errors of JSON in a script
)
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


def _named(error: Exception, shown: str) -> StoreError | CheckpointMismatchError:
    untrusted = next((e for e in chain(error) if isinstance(e, ssl.SSLError) and not isinstance(e, _CUT)), None)
    if untrusted:
        return _untrusted(untrusted, shown)
    if found := row_of(error):
        row, said = found
        return row.error(f"the Redis at {shown} {row.what} ({_in_words(said)})", row.remedy)
    if isinstance(error, _UNAVAILABLE):
        return _unavailable(error, shown)
    return _refused(reply_of(error), shown)


def _refused(reply: str, shown: str) -> StoreError | CheckpointMismatchError:
    """The error for an answer of a working server. It is damage only if nothing else can cause that answer."""
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


def _untrusted(error: BaseException, shown: str) -> RedisTlsError:
    return RedisTlsError(
        f"TLS with the Redis at {shown} failed: {first_line(error)}",
        "name the authority that signed its certificate (rediss://host:port?ssl_ca_certs=/path/to/ca.pem) and a host "
        "of the certificate; use redis:// if the server has no TLS",
    )


def _unavailable(error: Exception, shown: str) -> RedisUnavailableError:
    return RedisUnavailableError(
        f"the Redis at {shown} does not answer ({first_line(error)})",
        "start Redis, or correct redisUrl (rediss:// with TLS, redis:// without); positions stay in Redis and in "
        "the checkpoint",
    )


def _in_words(reply: str) -> str:
    """The reply. To a client without a password, a server answers with a long text about its protocol."""
    anonymous = any(words in reply for words in ("already authenticated", "Authentication required"))
    return "it asks for a password, and redisUrl has none" if anonymous else reply.rstrip(".")
