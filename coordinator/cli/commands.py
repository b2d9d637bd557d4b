"""The command `coop-kafka`: its verbs put together."""

import typer

from coordinator.cli import copy_commands, lane_commands, look_commands, operator_commands

commands = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@commands.callback()
def coop_kafka() -> None:
    """Look at groups of coop-kafka, who reads what and how far, and move them.

    Exit codes: 0 done; 1 refused, not found or out of reach, with one line on stderr; 2 wrong usage.
    """


groups = typer.Typer(no_args_is_help=True, help="The groups of coop-kafka that Redis holds.")
groups.command("list")(look_commands.list_names)
commands.add_typer(groups, name="groups")
commands.command()(look_commands.describe)
commands.command()(look_commands.gaps)
commands.command()(look_commands.owner)
commands.command()(look_commands.events)
commands.command()(lane_commands.top)
commands.command()(lane_commands.parked)
commands.command()(lane_commands.release)
commands.command()(operator_commands.policy)
commands.command()(operator_commands.reset_offsets)
commands.command()(operator_commands.delete)
commands.command()(copy_commands.backup)
commands.command()(copy_commands.restore)
