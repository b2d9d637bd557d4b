"""Every error that a server may reply has a row: our error, its words, and a remedy. Made from redis-py's own list."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress

import pytest
import redis
from redis.connection import DefaultParser

from coordinator.errors import (
    CoopKafkaError,
    RedisAccessError,
    RedisConfigurationError,
    RedisNotReadyError,
    RedisUnavailableError,
    StoreError,
)
from coordinator.redis.error_replies import ROWS, row_of
from coordinator.redis.errors import errors_as_ours
from own_valkey import OwnValkey
from store_world import StoreServer, World
from streams import eventually

SHOWN = "redis://host:6379/0"


def named(error: Exception) -> CoopKafkaError:
    """Our error for one of redis-py."""
    with pytest.raises(CoopKafkaError) as ours, errors_as_ours(SHOWN):
        raise error
    return ours.value


def parsed(reply: str) -> Exception:
    """The error that redis-py makes of a reply."""
    error: Exception = DefaultParser.parse_error(reply)  # type: ignore[no-untyped-call]
    return error


def replies_of_redis_py() -> Iterator[str]:
    """A reply for each entry of redis-py's own list."""
    for code, kind in DefaultParser.EXCEPTION_CLASSES.items():
        if isinstance(kind, Mapping):
            yield from (f"{code} {text}" for text in kind)
        else:
            yield f"{code} 42 127.0.0.1:7000" if code in ("ASK", "MOVED") else f"{code} some words."


@pytest.mark.parametrize("reply", list(replies_of_redis_py()))
def test_each_reply_of_redis_pys_list_has_a_row(reply: str) -> None:
    found = row_of(parsed(reply))
    assert found, "no generic text stands for it"
    row, _ = found
    error = named(parsed(reply))
    assert type(error) is row.error
    assert row.what in error.what
    assert error.remedy == row.remedy


NOT_READY: dict[str, tuple[str, str]] = {
    "READONLY You can't write against a read only replica.": ("is a replica", "primary"),
    "LOADING Redis is loading the dataset in memory": ("loads its data", "wait"),
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": ("lost its primary", "primary"),
    "CLUSTERDOWN The cluster is down": ("hash slots", "CLUSTER NODES"),
    "CLUSTERDOWN Hash slot not served": ("hash slots", "nodes that are down"),
    "TRYAGAIN Multiple keys request during rehashing of slot": ("moves a hash slot", "wait"),
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": (
        "read",
        "failover",
    ),
    "NOSCRIPT No matching script.": ("script", "name one server"),
    "OOM command not allowed when used memory > 'maxmemory'.": ("memory is full", "maxmemory"),
    "MISCONF Errors writing to the AOF file: No space left on device": ("cannot save", "disk"),
    "MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist": ("cannot save", "log"),
    "NOREPLICAS Not enough good replicas to write.": ("too few replicas", "min-replicas-to-write"),
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL": ("long script", "SCRIPT KILL"),
    "BUSY Redis is busy running a module command.": ("module command", "wait"),
    "ERR max number of clients reached": ("maxclients", "CLIENT LIST"),
    "ERR max number of clients + cluster connections reached": ("maxclients", "CLIENT LIST"),
    "ERR problem with LDAP service": ("LDAP", "start that LDAP service"),
}
ENDS: dict[str, tuple[type[StoreError], str, str]] = {
    "NOAUTH Authentication required.": (RedisAccessError, "asks for a password", "password in redisUrl"),
    "WRONGPASS invalid username-password pair or user is disabled.": (RedisAccessError, "WRONGPASS", "redisUrl"),
    "NOPERM this user has no permissions to run the 'hset' command": (RedisAccessError, "'hset'", "conf/redis.acl"),
    "DENIED Running in protected mode because": (RedisAccessError, "protected mode", "password"),
    "ERR operation not permitted": (RedisAccessError, "not permitted", "password"),
    "ERR unknown command 'EVALSHA', with args beginning with: ''": (RedisConfigurationError, "EVALSHA", "6.2 or newer"),
    "ERR unknown subcommand 'x'. Try SCRIPT HELP.": (RedisConfigurationError, "lacks a command", "redis.acl"),
    "MOVED 42 127.0.0.1:7000": (RedisConfigurationError, "one node of a cluster", "cluster=true"),
    "ASK 42 127.0.0.1:7000": (RedisConfigurationError, "one node of a cluster", "cluster=true"),
    "CROSSSLOT Keys in request don't hash to the same slot": (RedisConfigurationError, "proxy", "the cluster itself"),
    "ERR This instance has cluster support disabled": (RedisConfigurationError, "not a cluster", "cluster=true out"),
    "ERR DB index is out of range": (RedisConfigurationError, "no database of that number", "databases"),
    "ERR Protocol error: invalid bulk length": (RedisConfigurationError, "protocol", "host and port"),
    "NOPROTO unsupported protocol version": (RedisConfigurationError, "protocol", "host and port"),
    "EXECABORT Transaction discarded because of previous errors.": (StoreError, "does not send", "proxy"),
    "BUSYKEY Target key name already exists.": (StoreError, "does not send", "proxy"),
    "UNKILLABLE Sorry the script already executed write commands": (StoreError, "does not send", "proxy"),
}


