"""The verbs of `coop-kafka` about lanes and keys: top, parked, failing, release."""

import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer

from coordinator.errors import StateFormatError, UnknownStrikeError
from coordinator.plan.poison import chosen
from coordinator.progress.failing import released
from coordinator.redis.client import RedisClient
from coordinator.redis.events import last_events
from coordinator.redis.group_state import GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import AsJson, Group, Redis, connected, print_json
from coordinator.tools.cli.kafka_arguments import CommandConfig, EndsOf, current_ends
from coordinator.tools.cli.printing import print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.cli.table_rows import stdout
from coordinator.tools.cli.tables import activity, print_stuck
from coordinator.tools.operations.group_look import GroupLook, look_at
from coordinator.tools.operations.refusals import refused
from coordinator.tools.operations.reset_plan import one_partition
from coordinator.tools.operations.top_view import top_view
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition

EVENTS = 50
"""The last events that `top` reads."""


def _a_number(value: float) -> float:
    """Refuse `nan`, which passes typer's bounds."""
    if math.isnan(value):
        raise typer.BadParameter("not a number of seconds")
    return value


def top(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: EndsOf = None,
    command_config: CommandConfig = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="Print members and lanes once, then end. This is the default without a terminal."),
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.5, max=3_600, metavar="SECONDS", callback=_a_number, help="Time between two looks.")
    ] = 2.0,
    lanes: Annotated[int, typer.Option(min=1, metavar="N", help="Number of lanes to print.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs once, then end.")] = False,
) -> None:
    """Show lanes at work until `q`, or print members and lanes once. Quarantined and limited lanes come first.

    On a terminal, it draws the partition of the chosen row; the last line shows the keys.
    LAG S is the age of the lane's oldest unread record.
    `>` marks a lower bound: the record was there at the member's first look.
    `~` marks a cost that was derived from the durations of batches.
    """
    asked = bootstrap_server is not None
    with (
        connected(redis) as client,
        current_ends(context, bootstrap_server, command_config) as current,
    ):
        if not (once or as_json) and _on_a_terminal():
            _show(client, group, current, every)
            return
        with waiting("top", as_json=as_json):
            seen = top_view(_look(client, group, current))
        if as_json:
            print_json(seen)
        else:
            stdout().print(activity(seen, lanes, asked=asked))


def stuck(group: Group, redis: Redis, as_json: AsJson = False) -> None:
    """Show keys whose record failed, and key ranges over which members died or hung.

    A deferred key and a range `on trial` are tried again. What is `parked` (quarantined) waits for `release`.
    """
    with waiting("stuck", as_json=as_json), connected(redis) as client:
        read_group(client, group)  # fails for an unknown group, not for one where nothing is stuck
        store = OperatorVerbs.of_group(client, group).poison
        strikes, records = store.strikes(), store.failing()
    if as_json:
        print_json(documents.of_stuck(strikes, records))
    else:
        print_stuck(strikes, records)


def release(
    group: Group,
    redis: Redis,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="The reason. The event `release` records it.", show_default=False)
    ],
    place: Annotated[
        str | None, typer.Argument(metavar="TOPIC:PARTITION", help="The partition.", show_default=False)
    ] = None,
    hashes: Annotated[
        str | None,
        typer.Argument(metavar="RANGE", help="One key or lane: its HASH or HASHES in `stuck`.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole group.")] = False,
    as_json: AsJson = False,
) -> None:
    """Resume quarantined lanes and keys (`parked` in `stuck`), and lanes that are tested alone (`on trial`).

    Without RANGE, and with `--all`: all of these. A deferred key is released only by its HASH.
    A record that hangs twice again is quarantined again; so is a key whose record fails again.
    """
    if (place is None) != everything:
        raise typer.BadParameter("pass either TOPIC:PARTITION or --all")
    if not reason.strip():
        raise typer.BadParameter("--reason is empty: pass the reason")
    tp = None if place is None else one_partition(place)
    key_hash = int(hashes, 16) if hashes and _HASH.fullmatch(hashes) else None
    wanted = None if hashes is None or key_hash is not None else _range(hashes)
    with waiting("release", as_json=as_json), connected(redis) as client:
        read_group(client, group)
        store = OperatorVerbs.of_group(client, group).poison
        found = [] if key_hash is not None else chosen(store.strikes(), tp, wanted)
        keys = [] if wanted else released(store.failing(), tp, key_hash)
        if not (found or keys):
            where = _place(tp, wanted) if key_hash is None else f"at hash {hashes} in {tp}"
            raise UnknownStrikeError(f"group {group!r} has no suspect and nothing quarantined {where}")
        with refused(group):
            if found:
                store.forgive(found, reason)
            if keys:
                store.resume(keys, reason)
    if as_json:
        print_json(documents.of_stuck(found, keys))
    else:
        print_lines(*(f"Released {strike.field}" for strike in found), *(f"Released {key.field}" for key in keys))


_HASH = re.compile("[0-9a-f]{16}")


def _range(text: str) -> HashRange:
    try:
        return HashRange.parse(text)
    except StateFormatError as error:
        raise typer.BadParameter(f"RANGE: {error.what}") from None


def _place(tp: TopicPartition | None, hashes: HashRange | None) -> str:
    return "at all" if tp is None else f"in {tp}" if hashes is None else f"of exactly {hashes} in {tp}"


def _on_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and stdout().is_terminal and not stdout().is_dumb_terminal


def _show(client: RedisClient, group: str, current: Callable[[GroupState], GroupState], every_s: float) -> None:
    """The screen, until the user ends it."""
    from coordinator.tools.cli.top_screen import TopLook, TopScreen  # noqa: PLC0415 - the other verbs need no screen

    def look() -> TopLook:
        seen = _look(client, group, current)
        return TopLook(seen, top_view(seen), tuple(last_events(client, group, EVENTS)))

    with waiting("top", as_json=False):
        screen = TopScreen(look, every_s)
    screen.run()


def _look(client: RedisClient, group: str, current: Callable[[GroupState], GroupState]) -> GroupLook:
    look = look_at(client, group, strikes=False)
    return replace(look, state=current(look.state))
