"""The command `coop-kafka`: where it starts, and how it ends when something is wrong.

Needs neither a JVM nor pyspark. The verbs are in `commands`, which need the extra `cli`.
Exit codes: 0 done; 1 an error of ours (refused, not found, out of reach) in one line on stderr; 2 wrong usage.
"""

import sys
from collections.abc import Callable, Mapping

from coordinator.errors import CoopKafkaError, EnvironmentMismatchError

KafkaArguments = Callable[[Mapping[str, str]], Mapping[str, object]]


def app(kafka_arguments: KafkaArguments) -> None:
    """Run the command line of this process; `kafka_arguments` makes a client's arguments of Java's properties."""
    try:
        _run(kafka_arguments)
    except CoopKafkaError as error:
        print(" ".join(str(error).split()), file=sys.stderr)  # noqa: T201 - the one line
        sys.exit(1)


def _run(kafka_arguments: KafkaArguments) -> None:
    try:
        from coordinator.cli.commands import commands  # noqa: PLC0415 - the extra may not be installed
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "javaproperties"):
            raise
        raise EnvironmentMismatchError(
            f"the command coop-kafka needs the package {error.name}, which is not installed",
            'pip install "coop-kafka[cli]"',
        ) from None
    commands(obj=kafka_arguments)
