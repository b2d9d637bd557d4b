"""Random groups for the tests of assignors, and what is measured of an assignment."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from operator import add

from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.values.ranges import HASH_MAX, WHOLE

SPACE = HASH_MAX + 1


@dataclass(frozen=True)
class Group:
    """Members and the partitions of topics."""

    members: list[Subscriber]
    partitions: dict[str, int]


def some_members(count: int, *topics: str, sharing: bool = True) -> list[Subscriber]:
    """m0, m1, ... of capacity 1."""
    return [Subscriber(f"m{i}", 1, frozenset(topics), sharing) for i in range(count)]


def any_group(rnd: random.Random, *, equal: bool = False, all_share: bool = False) -> Group:
    """Up to 5 topics of up to 9 partitions, up to 8 members; `equal`: all subscribe to all topics."""
    partitions = {f"t{i}": rnd.choice((0, 1, 1, 2, 3, 6, 9)) for i in range(rnd.randint(1, 5))}
    names = rnd.sample(range(20), rnd.randint(1, 8))
    return Group([_any_member(rnd, i, partitions, equal=equal, all_share=all_share) for i in names], partitions)


def _any_member(rnd: random.Random, i: int, partitions: dict[str, int], *, equal: bool, all_share: bool) -> Subscriber:
    topics = frozenset(t for t in partitions if equal or rnd.random() < 0.6)
    return Subscriber(f"m{i:02}", rnd.choice((1, 1, 1, 2, 3, 8)), topics, all_share or rnd.random() < 0.7)


def changed(rnd: random.Random, group: Group) -> Group:
    """The group after one more change: of members, of a capacity, of a subscription, of a topic."""
    members, partitions = list(group.members), dict(group.partitions)
    equal = all(m.topics == frozenset(partitions) for m in members)
    what, i = rnd.randrange(5), rnd.randrange(len(members))
    if what == 0 and len(members) > 1:
        del members[i]
    elif what == 1:
        new = _any_member(rnd, rnd.randint(20, 99), partitions, equal=equal, all_share=all(m.sharing for m in members))
        members = [m for m in members if m.member != new.member] + [new]
    elif what == 2:
        members[i] = replace(members[i], capacity=rnd.randint(1, 9))
    elif what == 3 and not equal:
        members[i] = replace(members[i], topics=frozenset(t for t in partitions if rnd.random() < 0.6))
    else:
        partitions[rnd.choice(list(partitions))] += rnd.randint(1, 4)
    return Group(members, partitions)


def shares(assignment: Assignment) -> dict[str, int]:
    """The number of each member's hashes, of all partitions together."""
    return {m: sum(h.size for ranges in owned.values() for h in ranges) for m, owned in assignment.items()}


def whole(assignment: Assignment) -> dict[str, int]:
    """The number of each member's whole partitions."""
    return {m: sum(ranges == (WHOLE,) for ranges in owned.values()) for m, owned in assignment.items()}


def splits(assignment: Assignment) -> int:
    """The number of owners of partitions, less one for each owned partition."""
    owners = [tp for owned in assignment.values() for tp, ranges in owned.items() if ranges]
    return len(owners) - len(set(owners))


def moved(before: Assignment, after: Assignment) -> Fraction:
    """The hashes with another owner than before, or with a first owner; in partitions, as a fraction."""
    stays = sum(
        part.size
        for member, owned in after.items()
        for tp, ranges in owned.items()
        for mine in before.get(member, {}).get(tp, ())
        for h in ranges
        if (part := mine.intersection(h))
    )
    return Fraction(sum(shares(after).values()) - stays, SPACE)


def forced(before: Assignment, after: Assignment) -> Fraction:
    """The least that has to move for the totals of `after`, for any choice of ranges."""
    had = shares(before)
    return Fraction(sum(max(0, size - had.get(m, 0)) for m, size in shares(after).items()), SPACE)


def least_moved(before: Assignment, after: Assignment, capacities: Mapping[str, int], quanta: int) -> Fraction:
    """The least that has to move, by trying all: for the same totals, whole partitions and splits as `after`.

    Hashes go in `quanta` of a partition, of which every part of both assignments must be a multiple.
    """
    members = sorted(capacities)
    totals = tuple(round(Fraction(shares(after)[m] * quanta, SPACE)) for m in members)
    whole_ones = tuple(whole(after)[m] for m in members)
    ways = [way for way in product(range(quanta + 1), repeat=len(members)) if sum(way) == quanta]
    kept = {((0,) * len(members), (0,) * len(members), 0): 0}  # totals, whole partitions, splits -> most that stays
    for tp in sorted({tp for owned in after.values() for tp in owned}):
        had = [round(Fraction(sum(h.size for h in before.get(m, {}).get(tp, ())) * quanta, SPACE)) for m in members]
        further: dict[tuple[tuple[int, ...], tuple[int, ...], int], int] = {}
        for (given, alone, cut), stays in kept.items():
            for way in ways:
                key = _added(given, way), _added(alone, [n == quanta for n in way]), cut + sum(map(bool, way)) - 1
                if key[2] <= splits(after) and all(g <= t for g, t in zip(key[0], totals, strict=True)):
                    further[key] = max(further.get(key, 0), stays + sum(map(min, way, had)))
        kept = further
    most = max(n for (given, alone, _), n in kept.items() if (given, alone) == (totals, whole_ones))
    return Fraction(sum(totals) - most, quanta)


def _added(left: Iterable[int], right: Iterable[int]) -> tuple[int, ...]:
    return tuple(map(add, left, right))


def text(assignment: Assignment) -> dict[str, str]:
    """Partition -> its owners in hash order, each with the end of its range as a fraction of the space."""
    pieces = sorted((tp, h, m) for m, owned in assignment.items() for tp, ranges in owned.items() for h in ranges)
    shown: dict[str, str] = {}
    for tp, h, m in pieces:
        end = Fraction(h.hi + 1, SPACE).limit_denominator(1000)
        shown[str(tp)] = f"{shown.get(str(tp), '')} {m}" if end == 1 else f"{shown.get(str(tp), '')} {m}<{end}"
    return {tp: owners.strip() for tp, owners in shown.items()}
