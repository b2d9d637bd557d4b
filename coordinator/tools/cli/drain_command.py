"""The verb `coop-kafka drain`: other members take over, before a driver is stopped."""

import time
from typing import Annotated

import typer

from coordinator.errors import UnknownGroupError
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replica_sets import siblings
from coordinator.redis.snapshot import list_groups, read_group
from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import AsJson, Execute, Group, Redis, connected, print_json, print_next_step
from coordinator.tools.cli.printing import complain, counted, print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.operations.draining import chosen, drain, handed_over, owned
from coordinator.tools.operations.views import view, working


def drain_members(
    group: Group,
    redis: Redis,
    member: Annotated[
        str | None, typer.Option(metavar="MEMBER", help="The member, as `describe` shows it.", show_default=False)
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="All members whose driver runs on this host.", show_default=False),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Longest wait until others own the ranges.")
    ] = 60.0,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Move the ranges of members to the others, and wait. Stop their queries afterwards.

    Each range moves between two batches, so nothing waits for the end of a lease.
    A drained member is a standby until its query starts again: it takes over if the others are lost.
    """
    if (member is None) == (host is None):
        raise typer.BadParameter("pass either --member or --host")
    began, found, ranges, done = time.monotonic(), list[str](), 0, execute
    with waiting("drain", as_json=as_json), connected(redis) as client:
        for name in (group, *siblings(group, list_groups(client))):
            members = chosen(state := read_group(client, name), member, host)
            if members:
                ranges += owned(name, state, members, working(view(name, state).members))
            if members and execute:
                drain(OperatorVerbs.of_group(client, name), members)
                done &= handed_over(client, name, members, timeout)
            found += members
    if not found:
        raise UnknownGroupError(f"group {group!r} has no active member {member or f'on the host {host}'}")
    seconds = time.monotonic() - began if execute else 0.0
    if as_json:
        print_json(documents.of_drain(found, seconds, done=done, executed=execute))
    elif not execute:
        print_lines(f"Would move {counted(ranges, 'range')} of {', '.join(found)}.")
        print_next_step(execute)
    elif done:
        print_lines(f"Other members own all ranges of {', '.join(found)} after {seconds:.1f} s.")
    if execute and not done:
        complain(f"{', '.join(found)} still owns ranges after {seconds:.0f} s: they move after the running batch")
        raise typer.Exit(1)
