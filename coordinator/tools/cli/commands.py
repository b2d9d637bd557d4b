"""All verbs of the command `coop-kafka`, and their exit codes."""

from importlib import metadata
from typing import Annotated

import typer

from coordinator.errors import EnvironmentMismatchError, WrongUsageError
from coordinator.tools.cli import (
    audit_command,
    check_command,
    copy_commands,
    drain_command,
    exporter_command,
    lane_commands,
    look_commands,
    move_commands,
    operator_commands,
    picture_command,
    printing,
    redrive_command,
    ui_command,
)

_NAME = "coop-kafka"
commands = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    """Print the installed version, and end."""
    if not wanted:
        return
    try:
        printing.print_lines(f"{_NAME} {metadata.version(_NAME)}")
    except metadata.PackageNotFoundError:
        raise EnvironmentMismatchError(
            f"the package {_NAME} is not installed, so it has no version", 'pip install "coop-kafka[cli]"'
        ) from None
    raise typer.Exit


@commands.callback()
def coop_kafka(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version, then end.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Show and change groups of coop-kafka: members, positions, lag, policies.

    Exit codes: 0 done; 1 refused, not found or unreachable; 2 wrong usage; 3 an audit found faults.
    Each error is one line on stderr.
    """


groups = typer.Typer(no_args_is_help=True, help="Show the groups of coop-kafka in Redis.")
groups.command("list")(look_commands.list_of_groups)
commands.add_typer(groups, name="groups")
commands.command()(look_commands.describe)
commands.command()(look_commands.gaps)
commands.command()(look_commands.owner)
commands.command()(look_commands.events)
commands.command()(picture_command.picture)
commands.command()(check_command.check)
commands.command()(lane_commands.top)
commands.command()(lane_commands.parked)
commands.command()(lane_commands.failing)
commands.command()(lane_commands.release)
commands.command()(redrive_command.redrive)
commands.command()(exporter_command.exporter)
commands.command()(ui_command.ui)
commands.command()(audit_command.audit)
commands.command("drain")(drain_command.drain_members)
commands.command()(operator_commands.policy)
commands.command()(operator_commands.reset_offsets)
commands.command()(operator_commands.delete)
commands.command()(copy_commands.backup)
commands.command()(copy_commands.restore)
commands.command("import")(move_commands.import_positions)
commands.command()(move_commands.export)

_USAGE: type[Exception] = typer.BadParameter.__mro__[2]  # typer brings its own click, older ones use the package


def ended(outside: object) -> int:
    """Run the arguments of this process and return the exit code. `outside` is what verbs find as `context.obj`."""
    try:
        code = commands(obj=outside, prog_name=_NAME, standalone_mode=False)
    except _USAGE as error:
        return _wrong_usage(error)
    except typer.Abort:
        return _INTERRUPTED
    return code if isinstance(code, int) else 0


_INTERRUPTED = 130
"""The exit code of a shell after Ctrl-C."""


def _wrong_usage(error: Exception) -> int:
    """Print typer's error in one line; a command without arguments has shown its help."""
    if type(error).__name__ != "NoArgsIsHelpError":
        why = " ".join(str(getattr(error, "format_message", lambda: error)()).split()).rstrip(".")
        path = getattr(getattr(error, "ctx", None), "command_path", None) or _NAME
        printing.complain(str(WrongUsageError(why, f"look at its arguments: {path} --help")))
    return 2
