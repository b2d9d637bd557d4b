"""The verdict of `coop-kafka check`: whether members work, and whether lag and age are within their limits. Pure.

    ok         at least one member works, and no limit is exceeded
    failing    no member works, or a limit is exceeded
    unknown    a limit cannot be judged, the group cannot be read, or Redis takes no writes

Without a working member, lag and age stand still: nothing looks at the log ends. So such a group fails.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from coordinator.redis.group_state import GroupState
from coordinator.tools.fields import GroupField, Means, RecoveringMs
from coordinator.tools.operations.views import live, oldest_end_s, runs_s, view, whole_lag, working
from coordinator.tools.operations.wanted_slots import DRAIN_S, wanted_slots


class CheckStatus(StrEnum):
    """The verdict in one word."""

    OK = "ok"
    FAILING = "failing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """The limits of a check; None: no limit."""

    lag: int | None = None  # offsets
    age_s: int | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The verdict on a group at one moment, and its reasons."""

    group: GroupField
    status: Annotated[CheckStatus, Means("`ok`, `failing` or `unknown`.", "the first word")]
    state: Annotated[str | None, Means("[State](operations.md#describe) of the group; null if Redis is away.")] = None
    working: Annotated[int | None, Means("Members that work.")] = None
    lag: Annotated[int | None, Means("Lag of all partitions in offsets; null if unknown.", "lag")] = None
    age_s: Annotated[float | None, Means("Age of the oldest unread record; null if unknown.", "age")] = None
    age_at_least: Annotated[bool, Means("Whether `age_s` is a lower bound.", "age")] = False
    wanted_slots: Annotated[
        int | None, Means("Slots that would read the backlog within --drain-within, for autoscalers; null if unknown.")
    ] = None
    reasons: Annotated[tuple[str, ...], Means("Empty if it is ok.", "the rest")] = ()
    recovering_ms: RecoveringMs = 0


def health(group: str, state: GroupState, limits: CheckLimits, drain_s: int = DRAIN_S) -> Health:
    """The verdict on a group."""
    seen = view(group, state)
    at_work, lag = len(working(seen.members)), whole_lag(seen.partitions)
    age = (0.0, False) if lag == 0 else _age(state)
    found = Health(group, CheckStatus.OK, seen.state, at_work, lag, *age, recovering_ms=seen.recovering_ms)
    found = replace(found, wanted_slots=wanted_slots(state, lag, drain_s))
    if failures := tuple(_failures(found, limits, oldest_end_s(seen.partitions))):
        return replace(found, status=CheckStatus.FAILING, reasons=failures)
    if doubts := tuple(_doubts(found, limits)):
        return replace(found, status=CheckStatus.UNKNOWN, reasons=doubts)
    return found


def refused(found: Health, why: str) -> Health:
    """The verdict on a group whose Redis answers reads, and refuses writes: no restart of a query helps."""
    return replace(found, status=CheckStatus.UNKNOWN, reasons=(why, *found.reasons))


def unreadable(group: str, why: str) -> Health:
    """The verdict on a group that cannot be read: Redis is away, or has no such group."""
    return Health(group, CheckStatus.UNKNOWN, reasons=(why,))


def _age(state: GroupState) -> tuple[float | None, bool]:
    """The age of the oldest unread record that live members report, and whether it is a lower bound.

    A member reports before its batch begins. Until the batch ends, its records stay unread and grow older.
    """
    ages = [
        (line.lag_s + (runs_s(member, state) or 0.0), line.lag_at_least)
        for member in live(state)
        for line in state.lanes.get(member, ())
        if line.lag and line.lag_s is not None
    ]
    return max(ages, default=(None, False))


def _failures(found: Health, limits: CheckLimits, end_age_s: float | None) -> Iterator[str]:
    if not found.working:
        yield "no member works" + (f", and the end offsets are {end_age_s:.0f} s old" if end_age_s is not None else "")
    if limits.lag is not None and found.lag is not None and found.lag > limits.lag:
        yield f"the lag is above --max-lag {limits.lag}"
    if limits.age_s is not None and found.age_s is not None and found.age_s > limits.age_s:
        yield f"the age is above --max-age {limits.age_s}"


def _doubts(found: Health, limits: CheckLimits) -> Iterator[str]:
    if limits.lag is not None and found.lag is None:
        yield "the lag is not known: no member has seen the end of a partition"
    if limits.age_s is not None and found.age_s is None:
        yield "the age is not known: no member has reported it"
