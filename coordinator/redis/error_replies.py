"""Every error that a server may reply in a bad hour: what it means, and what the user does. One table, no IO.

The class of a row decides what we do. `RedisNotReadyError`: the caller asks again later, and `client` has dropped the
connection: the next try asks for the address again, and meets the server that is the primary then. Any other class:
the call ends with that error.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import redis
from redis.connection import DefaultParser

from coordinator.errors import RedisAccessError, RedisConfigurationError, RedisNotReadyError, StoreError

COMMANDS = "allow the commands and keys of conf/redis.acl"


@dataclass(frozen=True, slots=True)
class ReplyKind:
    """One kind of reply. `what` follows the words "the Redis at URL"."""

    reply: str  # pattern of its beginning; `ERR ` is left out
    error: type[StoreError]
    what: str
    remedy: str


ROWS = (
    # -- a failover, a start, a move: over within seconds
    ReplyKind(
        "READONLY ",
        RedisNotReadyError,
        "takes no writes: it is a replica",
        "if this is a failover, wait for its end; otherwise let redisUrl name the primary",
    ),
    ReplyKind(
        "LOADING ",
        RedisNotReadyError,
        "has started, and still loads its data",
        "wait for the end of its start: INFO persistence shows loading_eta_seconds",
    ),
    ReplyKind(
        "MASTERDOWN ",
        RedisNotReadyError,
        "is a replica that has lost its primary",
        "start the primary, or let redisUrl name it",
    ),
    ReplyKind(
        "CLUSTERDOWN |SlotNotCovered|Slot .* not covered",
        RedisNotReadyError,
        "is a cluster that has no node for some of its hash slots",
        "start the nodes that are down, or let replicas take over: CLUSTER INFO and CLUSTER NODES show them",
    ),
    ReplyKind(
        "TRYAGAIN ",
        RedisNotReadyError,
        "moves a hash slot of our keys to another node",
        "wait for the end of that move, or end it: CLUSTER NODES shows it",
    ),
    ReplyKind(
        "UNBLOCKED ",
        RedisNotReadyError,
        "has ended a read that waited, as in a failover",
        "if this is a failover, wait for its end",
    ),
    ReplyKind(
        "NOSCRIPT ",
        RedisNotReadyError,
        "does not know a script that it was just given",
        "let redisUrl name one server, or one cluster with cluster=true: behind this address are several",
    ),
    # -- a want of the server: over once somebody has seen to it
    ReplyKind(
        "OOM ",
        RedisNotReadyError,
        "takes no writes: its memory is full",
        "raise its maxmemory, or delete keys that are not coop-kafka's: INFO memory shows used_memory and maxmemory",
    ),
    ReplyKind(
        "MISCONF ",
        RedisNotReadyError,
        "takes no writes: it cannot save its data",
        "free its disk, or make its folder writable: its log names the cause, CONFIG GET dir the folder, and INFO "
        "persistence the last result",
    ),
    ReplyKind(
        "NOREPLICAS ",
        RedisNotReadyError,
        "takes no writes: it has too few replicas",
        "start its replicas, or lower min-replicas-to-write: INFO replication shows those that it has",
    ),
    ReplyKind(
        "BUSY ",
        RedisNotReadyError,
        "runs a long script or module command, and takes no calls",
        "wait for its end, or end it with SCRIPT KILL or FUNCTION KILL: the scripts of coop-kafka take milliseconds",
    ),
    ReplyKind(
        "max number of clients",
        RedisNotReadyError,
        "takes no connection: it has as many clients as maxclients allows",
        "raise its maxclients, or stop clients: CLIENT LIST shows them",
    ),
    ReplyKind(
        "problem with LDAP service",
        RedisNotReadyError,
        "cannot ask its LDAP service for our user",
        "start that LDAP service, or use a user of the server's own",
    ),
    # -- rights
    ReplyKind(
        "NOAUTH |WRONGPASS |NOPERM |DENIED |ACL failure|The user executing the script can't |invalid password"
        "|operation not permitted|(?i:wrong number of arguments for 'auth' command)|AUTH <password> called without"
        "|Client sent AUTH",
        RedisAccessError,
        "refuses our user",
        "put user and password in redisUrl (redis://user:password@host, without a user redis://:password@host)"
        f", and {COMMANDS}; backup, restore, delete: as coop-kafka-operator",
    ),
    # -- the wrong kind of server
    ReplyKind(
        "unknown (sub)?command",
        RedisConfigurationError,
        "lacks a command: it is too old, or the command has another name there",
        f"use Valkey, or Redis 6.2 or newer, and {COMMANDS}",
    ),
    ReplyKind(
        "MOVED |ASK ",
        RedisConfigurationError,
        "is one node of a cluster, and other nodes hold some of our keys",
        "add ?cluster=true to redisUrl",
    ),
    ReplyKind(
        "CROSSSLOT ",
        RedisConfigurationError,
        "is a proxy that does not know that keys with one {name} belong together",
        "let redisUrl name the cluster itself, with ?cluster=true",
    ),
    ReplyKind(
        ".*Cluster mode is not enabled|This instance has cluster support disabled",
        RedisConfigurationError,
        "is not a cluster",
        "leave cluster=true out of redisUrl",
    ),
    ReplyKind(
        "(DB index|invalid DB index|SELECT is not allowed)",
        RedisConfigurationError,
        "has no database of that number",
        "name another one in redisUrl, below the server's setting databases: redis://host:port/0",
    ),
    ReplyKind(
        "(?i:protocol error)|NOPROTO ",
        RedisConfigurationError,
        "does not speak the protocol of Redis, or another version of it",
        "correct host and port of redisUrl: another service listens there, or a proxy stands between",
    ),
    # -- replies to commands that we do not send
    ReplyKind(
        "EXECABORT |BUSYKEY |BUSYGROUP |NOGROUP |NOTBUSY |UNKILLABLE |INPROG |NOGOOD|NOMASTERLINK |IOERR |INVALIDOBJ "
        "|Error (un)?loading the (extension|module)|Error unloading module|no such fieldset",
        StoreError,
        "gives an answer to a command that coop-kafka does not send",
        "let redisUrl name the server itself, not a proxy; else report this with the version of the server",
    ),
)
_CODES = {kind: code for code, kind in DefaultParser.EXCEPTION_CLASSES.items() if isinstance(kind, type)}
_CODES |= {redis.exceptions.AuthorizationError: "NOPERM"}
_CALL = re.compile(
    r"(ERR )?(Error running script \(call to \w+\): @user_script:\d+: )?(@user_script: ?\d+: -?)?(ERR )?"
)
_TAIL = re.compile(r",? script: (\w+, )?on @user_script:\d+\.?$")


def reply_of(error: BaseException) -> str:
    """The reply that redis-py made this error of, without the place in the script: it begins with its code.

    redis-py takes some codes out of the text; and there may be a code behind `ERR`.
    Redis 6.2: Error running script (call to f_91): @user_script:7: @user_script: 7: -OOM command not allowed ...
    newer:     NOREPLICAS Not enough good replicas to write. script: 91, on @user_script:7.
    our own:   user_script:7: coop:v1:{OOM}:meta, a string, is damaged script: 91, on @user_script:7.
    """
    code = getattr(error, "status_code", None) or _CODES.get(type(error), "")
    code = "" if code == "ERR" else code
    said = _TAIL.sub("", _CALL.sub("", first_line(error), count=1))
    return f"{code} {said}" if code and not said.startswith(f"{code} ") else said


def row_of(error: BaseException) -> tuple[ReplyKind, str] | None:
    """The row of the reply, and the reply; None for an error that is no reply, and for an error of our own scripts."""
    for said in map(reply_of, _replies(error)):
        for row in ROWS:
            if re.match(row.reply, said):
                return row, said
    return None


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes: a cluster's client reports every failure as one of the cluster."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def first_line(error: BaseException) -> str:
    """Its text, or its class."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def _replies(error: BaseException) -> Iterator[BaseException]:
    """The error if it is a reply; otherwise its causes too, without a NOSCRIPT, which has been answered."""
    yield error
    if not isinstance(error, redis.exceptions.ResponseError):
        yield from (e for e in chain(error) if e is not error and not isinstance(e, redis.exceptions.NoScriptError))