_OLD_SCRIPT = "ERR Error running script (call to f_91): @user_script:7: @user_script: 7: -{reply}"
FORMS = ("{reply}", "{reply} script: 91ab, on @user_script:7.", _OLD_SCRIPT)
"""How a reply reaches a client."""


@pytest.mark.parametrize("reply", NOT_READY)
@pytest.mark.parametrize("form", FORMS, ids=["of a command", "in a script", "in a script of 6.2"])
def test_a_server_that_is_not_ready_is_asked_again_and_names_its_want(reply: str, form: str) -> None:
    error = named(parsed(form.format(reply=reply)))
    what, remedy = NOT_READY[reply]
    assert isinstance(error, RedisNotReadyError)
    assert what in error.what
    assert remedy in error.remedy
    assert not any(words in str(error) for words in ("does not answer", "start Redis")), error


@pytest.mark.parametrize("reply", ENDS)
def test_a_reply_that_time_does_not_cure_ends_by_name(reply: str) -> None:
    error = named(parsed(reply))
    kind, what, remedy = ENDS[reply]
    assert type(error) is kind
    assert what in error.what
    assert remedy in error.remedy


def test_every_row_has_a_reply_in_these_tests() -> None:
    replies = [*NOT_READY, *ENDS]
    found = {row.reply for r in replies if (pair := row_of(parsed(r))) for row in pair[:1]}
    assert found == {row.reply for row in ROWS}


NO_REPLY = {
    "ConnectionError", "TimeoutError", "MaxConnectionsError", "ClusterError", "RedisClusterException",
    "SlotNotCoveredError",
}  # fmt: skip
"""Errors of redis-py for a server that gave no answer."""
OF_MISUSE = {
    "RedisError", "ResponseError", "DataError", "PubSubError", "WatchError", "LockError", "LockNotOwnedError",
    "InvalidPipelineStack", "CrossSlotTransactionError",
}  # fmt: skip
"""Errors of redis-py about its caller, and roots of its tree."""


TEXTS = {
    "InvalidResponse": "Protocol error, got 'H' as reply type byte",
    "AuthenticationWrongNumberOfArgsError": "wrong number of arguments for 'auth' command",
    "ModuleError": "Error loading the extension. Please check the server logs.",
    "NoSuchFieldsetError": "no such fieldset",
    "ExternalAuthProviderError": "problem with LDAP service",
}
"""What redis-py writes into errors whose class says less than their text."""


def classes(*roots: type[Exception]) -> Iterator[type[Exception]]:
    for root in roots:
        yield root
        yield from classes(*root.__subclasses__())


def test_each_error_class_of_redis_py_is_no_answer_or_a_row_or_misuse() -> None:
    exceptions = redis.exceptions
    for kind in classes(exceptions.RedisError, exceptions.RedisClusterException):
        error = kind(TEXTS.get(kind.__name__, "42 127.0.0.1:7000"))
        if kind.__name__ in NO_REPLY:
            assert type(named(error)) is RedisUnavailableError, kind
        elif kind.__module__ == exceptions.__name__ and kind.__name__ not in OF_MISUSE:
            assert row_of(error), kind


