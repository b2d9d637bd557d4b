"""Replica sets: `redundancy` groups under one name, each of which reads everything. Pure.

    redundancy=3    orders, orders@2, orders@3    each is a group of its own, with members, positions and a mirror

A new member goes to the set with the least capacity. A set without members gets one from the set with the most
capacity (rule: one-member-a-set).
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

SEPARATOR = "@"

Sets = Mapping[str, Mapping[str, int]]
"""By set, in order: the capacity of each member with a lease."""


class Move(NamedTuple):
    """A member that goes to a set without members."""

    member: str
    to: str


def names(group: str, redundancy: int) -> tuple[str, ...]:
    """The groups of the replica sets. The first has the name itself: a group keeps its positions as the first set."""
    return (group, *(f"{group}{SEPARATOR}{number}" for number in range(2, redundancy + 1)))


def lightest(sets: Sets) -> str:
    """The set for a new member: the one with the least capacity, the first of equal ones."""
    return min(sets, key=lambda name: sum(sets[name].values()))


def move(sets: Sets, staying: Collection[str]) -> Move | None:
    """The move that is due; None if each set has a member, or no set can give one. All members find the same one.

    Members that are `staying` cannot move: they leave, hang in a batch, or run with AvailableNow.
    """
    empty = [name for name, members in sets.items() if not members]
    givers = [name for name, members in sets.items() if len(members) > 1 and members.keys() - staying]
    if not (empty and givers):
        return None
    members = sets[max(givers, key=lambda name: sum(sets[name].values()))]
    return Move(min(members.keys() - staying, key=lambda member: (members[member], member)), empty[0])
