"""Checks assignments: which partitions policies allow to share, and which assignors members know."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations

import redis

from coordinator.assignment.assignment_text import ranges_of
from coordinator.assignment.policies import MEMBER_POLICY, Policy
from coordinator.assignment.rebalance import common
from coordinator.redis.group_state import PINNED
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE
from simulation.sink import Violation


class Assigned:
    """Checks each new assignment of a group."""

    def __init__(self, text: redis.Redis, keys: GroupKeys, seen: Counter[str]) -> None:
        self._text, self._keys, self._seen, self._protocol = text, keys, seen, ""

    def check(self, assignment: Mapping[str, str], policy: Policy) -> None:
        """Raise `Violation` unless a new assignment obeys the policies and assignors in force."""
        if self._text.hget(self._keys.meta, "protocol") == PINNED:
            self._seen["pinned"] += 1
            _claimed_once(assignment)
            return
        if _obeyed(assignment, policy, self._shares):
            self._seen["shared"] += 1
        protocol = str(self._text.hget(self._keys.meta, "protocol"))
        self._seen["broken assignor"] += bool(self._text.hexists(self._keys.meta, "failure"))
        known = {m: text for m, text in assignment.items() if self._text.exists(self._keys.member(m))}  # not deleted
        _agreed(known, protocol, lambda member: self._field(member, "protocols"))
        self._seen["another assignor"] += protocol != self._protocol != ""
        self._protocol = protocol

    def _shares(self, member: str) -> bool:
        return self._field(member, MEMBER_POLICY) != "false"

    def _field(self, member: str, field: str) -> str:
        return str(self._text.hget(self._keys.member(member), field))


def _claimed_once(assignment: Mapping[str, str]) -> None:
    """Raise `Violation` if two members claim a hash (rule: one-claim-per-hash)."""
    for (one, some), (two, others) in combinations(sorted(assignment.items()), 2):
        if both := common(ranges_of(some), ranges_of(others)):
            raise Violation(f"CLAIM: {one} and {two} both claim {both}")


def _obeyed(assignment: Mapping[str, str], policy: Policy, shares: Callable[[str], bool]) -> bool:
    """Whether a partition is shared; raises `Violation` if a policy forbids that."""
    shared = False
    for member, text in assignment.items():
        for tp, hashes in ranges_of(text).items():
            part = bool(hashes) and hashes != (WHOLE,)
            if part and not policy.may_share(tp.topic):
                raise Violation(f"POLICY: {member} is assigned {hashes} of {tp}, which may not be shared")
            if part and not shares(member):
                raise Violation(f"POLICY: {member} does not share and is assigned {hashes} of {tp}")
            shared |= part
    return shared


def _agreed(assignment: Mapping[str, str], protocol: str, known: Callable[[str], str]) -> None:
    """Raise `Violation` if an assignor assigns ranges to a member that does not know it (rule: common-assignor)."""
    for member, text in assignment.items():
        if any(ranges_of(text).values()) and protocol not in known(member).split(","):
            raise Violation(f"PROTOCOL: {member} is assigned {text} by {protocol}, and knows {known(member)} only")
