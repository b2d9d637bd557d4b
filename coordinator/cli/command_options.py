"""What the verbs of the command `coop-kafka` have in common: arguments, connections, JSON."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import typer

from coordinator.errors import InvalidOptionError
from coordinator.redis.client import RedisClient

Group = Annotated[
    str,
    typer.Argument(
        metavar="GROUP", help="Name of the group, as in the option `group` of its queries.", show_default=False
    ),
]
Redis = Annotated[
    str,
    typer.Option(
        "--redis",
        metavar="URL",
        envvar="COOP_REDIS",
        help="The Redis of the group, as in the option `redis.url`; rather in the environment if it holds a password.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

Execute = Annotated[bool, typer.Option("--execute", help="Do it; without, only show what would be done.")]


@contextmanager
def connected(redis: str) -> Iterator[RedisClient]:
    """A client of the Redis at that url, closed at the end."""
    try:
        client = RedisClient(redis)
    except InvalidOptionError as error:
        raise InvalidOptionError(error.what.replace("option 'redis.url'", "--redis"), error.remedy) from None
    with closing(client):
        yield client


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(value, indent=2))


def say_how(executed: bool) -> None:
    """Say after a dry run how to do it."""
    if not executed:
        typer.echo("Nothing was changed: add --execute to do it.")
