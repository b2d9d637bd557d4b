"""The start and the end of the command `coop-kafka`: each error is one line on stderr, and an exit code.

The verbs are in `commands`, which need the extra `cli`.
"""

import sys
from collections.abc import Callable, Collection, Mapping

from coordinator.cli import printing, wording
from coordinator.errors import CoopKafkaError, EnvironmentMismatchError

KafkaArguments = Callable[[Mapping[str, str]], Mapping[str, object]]


def app(kafka_arguments: KafkaArguments, properties: Collection[str]) -> None:
    """Run the command line of this process, and end it.

    `kafka_arguments` makes a client's arguments from Java's properties, whose names are `properties`.
    """
    printing.encode_all()
    try:
        code = _run(kafka_arguments)
        sys.stdout.flush()
    except CoopKafkaError as error:
        code = _failed(error, properties)
    except BrokenPipeError as error:  # `| head` has ended
        printing.refused(error)
        code = 1
    except OSError as error:
        if error.filename is not None:
            raise
        code = _failed(printing.refused(error), properties)
    sys.exit(code)


def _failed(error: CoopKafkaError, properties: Collection[str]) -> int:
    printing.complain(wording.line(error, properties))
    return 2 if isinstance(error, wording.WRONG_USAGE) else 1


def _run(kafka_arguments: KafkaArguments) -> int:
    try:
        from coordinator.cli.commands import ended  # noqa: PLC0415 - the extra may not be installed
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "javaproperties"):
            raise
        raise EnvironmentMismatchError(
            f"the command coop-kafka needs the package {error.name}, which is not installed",
            'pip install "coop-kafka[cli]"',
        ) from None
    return ended(kafka_arguments)
