"""What changes hands, told to a user's listener: the difference between what a member owned and what it owns now.

    owned before, not now, given up by itself   revoked
    owned before, not now                       lost; also where a new lane epoch shows that another had it in between
    owned now, not before                       assigned

Part of the service, on its thread. The events stream is written by the scripts themselves, with the same words.
"""

import logging
from collections.abc import Callable, Iterable

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.ownership_listener import KeyRanges, OwnershipListener
from coordinator.assignment.rebalance import difference, owned_ranges, union
from coordinator.progress.ownership import Owned, Ownership, missing
from coordinator.ranges import HashRange

_log = logging.getLogger(__name__)


class HandOvers:
    """Remembers what the listener was told last."""

    def __init__(self, listener: OwnershipListener) -> None:
        self._listener = listener
        self._told: Ownership = {}

    def owned(self, ownership: Ownership, given_up: Ranges | None = None) -> None:
        """The member owns this now; of what it owned before, it has released `given_up` where that is gone."""
        if ownership == self._told:
            return
        gone, gained = _without(self._told, ownership), _without(ownership, self._told)
        self._told = ownership
        self._tell(self._listener.on_revoked, _common(gone, given_up or {}))
        self._tell(self._listener.on_lost, difference(gone, given_up or {}))
        self._tell(self._listener.on_assigned, gained)

    def left(self, kept: Ranges) -> None:
        """The member has left: all but `kept`, which may be half written, is given up in order."""
        self.owned({}, difference(owned_ranges(self._told), kept))

    def ended(self) -> None:
        """The member is gone without a leave."""
        self.owned({})

    def _tell(self, method: Callable[[KeyRanges], None], ranges: KeyRanges) -> None:
        if not ranges:
            return
        try:
            method(ranges)
        except Exception:  # noqa: BLE001 - whatever a user's class raises must not hurt the query
            _log.exception("the ownership listener failed, the query goes on")


def _without(some: Ownership, other: Ownership) -> Ranges:
    """The ranges of `some` that are not in `other` at the same lane epoch."""
    left = {
        tp: union(m for o in owned for m in missing(o.hashes, tuple(_same(o, other.get(tp, ())))))
        for tp, owned in some.items()
    }
    return {tp: ranges for tp, ranges in left.items() if ranges}


def _same(one: Owned, others: Iterable[Owned]) -> Iterable[HashRange]:
    return (part for o in others if o.epoch == one.epoch and (part := one.hashes.intersection(o.hashes)))


def _common(some: Ranges, other: Ranges) -> Ranges:
    return difference(some, difference(some, other))
