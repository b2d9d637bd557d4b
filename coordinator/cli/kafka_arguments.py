"""The arguments of the verbs that use Kafka: brokers, and a file of client properties."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import javaproperties
import typer

from coordinator.errors import InvalidOptionError

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
    found: Mapping[str, object] = context.obj({**_properties(file), "bootstrap.servers": bootstrap})
    return found


def _properties(file: Path | None) -> dict[str, str]:
    try:
        return dict(javaproperties.loads(file.read_text("utf-8"))) if file else {}
    except (OSError, ValueError) as error:
        raise InvalidOptionError(
            f"--command-config {str(file)!r} cannot be read ({type(error).__name__})",
            "pass a readable file of Java properties in UTF-8, with name=value on each line",
        ) from None
