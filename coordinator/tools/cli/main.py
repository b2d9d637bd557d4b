"""The start and the end of the command `coop-kafka`: each error is one line on stderr, and an exit code.

The verbs are in `commands`, which need the extra `cli`.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from coordinator.errors import CoopKafkaError, EnvironmentMismatchError
from coordinator.tools.cli import printing, wording

if TYPE_CHECKING:
    from coordinator.tools.audit.columns import KeyColumns


class Outside(NamedTuple):
    """What the verbs use and `coordinator` does not have: they find it as `context.obj`."""

    kafka_arguments: Callable[[Mapping[str, str]], Mapping[str, object]]  # of a client, from Java's properties
    key_columns: "KeyColumns"  # reads a log for an audit


def app(outside: Outside, properties: Collection[str]) -> None:
    """Run the command line of this process, and end it. `properties` are the names of Java's properties."""
    printing.encode_all()
    try:
        code = _run(outside)
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


def _run(outside: Outside) -> int:
    try:
        from coordinator.tools.cli.commands import ended  # noqa: PLC0415 - the extra may not be installed
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "javaproperties"):
            raise
        raise EnvironmentMismatchError(
            f"the command coop-kafka needs the package {error.name}, which is not installed",
            'pip install "coop-kafka[cli]"',
        ) from None
    return ended(outside)
