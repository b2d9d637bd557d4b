"""From an assignment to what one member does about it: what it gives up, and to whom. Pure."""

from collections.abc import Iterable, Mapping

from coordinator.assignment_text import Ranges
from coordinator.ownership import Ownership, missing
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition


def owned_ranges(ownership: Ownership) -> Ranges:
    """What is owned, whatever its lane epochs."""
    return {tp: joined(o.hashes for o in owned) for tp, owned in ownership.items() if owned}


def joined(ranges: Iterable[HashRange]) -> tuple[HashRange, ...]:
    """The same hashes in the fewest ranges, ascending."""
    merged: list[HashRange] = []
    for r in sorted(ranges):
        if merged and r.lo <= merged[-1].hi + 1:
            merged[-1] = HashRange(merged[-1].lo, max(merged[-1].hi, r.hi))
        else:
            merged.append(r)
    return tuple(merged)


def beyond(some: Ranges, other: Ranges) -> Ranges:
    """What `some` has and `other` has not."""
    left = {
        tp: tuple(m for h in hashes for m in missing(h, _clipped(joined(other.get(tp, ())), h)))
        for tp, hashes in some.items()
    }
    return {tp: hashes for tp, hashes in left.items() if hashes}


def _clipped(ranges: tuple[HashRange, ...], within: HashRange) -> tuple[HashRange, ...]:
    return tuple(part for r in ranges if (part := r.intersection(within)))


def handed_over(
    surplus: Ranges, assignment: Mapping[str, Ranges]
) -> dict[TopicPartition, tuple[tuple[HashRange, str], ...]]:
    """To whom each part of `surplus` was assigned; parts assigned to nobody are left out, and so are kept."""
    parts = {
        tp: tuple(
            sorted(
                (part, member)
                for member, ranges in assignment.items()
                for theirs in ranges.get(tp, ())
                for ours in hashes
                if (part := ours.intersection(theirs))
            )
        )
        for tp, hashes in surplus.items()
    }
    return {tp: pieces for tp, pieces in parts.items() if pieces}
