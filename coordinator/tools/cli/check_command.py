"""The verb `coop-kafka check`: one line and an exit code, for probes."""

from typing import Annotated

import typer

from coordinator.errors import GroupError, StoreError
from coordinator.redis.snapshot import read_group, refusal
from coordinator.tools.cli import wording
from coordinator.tools.cli.command_options import AsJson, DrainWithin, Group, Redis, connected, print_json
from coordinator.tools.cli.printing import counted, print_lines, seconds
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.operations.group_health import CheckLimits, CheckStatus, Health, health, refused, unreadable
from coordinator.tools.operations.wanted_slots import DRAIN_S

EXIT_CODES = {CheckStatus.OK: 0, CheckStatus.UNKNOWN: 1, CheckStatus.FAILING: 3}
"""2 is wrong usage, as for every command."""


def check(
    group: Group,
    redis: Redis,
    max_lag: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Largest lag in offsets, summed over all partitions.")
    ] = None,
    max_age: Annotated[
        int | None, typer.Option(min=0, metavar="SECONDS", help="Largest age of the oldest unread record.")
    ] = None,
    drain_within: DrainWithin = DRAIN_S,
    as_json: AsJson = False,
) -> None:
    """Check a group for a probe, and print one line: members at work, lag, and age of the oldest unread record.

    Exit codes: 0 ok; 1 unknown: Redis does not answer or takes no writes, there is no such group, or a limit cannot be
    judged; 2 wrong usage; 3 failing: no member works, or a limit is exceeded.
    """
    limits = CheckLimits(max_lag, max_age)
    try:
        with waiting("check", as_json=as_json), connected(redis) as client:
            found = health(group, read_group(client, group), limits, drain_within)
            if error := refusal(client, group):
                found = refused(found, wording.line(error, ()))
    except (StoreError, GroupError) as error:
        found = unreadable(group, wording.line(error, ()))
    if as_json:
        print_json(found)
    else:
        print_lines(_line(found))
    raise typer.Exit(EXIT_CODES[found.status])


def _line(found: Health) -> str:
    """`failing: group 'orders': Stable, 1 member works, lag 50, age >7 s: the age is above --max-age 5`."""
    parts = [f"{found.status}: group {found.group!r}"]
    if found.state is not None:
        works = f"{counted(found.working or 0, 'member')} {'works' if found.working == 1 else 'work'}"
        age = "-" if found.age_s is None else f"{'>' if found.age_at_least else ''}{found.age_s:.0f} s"
        recovers = f", recovers, {seconds(found.recovering_ms)} left" if found.recovering_ms else ""
        parts.append(f"{found.state}{recovers}, {works}, lag {'-' if found.lag is None else found.lag}, age {age}")
    return ": ".join([*parts, *(["; ".join(found.reasons)] if found.reasons else [])])
