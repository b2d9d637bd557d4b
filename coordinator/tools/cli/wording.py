"""Errors in the words of the command: flags and properties in place of a query's options."""

import re
from collections.abc import Collection

from coordinator.errors import (
    ConfigurationError,
    ConflictingOptionsError,
    CoopKafkaError,
    InvalidOptionError,
    MissingOptionError,
    UnknownOptionError,
)

WRONG_USAGE = (ConflictingOptionsError, InvalidOptionError, MissingOptionError, UnknownOptionError)
"""Arguments, flags or properties that cannot be used, alone or together."""

_FLAGS = (
    ("option 'redisUrl'", "--redis"),
    ("redisUrl", "--redis"),
    ("option kafka.bootstrap.servers", "--bootstrap-server"),
    ("kafka.bootstrap.servers", "--bootstrap-server"),
    ("start the query again", "run the command again"),
)


def line(error: CoopKafkaError, properties: Collection[str]) -> str:
    """The error in one line; `properties` are the names of Kafka's client, which a query writes with `kafka.`.

    Only remedies and texts about configuration change: elsewhere the same name may be that of a group.
    """
    what = _as_flags(error.what, properties) if isinstance(error, ConfigurationError) else error.what
    return " ".join(str(type(error)(what, _as_flags(error.remedy, properties))).split())


def _as_flags(text: str, properties: Collection[str]) -> str:
    for option, flag in _FLAGS:
        text = text.replace(option, flag)
    names = "|".join(map(re.escape, sorted(properties, key=len, reverse=True)))
    text = re.sub(rf"\boption kafka\.({names})(?![\w-])", r"property \1 of --command-config", text)
    return re.sub(rf"(?<![\w.-])kafka\.({names})(?![\w-])", r"\1", text)
