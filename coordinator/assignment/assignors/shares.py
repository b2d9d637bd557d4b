"""Shares near the proportions of capacity, also if members subscribe to different topics. Pure.

A pool is the partitions of all topics with the same subscribers. Each pool is shared so that the totals of its members,
for each capacity, come as near each other as this pool allows. With several pools this is repeated:

    pool 1 (6)  A B      fair is 4 each: B 4 and A 2 of pool 1; A 2 and C 4 of pool 2
    pool 2 (6)  A C
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GRAIN = 16
"""Units of a partition for each capacity of its pool: shares are whole numbers of units."""

_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Pool:
    """A number of partitions, and the ids of their subscribers."""

    partitions: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """The units of a pool for each member; a partition is `whole` units."""

    given: dict[str, int]
    whole: int


def fair_shares(capacity: Mapping[str, int], pools: Sequence[Pool]) -> list[Shares]:
    """The shares of each pool. With one pool they are exact."""
    given = [dict.fromkeys(pool.members, 0.0) for pool in pools]
    total = dict.fromkeys(capacity, 0.0)
    for _ in range(_ROUNDS):
        for pool, shares in zip(pools, given, strict=True):
            elsewhere = {m: total[m] - share for m, share in shares.items()}
            shares.update(_levelled(pool.partitions, elsewhere, capacity))
            total.update({m: elsewhere[m] + share for m, share in shares.items()})
    return [_in_units(pool, shares, capacity) for pool, shares in zip(pools, given, strict=True)]


def largest_remainder(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole numbers near `shares`, whose sum is `total`: the largest fractions are rounded up."""
    rounded = {m: int(share) for m, share in shares.items()}
    for m in sorted(shares, key=lambda m: (rounded[m] - shares[m], m))[: total - sum(rounded.values())]:
        rounded[m] += 1
    return rounded


def _levelled(amount: float, elsewhere: Mapping[str, float], capacity: Mapping[str, int]) -> dict[str, float]:
    """`amount`, shared so that those with least for each capacity rise to one level."""
    level, weight = amount, 0
    for m in sorted(elsewhere, key=lambda m: elsewhere[m] / capacity[m]):
        if weight and elsewhere[m] * weight >= level * capacity[m]:
            break
        level, weight = level + elsewhere[m], weight + capacity[m]
    return {m: max(0.0, level * capacity[m] / weight - has) for m, has in elsewhere.items() if weight}


def _in_units(pool: Pool, shares: Mapping[str, float], capacity: Mapping[str, int]) -> Shares:
    whole = GRAIN * sum(capacity[m] for m in pool.members) or 1
    given = largest_remainder({m: share * whole for m, share in shares.items()}, pool.partitions * whole)
    return Shares({m: units for m, units in given.items() if units}, whole)
