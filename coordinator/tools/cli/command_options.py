"""Arguments, connections and JSON that several verbs of `coop-kafka` share."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Annotated

import typer

from coordinator.errors import InvalidOptionError
from coordinator.redis.client import RedisClient
from coordinator.tools.cli import printing


def named(name: str | None) -> str | None:
    """Older releases of typer ask this also where the argument is missing, which they report next."""
    if name is not None and not name.strip():
        raise typer.BadParameter("the name of the group is empty")
    return name


Group = Annotated[
    str,
    typer.Argument(
        metavar="GROUP",
        help="Name of the group: the option `group` of its queries.",
        show_default=False,
        callback=named,
    ),
]
Redis = Annotated[
    str,
    typer.Option(
        "--redis",
        metavar="URL",
        envvar="COOP_REDIS",
        help="Redis of the group: the option `redisUrl`. Put a URL with a password into the environment.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

DrainWithin = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="Time in which the wanted slots would read the backlog, for autoscalers.",
    ),
]

Execute = Annotated[
    bool, typer.Option("--execute", help="Make the change. Without it, the command only shows the change.")
]


@contextmanager
def connected(redis: str) -> Iterator[RedisClient]:
    """A client of the Redis at that url, closed at the end."""
    with closing(RedisClient(redis)) as client:
        yield client


def print_json(value: object) -> None:
    """One JSON document on stdout; a view is an object with its fields."""
    printing.print_lines(*json.dumps(value, indent=2, default=asdict).splitlines())


def print_next_step(executed: bool) -> None:
    """Print after a dry run how to make the change."""
    if not executed:
        printing.print_lines("Nothing was changed. Add --execute to make the change.")


def key_bytes(text: str, as_hex: bool) -> bytes:
    """The key of an argument: text, or hex digits; raises `InvalidOptionError`."""
    try:
        return bytes.fromhex(text) if as_hex else text.encode(errors="surrogateescape")
    except ValueError:
        raise InvalidOptionError(
            f"KEY {text!r} is not in hex digits, two for each byte", "pass 6f7264 for ord"
        ) from None