def test_an_error_of_our_own_script_has_no_row() -> None:
    assert row_of(parsed("user_script:7: OOM is damaged script: 91, on @user_script:7.")) is None


def test_a_script_that_a_server_had_to_be_given_is_not_the_cause_of_a_later_error() -> None:
    """redis-py loads a script where it is unknown, and calls it again."""
    lost = redis.exceptions.ConnectionError("Connection closed by server.")
    lost.__context__ = redis.exceptions.NoScriptError("No matching script.")
    assert type(named(lost)) is RedisUnavailableError


# -- the same on real servers --------------------------------------------------------------------


@contextmanager
def full(server: OwnValkey) -> Iterator[None]:
    """Without memory."""
    server.configure(maxmemory="1")
    yield
    server.configure(maxmemory="0")


@contextmanager
def alone(server: OwnValkey) -> Iterator[None]:
    """Without the replicas that it must have."""
    server.configure(min_replicas_to_write="1")
    yield
    server.configure(min_replicas_to_write="0")


@contextmanager
def unsaved(server: OwnValkey) -> Iterator[None]:
    """It cannot write its file: a folder has that name."""
    server.configure(save="3600 1")
    (server.data / "dump.rdb").mkdir()
    with closing(redis.Redis.from_url(server.address)) as client:
        saved(client, "err")
        yield
        (server.data / "dump.rdb").rmdir()
        saved(client, "ok")


def saved(client: redis.Redis, result: str) -> None:
    client.bgsave()
    eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == result, f"the last save: {result}", 20)


@contextmanager
def copying(server: OwnValkey) -> Iterator[None]:
    """A replica, as after a failover."""
    with closing(redis.Redis.from_url(server.address)) as client:
        client.replicaof("127.0.0.1", "1")
        yield
        client.replicaof("NO", "ONE")


@contextmanager
def cut_off(server: OwnValkey) -> Iterator[None]:
    """A replica without its primary, which answers no reads either."""
    server.configure(replica_serve_stale_data="no")
    with copying(server):
        yield


@contextmanager
def crowded(server: OwnValkey) -> Iterator[None]:
    """With as many clients as it allows: the one that this test keeps."""
    with closing(redis.Redis.from_url(server.address)) as client:
        client.ping()
        client.config_set("maxclients", "1")
        yield
        client.config_set("maxclients", "1000")


@contextmanager
def busy(server: OwnValkey) -> Iterator[None]:
    """In a script that does not end."""
    server.configure(busy_reply_threshold="1")
    with (
        closing(redis.Redis.from_url(server.address)) as client,
        closing(redis.Redis.from_url(server.address)) as other,
    ):

        def spin() -> None:
            with suppress(redis.exceptions.ResponseError):
                other.eval("while true do end", 0)

        spinning = threading.Thread(target=spin)
        spinning.start()
        eventually(lambda: refuses_ping(client), "it is busy", 20)
        yield
        client.script_kill()
        spinning.join()


def refuses_ping(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.exceptions.ResponseError:
        return True
    return False


FAULTS: dict[str, tuple[Callable[[OwnValkey], AbstractContextManager[None]], str]] = {
    "OOM": (full, "its memory is full"),
    "NOREPLICAS": (alone, "too few replicas"),
    "MISCONF": (unsaved, "cannot save"),
    "READONLY": (copying, "is a replica"),
    "MASTERDOWN": (cut_off, "lost its primary"),
    "max number of clients": (crowded, "maxclients"),
    "BUSY": (busy, "long script"),
}


@pytest.mark.server
@pytest.mark.parametrize("code", FAULTS)
def test_a_server_in_a_bad_hour_is_named_and_the_next_call_after_it_succeeds(valkey: OwnValkey, code: str) -> None:
    fault, words = FAULTS[code]
    with closing(StoreServer(valkey.address)) as server:
        world = World(server)
        world.found()
        if code == "max number of clients":
            server.close()
        with fault(valkey):
            with pytest.raises(RedisNotReadyError, match=code) as error:
                World(server).found()
            assert words in error.value.what
        world.found()
