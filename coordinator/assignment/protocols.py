"""Members vote for an assignor that all of them know (rule: common-assignor). Pure.

    A: v1 v0    B: v1 v0    C: v0        all know v0 only, so v0
    A: v1 v0    B: v1 v0    C: v1 v0     all know both and vote for v1, so v1

A protocol is an assignor's name and version.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from coordinator.errors import StateFormatError
from coordinator.values.ranges import is_number


@dataclass(frozen=True, slots=True, order=True)
class Protocol:
    """An assignor's name and version."""

    name: str
    version: int

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The protocol of such a text; raises `StateFormatError`."""
        name, _, version = text.rpartition(" ")
        if not (name and is_number(version)):
            raise StateFormatError(f"{text!r} is not the name and version of an assignor")
        return cls(name, int(version))


Preferences = Sequence[Protocol]
"""The assignors that a member knows, in its order of preference."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The assignor of a group, and the members that do not know it, each with the reason."""

    protocol: Protocol
    excluded: Mapping[str, str]


def preferences_text(preferences: Preferences) -> str:
    """The list in the form of a member's hash."""
    return ",".join(map(str, preferences))


def preferences_of(text: str) -> tuple[Protocol, ...]:
    """The list of such a text; raises `StateFormatError`."""
    return tuple(Protocol.parse(p) for p in text.split(","))


def agree(members: Mapping[str, Preferences]) -> Agreement:
    """The protocol of a group of members, in the order in which they joined; `StateFormatError` if there are none.

    As in Kafka, a member that has no protocol in common with the members before it is refused; they go on.
    """
    if not members:
        raise StateFormatError("no member of the group reports its assignors", "restart its queries")
    known: set[Protocol] = set(next(iter(members.values())))
    working: dict[str, Preferences] = {}
    excluded: dict[str, str] = {}
    for member, preferences in members.items():
        if known.isdisjoint(preferences):
            excluded[member] = _reason(member, preferences, working, known)
        else:
            known &= set(preferences)
            working[member] = preferences
    return Agreement(elected(working), excluded)


def elected(members: Mapping[str, Preferences]) -> Protocol:
    """Of the protocols that all members know, at least one, the protocol with the most votes.

    Each member votes for the first common protocol of its own list; ties break by name.
    """
    candidates = set.intersection(*map(set, members.values()))
    votes = Counter(next(p for p in preferences if p in candidates) for preferences in members.values())
    return min(votes, key=lambda p: (-votes[p], p))


def _reason(member: str, preferences: Preferences, working: Mapping[str, Preferences], known: set[Protocol]) -> str:
    """The members that do not know the protocols of this one."""
    theirs = [f"{p}, unknown to {', '.join(m for m, of_m in working.items() if p not in of_m)}" for p in preferences]
    others = ", ".join(map(str, sorted(known)))
    return f"{member} knows {'; '.join(theirs)}; all others know {others}, unknown to {member}"
