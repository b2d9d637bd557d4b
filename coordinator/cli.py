"""The command `coop-kafka`: where it starts, and how it ends when something is wrong.

Needs neither a JVM nor pyspark. The verbs are in `commands`, which need the extra `cli`.
Exit codes: 0 done, 1 an error of ours in one line on stderr, 2 wrong usage.
"""

import sys

from coordinator.errors import CoopKafkaError, EnvironmentMismatchError


def app() -> None:
    """Run the command line of this process (console script `coop-kafka`)."""
    try:
        _run()
    except CoopKafkaError as error:
        print(" ".join(str(error).split()), file=sys.stderr)  # noqa: T201 - the one line
        sys.exit(1)


def _run() -> None:
    try:
        from coordinator.commands import commands  # noqa: PLC0415 - the extra may not be installed
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        raise EnvironmentMismatchError(
            f"the command coop-kafka needs the package {error.name}, which is not installed",
            'pip install "coop-kafka[cli]"',
        ) from None
    commands()


if __name__ == "__main__":
    app()
