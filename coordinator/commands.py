"""The verbs of the command `coop-kafka`: what each asks Redis, and whether it prints a table or JSON."""

import json
from contextlib import closing
from dataclasses import asdict
from typing import Annotated

import typer

from coordinator.redis_client import RedisClient
from coordinator.redis_snapshot import list_groups, read_group
from coordinator.tables import print_group, stdout
from coordinator.views import view

commands = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

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


@commands.callback()
def coop_kafka() -> None:
    """Look at groups of coop-kafka: who reads what, and how far."""


groups = typer.Typer(no_args_is_help=True, help="The groups of coop-kafka that Redis holds.")
commands.add_typer(groups, name="groups")


@groups.command("list")
def list_names(redis: Redis, as_json: Json = False) -> None:
    """List the names of the groups, one on a line."""
    with closing(RedisClient(redis)) as client:
        names = list_groups(client)
    typer.echo(json.dumps(names, indent=2) if as_json else "\n".join(names))


@commands.command()
def describe(group: Group, redis: Redis, as_json: Json = False) -> None:
    """Show a group's members and, for each partition, its lanes: position, lag, member."""
    with closing(RedisClient(redis)) as client:
        seen = view(group, read_group(client, group))
    if as_json:
        typer.echo(json.dumps(asdict(seen), indent=2))
    else:
        print_group(seen, stdout())
