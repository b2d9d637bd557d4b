"""The calls of the user's ownership listener: the difference between the ranges owned before and now. Pure.

    owned before, not now, released by itself   revoked
    owned before, not now                       lost; also if a new lane epoch shows another owner in between
    owned now, not before                       assigned

The events stream is written by the scripts themselves, with the same words.
"""

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges, union
from coordinator.member.kinds import Request
from coordinator.member.requests import Notify
from coordinator.progress.ownership import Ownership, not_owned


def notified(before: Ownership, now: Ownership, released: Ranges | None = None) -> tuple[Request[bool], ...]:
    """The notice of a change, if there is one."""
    if now == before:
        return ()
    gone, gained = _without(before, now), _without(now, before)
    lost = difference(gone, released or {})
    notice = Notify(difference(gone, lost), lost, gained)
    return (notice,) if gone or gained else ()


def left(before: Ownership, kept: Ranges) -> tuple[Request[bool], ...]:
    """The notice of a leave. It releases all but `kept`, which may be half written."""
    return notified(before, {}, difference(owned_ranges(before), kept))


def _without(some: Ownership, other: Ownership) -> Ranges:
    """The ranges of `some` that are not in `other` at the same lane epoch."""
    rest = {tp: union(not_owned(owned, other.get(tp, ()))) for tp, owned in some.items()}
    return {tp: ranges for tp, ranges in rest.items() if ranges}
