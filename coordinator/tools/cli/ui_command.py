"""The verb `coop-kafka ui`: groups in a browser."""

import ipaddress
from contextlib import nullcontext
from typing import Annotated

import typer

from coordinator.errors import InvalidOptionError
from coordinator.redis.snapshot import list_groups
from coordinator.tools.cli.command_options import Redis, connected
from coordinator.tools.cli.kafka_arguments import CommandConfig, EndsOf
from coordinator.tools.cli.listening import checked, ends_of_kafka, listening, missing, place, stopping, url
from coordinator.tools.cli.printing import complain, print_lines

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def ui(
    context: typer.Context,
    redis: Redis,
    bootstrap_server: EndsOf = None,
    command_config: CommandConfig = None,
    listen: Annotated[
        str, typer.Option(metavar="[HOST]:PORT", callback=checked, help="Address of the page. Port 0 takes a free one.")
    ] = "127.0.0.1:8080",
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote", help="Allow an address in --listen that other hosts reach. The page has no password."
        ),
    ] = False,
) -> None:
    """Show groups in a browser until Ctrl-C or SIGTERM. The page only reads. It needs the extra `ui`.

    It shows names of groups, topics, members and hosts, positions, and error messages of functions.
    """
    host, port = place(listen)
    local = is_loopback(host)
    if not (local or allow_remote):
        raise InvalidOptionError(
            f"--listen {listen} is reachable from other hosts, and the page has no password",
            "listen on 127.0.0.1, or add --allow-remote",
        )
    try:
        from coordinator.tools.page.application import application  # noqa: PLC0415 - the other verbs need no web server
        from coordinator.tools.page.looks import Looks  # noqa: PLC0415
        from coordinator.tools.page.server import serving  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing(error, "ui", "starlette", "uvicorn") from None
    if not local:
        complain(
            "warning: everybody who reaches this address sees names of groups, topics, members and hosts, positions,"
            " and error messages of functions"
        )
    of_kafka = ends_of_kafka(context, bootstrap_server, command_config) if bootstrap_server else nullcontext()
    with stopping() as until_stopped, connected(redis) as client, of_kafka as ends:
        list_groups(client)  # a Redis that does not answer is an error now, and a line on the page later
        hosts = {*_LOOPBACK, url(host, 0)[len("http://") : -len(":0/")]} if local else {"*"}
        with listening(serving(host, port, application(Looks(client, ends), hosts)), host, port) as used:
            print_lines(f"Groups at {url(host, used)}")
            until_stopped()


def is_loopback(host: str) -> bool:
    """Whether only processes of this host can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
