"""What the user's ownership listener is called with: the difference between what a member owned and owns. Pure.

    owned before, not now, released by itself   revoked
    owned before, not now                       lost; also where a new lane epoch shows that another had it in between
    owned now, not before                       assigned

The events stream is written by the scripts themselves, with the same words.
"""

from collections.abc import Iterable

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges, union
from coordinator.member.kinds import Request
from coordinator.member.requests import Notify
from coordinator.progress.ownership import Owned, Ownership, missing
from coordinator.ranges import HashRange


def notified(
    before: Ownership, now: Ownership, released: Ranges | None = None
) -> tuple[tuple[Request[bool], ...], Ownership]:
    """The notice of a change, if there is one, and what the listener knows then."""
    if now == before:
        return (), before
    gone, gained = _without(before, now), _without(now, before)
    notice = Notify(_common(gone, released or {}), difference(gone, released or {}), gained)
    return (notice,) if gone or gained else (), now


def left(before: Ownership, kept: Ranges) -> tuple[Request[bool], ...]:
    """The notice of a leave: all but `kept`, which may be half written, is released."""
    return notified(before, {}, difference(owned_ranges(before), kept))[0]


def _without(some: Ownership, other: Ownership) -> Ranges:
    """The ranges of `some` that are not in `other` at the same lane epoch."""
    rest = {
        tp: union(m for o in owned for m in missing(o.hashes, tuple(_same(o, other.get(tp, ())))))
        for tp, owned in some.items()
    }
    return {tp: ranges for tp, ranges in rest.items() if ranges}


def _same(one: Owned, others: Iterable[Owned]) -> Iterable[HashRange]:
    return (part for o in others if o.epoch == one.epoch and (part := one.hashes.intersection(o.hashes)))


def _common(some: Ranges, other: Ranges) -> Ranges:
    return difference(some, difference(some, other))
