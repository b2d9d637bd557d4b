"""The verb `picture` of `coop-kafka`."""

from typing import Annotated

import typer

from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.tools.cli.command_options import Group, Redis, connected
from coordinator.tools.cli.printing import counted, moment, print_lines, printable
from coordinator.tools.operations.picture import PictureTexts, draw
from coordinator.tools.operations.plane import Plane, chosen, plane


def picture(
    group: Group,
    redis: Redis,
    topic: Annotated[str | None, typer.Option(metavar="T", help="Only partitions of this topic.")] = None,
    partition: Annotated[int | None, typer.Option(metavar="N", help="Only partitions with this number.")] = None,
) -> None:
    """Print one partition as SVG: `coop-kafka picture GROUP > partition.svg`.

    Key hash upwards, offset to the right: lanes by owner, gaps, failing keys, the stable offset and the log end. Of
    several partitions, it draws the one with the largest lag.
    """
    with connected(redis) as client:
        state = read_group(client, group)
        failing = OperatorVerbs.of_group(client, group).poison.failing()
    seen = plane(state, chosen(state, topic, partition), failing)
    print_lines(*draw(seen, _words(group, seen, state.now_ms)).splitlines())


def _words(group: str, seen: Plane, now_ms: int) -> PictureTexts:
    counts = [counted(len(seen.lanes), "lane"), counted(len(seen.members), "owner")]
    if seen.failing:
        counts.append(counted(len(seen.failing), "failing key"))
    subtitle = f"{moment(now_ms, 'seconds')}: lag {seen.end - seen.stable:,}, {', '.join(counts)}."
    return PictureTexts(printable(f"{seen.tp} of group {group}"), subtitle, "furthest behind")
