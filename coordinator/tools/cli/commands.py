"""All verbs of the command `coop-kafka`, and their exit codes."""

from collections.abc import Callable, Mapping
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


VERBS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Look": {
        "list": look_commands.list_of_groups,
        "describe": look_commands.describe,
        "top": lane_commands.top,
        "stuck": lane_commands.stuck,
        "gaps": look_commands.gaps,
        "owner": look_commands.owner,
        "events": look_commands.events,
        "picture": look_commands.picture,
        "check": check_command.check,
        "audit": audit_command.audit,
    },
    "Repair": {
        "release": lane_commands.release,
        "redrive": redrive_command.redrive,
        "reset-offsets": operator_commands.reset_offsets,
        "policy": operator_commands.policy,
        "delete": operator_commands.delete,
        "backup": copy_commands.backup,
        "restore": copy_commands.restore,
    },
    "Move": {
        "drain": drain_command.drain_members,
        "import": move_commands.import_positions,
        "export": move_commands.export,
    },
    "Serve": {"exporter": exporter_command.exporter, "ui": ui_command.ui},
}
"""The verbs by the panels of `--help`."""

for _panel, _verbs in VERBS.items():
    for _verb, _function in _verbs.items():
        commands.command(_verb, rich_help_panel=_panel)(_function)

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
