"""The verbs of `coop-kafka` about lanes: top, parked, release."""

import math
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

import typer
from rich.live import Live

from coordinator.cli.command_options import Group, Json, Redis, connected, print_json
from coordinator.cli.printing import print_lines
from coordinator.cli.tables import activity, print_strikes, stdout
from coordinator.errors import StateFormatError, UnknownStrikeError
from coordinator.operations.refusals import refused
from coordinator.operations.top_view import TopView, lane_fields, top_view
from coordinator.plan.poison import chosen
from coordinator.ranges import HashRange
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.reports import last_batches
from coordinator.redis.snapshot import read_group
from coordinator.subscription import TopicPartition

BATCHES = 100
"""Batches that `top` reads: more than members complete in 2 s."""


def _a_number(value: float) -> float:
    """Refuse `nan`, which passes typer's bounds."""
    if math.isnan(value):
        raise typer.BadParameter("not a number of seconds")
    return value


def top(
    group: Group,
    redis: Redis,
    once: Annotated[bool, typer.Option("--once", help="Print once, then end.")] = False,
    every: Annotated[
        float, typer.Option(min=0.5, max=3_600, metavar="SECONDS", callback=_a_number, help="Time between two looks.")
    ] = 2.0,
    lanes: Annotated[int, typer.Option(min=1, metavar="N", help="Number of lanes to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs once, then end.")] = False,
) -> None:
    """Show members and lanes at work until Ctrl-C. Parked and slow lanes come first.

    LAG S is the age of the lane's oldest unread record.
    `>` marks a lower bound: the record was there at the member's first look.
    `~` marks a cost that was derived from the durations of batches.
    """
    with connected(redis) as client, suppress(KeyboardInterrupt):
        seen = _top(client, group)
        if as_json:
            print_json(asdict(seen) | {"lanes": [*map(lane_fields, seen.lanes)]})
        elif once:
            stdout().print(activity(seen, lanes))
        else:
            with Live(activity(seen, lanes), console=stdout(), screen=True, auto_refresh=False) as live:
                while True:
                    time.sleep(every)
                    live.update(activity(_top(client, group), lanes), refresh=True)


def parked(group: Group, redis: Redis, as_json: Json = False) -> None:
    """Show key ranges over which members died or hung: tried alone after one strike, parked after two."""
    with connected(redis) as client:
        read_group(client, group)  # fails for an unknown group, not for one without strikes
        strikes = OperatorVerbs.of_group(client, group).poison.strikes()
    if as_json:
        print_json([s.shown for s in strikes])
    else:
        print_strikes(strikes)


def release(
    group: Group,
    redis: Redis,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="The reason. The event `release` records it.", show_default=False)
    ],
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="A topic of the group.", show_default=False)
    ] = None,
    partition: Annotated[
        int | None, typer.Argument(min=0, metavar="PARTITION", help="A partition of TOPIC.", show_default=False)
    ] = None,
    hashes: Annotated[
        str | None, typer.Argument(metavar="RANGE", help="Key hashes, as `parked` shows them.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Take strikes back, so that members read the parked lanes again.

    TOPIC and PARTITION choose the strikes of a partition, RANGE chooses one of them.
    Without them, the command takes back all strikes of the group.
    A record that hangs twice again is parked again.
    """
    if (topic is None) != (partition is None):
        raise typer.BadParameter("pass both TOPIC and PARTITION, or neither")
    if not reason.strip():
        raise typer.BadParameter("--reason is empty: pass the reason")
    tp = None if topic is None or partition is None else TopicPartition(topic, partition)
    wanted = None if hashes is None else _range(hashes)
    with connected(redis) as client:
        read_group(client, group)
        store = OperatorVerbs.of_group(client, group).poison
        found = chosen(store.strikes(), tp, wanted)
        if not found:
            raise UnknownStrikeError(f"group {group!r} has no strike {_place(tp, wanted)}")
        with refused(group):
            store.forgive(found, reason)
    if as_json:
        print_json([s.shown for s in found])
    else:
        print_lines(*(f"Released {s.field}" for s in found))


def _range(text: str) -> HashRange:
    try:
        return HashRange.parse(text)
    except StateFormatError as error:
        raise typer.BadParameter(f"RANGE: {error.what}") from None


def _place(tp: TopicPartition | None, hashes: HashRange | None) -> str:
    return "at all" if tp is None else f"in {tp}" if hashes is None else f"of exactly {hashes} in {tp}"


def _top(client: RedisClient, group: str) -> TopView:
    return top_view(group, read_group(client, group), last_batches(client, group, BATCHES))
