"""The capacity that a member has left besides its slow keys. Pure.

    capacity 4, and one of 2 slots always busy with a key that cannot keep up   ->  2

Counted in tenths, at least one tenth: so each member gets some work. It counts only in an assignment that is due
anyway: a member's measurements never move ranges by themselves.
"""

from collections.abc import Iterable
from dataclasses import replace

from coordinator.assignment.assignors.assignor import Subscriber
from coordinator.errors import StateFormatError
from coordinator.values.ranges import is_number

SLOW_PERCENT = "slow_percent"
"""The field of a member: percent of its slots taken by lanes that cannot keep up."""

TENTHS = 10


def spared(members: Iterable[Subscriber]) -> list[Subscriber]:
    """The members with their capacity left; unchanged if none has a slow key."""
    found = list(members)
    free = [TENTHS - min(_slow_tenths(m), TENTHS - 1) for m in found]
    if all(tenths == TENTHS for tenths in free):
        return found
    return [replace(m, capacity=m.capacity * tenths) for m, tenths in zip(found, free, strict=True)]


def _slow_tenths(member: Subscriber) -> int:
    text = member.metadata.get(SLOW_PERCENT, "0")
    if not is_number(text):
        raise StateFormatError(
            f"member {member.member} reports {text!r} as its percentage of busy slots, not 0 to 100",
            "restart its query",
        )
    return (int(text) + TENTHS // 2) // TENTHS
