"""The verb `coop-kafka exporter`: all groups of a Redis as metrics of Prometheus."""

from typing import Annotated

import typer

from coordinator.tools.cli.command_options import DrainWithin, Redis, connected
from coordinator.tools.cli.kafka_arguments import Bootstrap, CommandConfig
from coordinator.tools.cli.listening import checked, ends_of_kafka, listening, missing, place, stopping, url
from coordinator.tools.cli.printing import complain, print_lines
from coordinator.tools.operations.wanted_slots import DRAIN_S


def exporter(
    context: typer.Context,
    redis: Redis,
    bootstrap_server: Bootstrap,
    command_config: CommandConfig = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="[HOST]:PORT",
            callback=checked,
            help="Address of the HTTP server. Without HOST, all IPv4 addresses of this host.",
        ),
    ] = ":9308",
    drain_within: DrainWithin = DRAIN_S,
) -> None:
    """Serve metrics of all groups to Prometheus, until Ctrl-C or SIGTERM. monitoring.md lists them.

    Each scrape reads Redis, and asks Kafka for end offsets. It needs the extra `exporter`.
    """
    try:
        from coordinator.tools.exporter.look import Watcher  # noqa: PLC0415 - the other verbs need no Prometheus
        from coordinator.tools.exporter.server import serving  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing(error, "exporter", "prometheus-client") from None
    host, port = place(listen)
    with (
        stopping() as until_stopped,
        connected(redis) as client,
        ends_of_kafka(context, bootstrap_server, command_config) as ends,
        listening(serving(host, port, Watcher(client, ends, complain, drain_within)), host, port) as used,
    ):
        print_lines(f"Metrics at {url(host, used)}metrics")
        until_stopped()
