"""Random groups for the tests of assignors, and what is measured of an assignment."""

import random
from dataclasses import dataclass, replace
from fractions import Fraction

from coordinator.assignors.assignor import Assignment, Subscriber
from coordinator.ranges import HASH_MAX, WHOLE

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
    """How many hashes of all partitions together each member has."""
    return {m: sum(h.size for ranges in owned.values() for h in ranges) for m, owned in assignment.items()}


def whole(assignment: Assignment) -> dict[str, int]:
    """How many whole partitions each member has."""
    return {m: sum(ranges == (WHOLE,) for ranges in owned.values()) for m, owned in assignment.items()}


def splits(assignment: Assignment) -> int:
    """How many members more than one all partitions together have."""
    owners = [tp for owned in assignment.values() for tp, ranges in owned.items() if ranges]
    return len(owners) - len(set(owners))


def moved(before: Assignment, after: Assignment) -> Fraction:
    """How many partitions' worth of hashes have another owner than before, or one for the first time."""
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
    """What has to move for the totals of `after`, whatever goes where."""
    had = shares(before)
    return Fraction(sum(max(0, size - had.get(m, 0)) for m, size in shares(after).items()), SPACE)


def text(assignment: Assignment) -> dict[str, str]:
    """Partition -> its owners in hash order, each with the end of its range as a fraction of the space."""
    pieces = sorted((tp, h, m) for m, owned in assignment.items() for tp, ranges in owned.items() for h in ranges)
    shown: dict[str, str] = {}
    for tp, h, m in pieces:
        end = Fraction(h.hi + 1, SPACE).limit_denominator(1000)
        shown[str(tp)] = f"{shown.get(str(tp), '')} {m}" if end == 1 else f"{shown.get(str(tp), '')} {m}<{end}"
    return {tp: owners.strip() for tp, owners in shown.items()}
