"""The verb `coop-kafka exporter`: all groups of a Redis as metrics of Prometheus."""

import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import Annotated

import typer

from coordinator.cli.command_options import Redis, connected
from coordinator.cli.kafka_arguments import Bootstrap, CommandConfig, kafka_arguments
from coordinator.cli.printing import complain, print_lines
from coordinator.errors import EnvironmentMismatchError

MOST_PORT = 65_535
_LISTEN = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:\s]*)):(?P<port>[0-9]{1,5})", re.ASCII)


def _checked(text: str) -> str:
    _place(text)
    return text


def exporter(
    context: typer.Context,
    redis: Redis,
    bootstrap_server: Bootstrap,
    command_config: CommandConfig = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="[HOST]:PORT",
            callback=_checked,
            help="Address of the HTTP server. Without HOST, all IPv4 addresses of this host.",
        ),
    ] = ":9308",
) -> None:
    """Serve metrics of all groups to Prometheus, until Ctrl-C or SIGTERM. docs/monitoring.md lists them.

    Each scrape reads Redis, and asks Kafka for log ends. It needs the extra `exporter`.
    """
    try:
        from coordinator.exporter.look import PATIENCE_S, Kafka, Watcher  # noqa: PLC0415 - the other verbs need no Kafka client
        from coordinator.exporter.server import serving  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    from coordinator.kafka.log import KafkaLog  # noqa: PLC0415

    patience = {"bootstrap_timeout_ms": round(PATIENCE_S * 1_000)}
    arguments = patience | dict(kafka_arguments(context, bootstrap_server, command_config))
    host, port = _place(listen)
    with (
        _stopped() as stop,
        connected(redis) as client,
        closing(KafkaLog(arguments, retries=0, retry_interval_ms=0)) as log,
        closing(Kafka(log)) as kafka,
        serving(host, port, Watcher(client, kafka, complain)) as used,
    ):
        print_lines(f"Metrics at http://{f'[{host}]' if ':' in host else host}:{used}/metrics")
        stop.wait()


def _place(text: str) -> tuple[str, int]:
    """Host and port."""
    found = _LISTEN.fullmatch(text)
    if not found or int(found["port"]) > MOST_PORT:
        raise typer.BadParameter(f"{text!r} is not [HOST]:PORT with a port of 0 to {MOST_PORT}, for example :9308")
    return found["v6"] or found["host"] or "0.0.0.0", int(found["port"])  # noqa: S104 - as the option says


@contextmanager
def _stopped() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stop = Event()
    before = {n: signal.signal(n, lambda *_: stop.set()) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _missing(error: ModuleNotFoundError) -> Exception:
    if error.name is None or error.name.partition(".")[0] != "prometheus_client":
        return error
    return EnvironmentMismatchError(
        "coop-kafka exporter needs the package prometheus-client, which is not installed",
        'pip install "coop-kafka[cli,exporter]"',
    )
