"""The verbs of `coop-kafka` that only read: list, describe, gaps, owner, events, picture."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

import typer

from coordinator.errors import StoreError, UnknownGroupError
from coordinator.progress.failing import FailingRecord
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
from coordinator.tools.cli.printing import complain, counted, moment, print_lines, printable
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.cli.table_rows import print_rows, stdout
from coordinator.tools.cli.tables import (
    print_age,
    print_failing_count,
    print_gaps,
    print_group,
    print_limited,
    print_owners,
)
from coordinator.tools.operations.gaps import gaps as gaps_of
from coordinator.tools.operations.group_list import UNREADABLE, GroupLine, group_line
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.key_owner import key_owners
from coordinator.tools.operations.picture import PictureTexts, draw
from coordinator.tools.operations.plane import Plane, chosen, plane
from coordinator.tools.operations.top_view import limited_lanes
from coordinator.tools.operations.views import oldest_end_s
from coordinator.tools.operations.waiting_views import EventView

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

    END AGE S is the age of its oldest end offset in seconds.
    """
    with (
        waiting("list", as_json=as_json),
        connected(redis) as client,
        current_ends(context, bootstrap_server, command_config) as current,
    ):
        lines = [line for name in list_groups(client) if (line := _line_of(client, name, current))]
    if as_json:
        print_json({"groups": lines})
    elif not lines:
        print_lines("No groups.")
    else:
        print_rows(GroupLine, lines)


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

    A third table shows the lanes that a bound limits, and the bound. `coop-kafka top` shows all lanes at work.
    With redundancy, the same follows for each other replica set of the group.
    """
    with (
        waiting("describe", as_json=as_json),
        connected(redis) as client,
        current_ends(context, bootstrap_server, command_config) as current,
    ):
        names = group, *siblings(group, list_groups(client))
        looks = [GroupLook(name, current(read_group(client, name)), _failing(client, name)) for name in names]
    if as_json:
        found = (documents.of_group(look.view, limited_lanes(look.state), look.failing) for look in looks)
        print_json(documents.of_sets(found))
        return
    for look in looks:
        print_group(look.view, stdout())
        print_failing_count(look.failing)
        print_age(oldest_end_s(look.view.partitions), asked=bootstrap_server is not None)
        print_limited(limited_lanes(look.state))


def _failing(client: RedisClient, group: str) -> tuple[FailingRecord, ...]:
    return OperatorVerbs.of_group(client, group).poison.failing()


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
        print_json({"partitions": found})
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
    found = key_owners(state, topic, data, partition)
    if as_json:
        print_json({"owners": found})
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
        return json.dumps(asdict(EventView.of(e)))
    return f"{moment(e.at_ms)} {e.kind:9} {e.member or '-':10} {': '.join(filter(None, (e.why, e.ranges)))}"


def picture(
    group: Group,
    redis: Redis,
    topic: Annotated[str | None, typer.Option(metavar="T", help="Only partitions of this topic.")] = None,
    partition: Annotated[int | None, typer.Option(metavar="N", help="Only partitions with this number.")] = None,
) -> None:
    """Print one partition as SVG: `coop-kafka picture GROUP > partition.svg`.

    Key hash upwards, offset to the right: lanes by owner, gaps, failing keys, the stable offset and the end offset. Of
    several partitions, it draws the one with the largest lag.
    """
    with connected(redis) as client:
        state, failing = read_group(client, group), _failing(client, group)
    seen = plane(state, chosen(state, topic, partition), failing)
    print_lines(*draw(seen, _words(group, seen, state.now_ms)).splitlines())


def _words(group: str, seen: Plane, now_ms: int) -> PictureTexts:
    counts = [counted(len(seen.lanes), "lane"), counted(len(seen.members), "owner")]
    if seen.failing:
        counts.append(counted(len(seen.failing), "failing key"))
    subtitle = f"{moment(now_ms, 'seconds')}: lag {seen.lag:,}, {', '.join(counts)}."
    return PictureTexts(printable(f"{seen.tp} of group {group}"), subtitle, "furthest behind")
