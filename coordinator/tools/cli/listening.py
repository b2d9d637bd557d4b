"""What the verbs that serve HTTP share: where they listen, until when, and the log ends that they show."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from queue import SimpleQueue

import typer

from coordinator.errors import EnvironmentMismatchError, InvalidOptionError
from coordinator.tools.cli.kafka_arguments import kafka_arguments
from coordinator.tools.operations.log_ends import PATIENCE_S, EndsOfKafka

MOST_PORT = 65_535
_PLACE = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:\s]*)):(?P<port>[0-9]{1,5})", re.ASCII)


def checked(text: str) -> str:
    """The text of `--listen`, checked while typer reads the arguments."""
    place(text)
    return text


def place(text: str) -> tuple[str, int]:
    """Host and port of `[HOST]:PORT`; an IPv6 address is in brackets. Without HOST, all IPv4 addresses."""
    found = _PLACE.fullmatch(text)
    if not found or int(found["port"]) > MOST_PORT:
        raise typer.BadParameter(f"{text!r} is not [HOST]:PORT with a port of 0 to {MOST_PORT}, for example :9308")
    return found["v6"] or found["host"] or "0.0.0.0", int(found["port"])  # noqa: S104 - as the option says


def url(host: str, port: int) -> str:
    """The address for a browser."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


@contextmanager
def stopping() -> Iterator[Callable[[], int]]:
    """Yields a function that waits for Ctrl-C or SIGTERM, also for one that came before its call.

    The queue's `put` may interrupt its own `get`. `Event.set` must not: the handler runs on the thread that waits,
    and would wait for ever for a lock that this thread holds.
    """
    came: SimpleQueue[int] = SimpleQueue()
    before = {n: signal.signal(n, lambda number, _: came.put(number)) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came.get
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def listening(serving: AbstractContextManager[int], host: str, port: int) -> Iterator[int]:
    """A server until the end of the block. Raises `InvalidOptionError` if it cannot listen there."""
    with ExitStack() as stack:
        try:
            used = stack.enter_context(serving)
        except OSError as error:
            raise InvalidOptionError(
                f"--listen {host}:{port} cannot be used ({error.strerror or error})",
                "pass an address of this host, and a port that no other program uses",
            ) from None
        yield used


@contextmanager
def ends_of_kafka(context: typer.Context, bootstrap: str, command_config: Path | None) -> Iterator[EndsOfKafka]:
    """Asks these brokers for log ends until the end of the block; raises `ConfigurationError`s."""
    from coordinator.kafka.log import KafkaLog  # noqa: PLC0415 - the other verbs need no Kafka client

    patience = {"bootstrap_timeout_ms": round(PATIENCE_S * 1_000)}
    arguments = patience | dict(kafka_arguments(context, bootstrap, command_config))
    with (
        closing(KafkaLog(arguments, retries=0, retry_interval_ms=0, patience_ms=0)) as log,
        closing(EndsOfKafka(log)) as ends,
    ):
        yield ends


def missing(error: ModuleNotFoundError, extra: str, *packages: str) -> Exception:
    """The error of a verb without its extra; `error` itself if it is about another package than these."""
    if error.name is None or error.name.partition(".")[0].replace("_", "-") not in packages:
        return error
    named = " and ".join(packages)
    return EnvironmentMismatchError(
        f"coop-kafka {extra} needs {named}, which this Python lacks", f'pip install "coop-kafka[cli,{extra}]"'
    )
