"""From the shares of a pool to the members' parts of each partition.

Whole partitions first: a member with a share of 3.4 partitions keeps or gets 3 whole ones. The fractions share the
rest, and each member keeps its earlier parts as far as possible.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from coordinator.assignment.assignors.fair import SPACE, Shares, units
from coordinator.assignment.assignors.forest import prune

Held = Sequence[Mapping[str, int]]
"""For each partition, member -> its earlier part."""


def partition_shares(shares: Shares, held: Held) -> list[dict[str, int]]:
    """For each partition, member -> its number of hashes, near its earlier part; as a forest."""
    before = [_scaled(members, lambda hashes: units(hashes, shares.whole)) for members in held]
    rest = {m: amount % shares.whole for m, amount in shares.given.items()}
    owner = _whole(shares, rest, before)
    given = _kept(rest, before, [p for p in range(len(held)) if p not in owner])
    _fill(given, rest, shares.whole)
    prune(given, dict(enumerate(before)))
    hashes = {p: _scaled(parts, lambda amount: amount * SPACE // shares.whole) for p, parts in given.items()}
    return [{owner[p]: SPACE} if p in owner else hashes[p] for p in range(len(held))]


def _scaled(parts: Mapping[str, int], scale: Callable[[int], int]) -> dict[str, int]:
    """The parts on another scale; their sum is the scaled sum."""
    sizes, total = dict[str, int](), 0
    for m in sorted(parts):
        sizes[m] = scale(total + parts[m]) - scale(total)
        total += parts[m]
    return sizes


def _whole(shares: Shares, rest: Mapping[str, int], held: Held) -> dict[int, str]:
    """Partition -> the member that gets all of it: first its owner, then the member that takes least from others."""
    owner: dict[int, str] = {}
    wants = {m: amount // shares.whole for m, amount in shares.given.items()}

    def take(p: int, m: str) -> None:
        if p not in owner and wants.get(m, 0):
            owner[p] = m
            wants[m] -= 1

    for p, members in enumerate(held):
        for m, amount in members.items():
            if amount == shares.whole:
                take(p, m)
    stays = _kept(rest, held, [p for p in range(len(held)) if p not in owner])
    taken = {p: sum(stays[p].values()) for p in stays}
    gain = [(held[p][m] + stays[p].get(m, 0) - taken[p], p, m) for p in stays for m in held[p] if wants.get(m)]
    for _, p, m in sorted((-g, p, m) for g, p, m in gain if g > 0):
        take(p, m)
    free = iter(sorted((p for p in stays if p not in owner), key=lambda p: (taken[p], p)))
    for m in sorted(wants):
        for _ in range(wants[m]):
            owner[next(free)] = m
    return owner


def _kept(rest: Mapping[str, int], held: Held, shared: Sequence[int]) -> dict[int, dict[str, int]]:
    """The kept parts of the shared partitions: the largest first, up to each member's fraction."""
    left, kept = dict(rest), {p: dict[str, int]() for p in shared}
    parts = sorted((-amount, p, m) for p in shared for m, amount in held[p].items())
    for amount, p, m in parts:
        if left.get(m):
            kept[p][m] = min(-amount, left[m])
            left[m] -= kept[p][m]
    return kept


def _fill(given: dict[int, dict[str, int]], rest: Mapping[str, int], whole: int) -> None:
    """Assign free units to members that lack some: to parts that they have, then the largest to the largest."""
    free = {p: whole - sum(members.values()) for p, members in given.items()}
    lack = dict(rest)
    for members in given.values():
        for m, amount in members.items():
            lack[m] -= amount
    for p, members in given.items():
        for m in sorted(members):
            more = min(free[p], lack[m])
            members[m] += more
            free[p] -= more
            lack[m] -= more
    members_left = [(-amount, m) for m, amount in lack.items() if amount]
    spaces = [(-amount, p) for p, amount in free.items() if amount]
    heapify(members_left)
    heapify(spaces)
    while spaces:
        (space, p), (want, m) = heappop(spaces), heappop(members_left)
        amount = min(-space, -want)
        given[p][m] = amount
        if -space > amount:
            heappush(spaces, (space + amount, p))
        if -want > amount:
            heappush(members_left, (want + amount, m))
