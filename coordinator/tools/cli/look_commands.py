"""The verbs of `coop-kafka` that only read: list, describe, gaps, owner, events."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from coordinator.errors import StoreError, UnknownGroupError
from coordinator.redis.client import RedisClient
from coordinator.redis.events import follow as follow_events
from coordinator.redis.events import last_events
from coordinator.redis.group_state import GroupEvent, GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replica_sets import siblings
from coordinator.redis.snapshot import list_groups, of_one_group, read_group
from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import AsJson, Group, Redis, connected, key_bytes, print_json
from coordinator.tools.cli.kafka_arguments import CommandConfig, EndsOf, current_ends
from coordinator.tools.cli.printing import complain, moment, print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.cli.tables import (
    print_age,
    print_failing_count,
    print_gaps,
    print_group,
    print_groups,
    print_limited,
    print_owners,
    stdout,
)
from coordinator.tools.operations.gaps import gaps as gaps_of
from coordinator.tools.operations.group_list import UNREADABLE, GroupLine, group_line
from coordinator.tools.operations.key_owner import key_owners, usual_partition
from coordinator.tools.operations.top_view import limited_lanes
from coordinator.tools.operations.views import oldest_end_s, view

MOST_ASKED = 1_000_000
"""The limit of `--last`: more events than a group keeps, and a number that Redis accepts."""


def list_of_groups(
    context: typer.Context,
    redis: Redis,
    bootstrap_server: EndsOf = None,
    command_config: CommandConfig = None,
    as_json: AsJson = False,
) -> None:
    """Show each group in a line: state, members with a lease, and lag.

    END AGE S is the age of its oldest log end in seconds.
    """
    with (
        waiting("list", as_json=as_json),
        connected(redis) as client,
        current_ends(context, bootstrap_server, command_config) as current,
    ):
        lines = [line for name in list_groups(client) if (line := _line_of(client, name, current))]
    if as_json:
        print_json(documents.of_lines(lines))
    else:
        print_groups(lines)


def _line_of(client: RedisClient, group: str, current: Callable[[GroupState], GroupState]) -> GroupLine | None:
    """The line of a group; None if it has expired. A damaged group does not hide the others."""
    try:
        return group_line(group, current(read_group(client, group)))
    except UnknownGroupError:
        return None
    except StoreError as error:
        if not of_one_group(error):
            raise
        complain(f"warning: group {group!r}: {error}")
        return GroupLine(group, UNREADABLE)


def describe(
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: EndsOf = None,
    command_config: CommandConfig = None,
    as_json: AsJson = False,
) -> None:
    """Show a group's state, its members and the lanes of each partition: position, lag, member.

    A second table shows the lanes that a bound limits, and the bound. `coop-kafka top` shows all lanes at work.
    With redundancy, the same follows for each other replica set of the group.
    """
    with (
        waiting("describe", as_json=as_json),
        connected(redis) as client,
        current_ends(context, bootstrap_server, command_config) as current,
    ):
        sets = siblings(group, list_groups(client))
        states = {name: current(read_group(client, name)) for name in (group, *sets)}
        failing = {name: OperatorVerbs.of_group(client, name).poison.failing() for name in states}
    if as_json:
        found = (documents.of_group(view(n, state), limited_lanes(state), failing[n]) for n, state in states.items())
        print_json(documents.of_sets(found))
        return
    for name, state in states.items():
        print_group(seen := view(name, state), stdout())
        print_failing_count(failing[name])
        print_age(oldest_end_s(seen.partitions), asked=bootstrap_server is not None)
        print_limited(limited_lanes(state))


def gaps(
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: EndsOf = None,
    command_config: CommandConfig = None,
    as_json: AsJson = False,
) -> None:
    """Show the stable offset of each partition, and the gaps between it and the furthest lane.

    Offset ranges are inclusive: `45-50` means the records 45 to 50.
    """
    with (
        waiting("gaps", as_json=as_json),
        connected(redis) as client,
        current_ends(context, bootstrap_server, command_config) as current,
    ):
        found = gaps_of(current(read_group(client, group)))
    if as_json:
        print_json(documents.of_gaps(found))
    else:
        print_gaps(found)
        print_age(oldest_end_s(found), asked=bootstrap_server is not None)


def owner(
    group: Group,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A topic of the group.", show_default=False)],
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key as text (UTF-8).", show_default=False)],
    redis: Redis,
    as_hex: Annotated[bool, typer.Option("--hex", help="KEY is in hex digits, two for each byte.")] = False,
    partition: Annotated[int | None, typer.Option(metavar="N", help="Only this partition.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the owner of a key and its position, in each partition that may hold the key.

    A record without a key belongs to a lane by the hash of its offset.
    """
    data = key_bytes(key, as_hex)
    with waiting("owner", as_json=as_json), connected(redis) as client:
        state = read_group(client, group)
    found = key_owners(state, topic, data, usual_partition(state, topic, data), partition)
    if as_json:
        print_json(documents.of_owners(found))
    else:
        print_owners(found)


def events(
    group: Group,
    redis: Redis,
    last: Annotated[
        int, typer.Option(min=0, max=MOST_ASKED, metavar="N", help="Number of latest events to print.")
    ] = 100,
    follow: Annotated[bool, typer.Option("--follow", help="Print new events until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on each line.")] = False,
) -> None:
    """Show the events of a group, the oldest first. A group keeps about 1,000; reference.md explains them."""
    with connected(redis) as client, suppress(KeyboardInterrupt):
        with waiting("events", as_json=as_json):
            read_group(client, group)  # fails for an unknown group, not for one without events
            found = last_events(client, group, last)
        print_lines(*(_line(event, as_json) for event in found))
        if follow:
            for more in follow_events(client, group, found[-1].id if found else "$"):
                print_lines(*(_line(event, as_json) for event in more))


def _line(e: GroupEvent, as_json: bool) -> str:
    """An event: when, what, who, why, and the key ranges that changed hands."""
    if as_json:
        return json.dumps(documents.of_event(e))
    return f"{moment(e.at_ms)} {e.kind:9} {e.member or '-':10} {': '.join(filter(None, (e.why, e.ranges)))}"
