"""The arguments of the verbs that use Kafka: brokers, and a file of client properties; and the log that they open."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import javaproperties
import typer

from coordinator.errors import InvalidOptionError
from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.log_ends import log_ends, with_ends

if TYPE_CHECKING:
    from coordinator.kafka.log import KafkaLog

RETRIES, RETRY_INTERVAL_MS = 3, 1_000

Bootstrap = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT,...",
        envvar="COOP_KAFKA",
        help="Brokers: the option `kafka.bootstrap.servers`.",
        show_default=False,
    ),
]
EndsOf = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        envvar="COOP_KAFKA",
        help="Brokers: ask Kafka for end offsets. Without it, you see those that a member saw last, and their age.",
        show_default=False,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Properties file for the Kafka client, as for Kafka's own tools.",
    ),
]


def kafka_arguments(context: typer.Context, bootstrap: str, file: Path | None) -> Mapping[str, object]:
    """The Kafka client's arguments; raises `ConfigurationError`s."""
    found: Mapping[str, object] = context.obj.kafka_arguments({**_properties(file), "bootstrap.servers": bootstrap})
    return found


@contextmanager
def kafka_log(context: typer.Context, bootstrap: str, command_config: Path | None) -> Iterator["KafkaLog"]:
    """A log of these brokers, closed at the end."""
    from coordinator.kafka.log import KafkaLog  # noqa: PLC0415 - the other verbs need no Kafka client

    arguments = kafka_arguments(context, bootstrap, command_config)
    with closing(KafkaLog(arguments, retries=RETRIES, retry_interval_ms=RETRY_INTERVAL_MS)) as log:
        yield log


@contextmanager
def current_ends(
    context: typer.Context, bootstrap: str | None, command_config: Path | None
) -> Iterator[Callable[[GroupState], GroupState]]:
    """A function that puts the log ends of Kafka into a group's state. Without brokers, the ends stay as they are."""
    if bootstrap is None:
        yield lambda state: state
    else:
        with kafka_log(context, bootstrap, command_config) as log:
            yield lambda state: with_ends(state, log_ends(log, state.segments))


def _properties(file: Path | None) -> dict[str, str]:
    try:
        return dict(javaproperties.loads(file.read_text("utf-8"))) if file else {}
    except (OSError, ValueError) as error:
        raise InvalidOptionError(
            f"--command-config {str(file)!r} cannot be read ({type(error).__name__})",
            "pass a readable file of Java properties in UTF-8, with name=value on each line",
        ) from None
