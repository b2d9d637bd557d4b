"""From the shares of a pool to who gets how much of which partition, for members that may all have any of them.

Whole partitions first: a member with a share of 3.4 partitions keeps or gets 3 whole ones. The rest is
shared by the fractions, each member keeping what it held as far as that goes.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from coordinator.assignors.fair import SPACE, Shares, units
from coordinator.assignors.forest import prune

Held = Sequence[Mapping[str, int]]
"""Per partition, member -> how much of it it held."""


def partition_shares(shares: Shares, held: Held) -> list[dict[str, int]]:
    """Per partition, member -> how many hashes of it it gets, near what it held; as a forest."""
    before = [_units(members, shares.whole) for members in held]
    rest = {m: amount % shares.whole for m, amount in shares.given.items()}
    owner = _whole(shares, rest, before)
    given = _kept(rest, before, [p for p in range(len(held)) if p not in owner])
    _fill(given, rest, shares.whole)
    prune(given, dict(enumerate(before)))
    return [{owner[p]: SPACE} if p in owner else _hashes(given[p], shares.whole) for p in range(len(held))]


def _units(held: Mapping[str, int], whole: int) -> dict[str, int]:
    """The hashes of one partition in units; where nobody is gone they sum up to the whole, as in `_hashes`."""
    sizes, hashes = dict[str, int](), 0
    for m in sorted(held):
        sizes[m] = units(hashes + held[m], whole) - units(hashes, whole)
        hashes += held[m]
    return sizes


def _hashes(given: Mapping[str, int], whole: int) -> dict[str, int]:
    """The units of one partition in hashes; they sum up to the space."""
    sizes, amount = dict[str, int](), 0
    for m in sorted(given):
        sizes[m] = (amount + given[m]) * SPACE // whole - amount * SPACE // whole
        amount += given[m]
    return sizes


def _whole(shares: Shares, rest: Mapping[str, int], held: Held) -> dict[int, str]:
    """Partition -> the member that gets all of it: first who had it, then where that takes least from others."""
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
    """What each member keeps of the shared partitions, its largest part first, up to its fraction."""
    left, kept = dict(rest), {p: dict[str, int]() for p in shared}
    parts = sorted((-amount, p, m) for p in shared for m, amount in held[p].items())
    for amount, p, m in parts:
        if left.get(m):
            kept[p][m] = min(-amount, left[m])
            left[m] -= kept[p][m]
    return kept


def _fill(given: dict[int, dict[str, int]], rest: Mapping[str, int], whole: int) -> None:
    """Give what is free to those who lack something: more of what they have, then the largest to the largest."""
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
