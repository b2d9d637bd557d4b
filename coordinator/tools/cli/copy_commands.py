"""The verbs of `coop-kafka` that copy a group to a file and back: backup, restore."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import AsJson, Execute, Group, Redis, connected, print_json, print_next_step
from coordinator.tools.cli.printing import counted, moment, print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.operations import copies
from coordinator.tools.operations.copies import GroupCopy


def backup(
    group: Group,
    redis: Redis,
    as_json: Annotated[bool, typer.Option("--json", help="No effect: backup always prints JSON.")] = False,
) -> None:
    """Print a copy of the group's state as JSON: positions, policies and quarantined lanes. Members may be at work."""
    with waiting("backup", as_json=as_json), connected(redis) as client:
        copy = copies.backup(client, group)
    print_lines(*copy.text.splitlines())


def restore(
    group: Group,
    redis: Redis,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", exists=True, dir_okay=False, help="A file with the output of backup.", show_default=False
        ),
    ],
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Replace the group's state in Redis by a copy. Refused while members are active.

    The next query raises the positions to those that its checkpoint and Kafka's group of the same name prove.
    Records after these positions are read again.
    """
    copy = GroupCopy.parse(file.read_bytes(), group)
    if execute:
        with waiting("restore", as_json=as_json), connected(redis) as client:
            copies.restore(client, copy)
    if as_json:
        print_json(documents.of_copy(copy, executed=execute))
    else:
        did = "Restored" if execute else "Would restore"
        taken = moment(copy.taken_ms, "seconds")
        print_lines(f"{did} {counted(len(copy.keys), 'key')} of group {group!r} as of {taken}.")
        print_next_step(execute)
