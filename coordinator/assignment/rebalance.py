"""Sets of hash ranges: which ranges one member must release, from its owned ranges and the assignment. Pure."""

from collections.abc import Iterable

from coordinator.assignment.assignment_text import Ranges
from coordinator.progress.ownership import Ownership
from coordinator.values.hash_map import missing
from coordinator.values.ranges import HashRange


def owned_ranges(ownership: Ownership) -> Ranges:
    """The owned ranges, of any lane epoch."""
    return {tp: union(o.hashes for o in owned) for tp, owned in ownership.items() if owned}


def union(ranges: Iterable[HashRange]) -> tuple[HashRange, ...]:
    """The same hashes in the fewest ranges, ascending."""
    merged: list[HashRange] = []
    for r in sorted(ranges):
        if merged and r.lo <= merged[-1].hi + 1:
            merged[-1] = HashRange(merged[-1].lo, max(merged[-1].hi, r.hi))
        else:
            merged.append(r)
    return tuple(merged)


def difference(some: Ranges, other: Ranges) -> Ranges:
    """The hashes of `some` that are not in `other`."""
    differ = {tp: hashes for tp, hashes in some.items() if hashes != other.get(tp)}
    left = {tp: tuple(m for h in hashes for m in missing(h, other.get(tp, ()))) for tp, hashes in differ.items()}
    return {tp: hashes for tp, hashes in left.items() if hashes}


def common(some: Ranges, other: Ranges) -> Ranges:
    """The hashes that are in both."""
    return difference(some, difference(some, other))
