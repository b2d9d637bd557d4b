"""An assignment under the group's policies, checked before anybody uses it (rule: checked-assignment). Pure.

    a member's assignor --> result --> plain values --> check --> the assignment
             |________________|____________|______________|
                              v
             its failure, and `grouped` with whole partitions instead

A user's class that is broken costs its group the choice of assignor and no query: which member computes is chance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.assignment.policies import Policy
from coordinator.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignors.check import check
from coordinator.assignors.grouped import Grouped
from coordinator.assignors.result import plain
from coordinator.errors import InvalidAssignmentError
from coordinator.user_class import FAILURES, line, said


@dataclass(frozen=True, slots=True)
class Computed:
    """An assignment that fits the members."""

    assignment: Assignment
    failure: str = ""  # why it is not of the assignor that was asked; one short line


def computed(
    assignor: Assignor,
    members: Sequence[Subscriber],
    partitions: Mapping[str, int],
    previous: Assignment,
    policy: Policy,
) -> Computed:
    """What `assignor` gives to whom, or `grouped` in whole partitions where it fails."""
    try:
        return Computed(assigned(assignor, members, partitions, previous, policy))
    except InvalidAssignmentError as error:
        apart = [replace(m, sharing=False) for m in members]
        return Computed(assigned(Grouped(), apart, partitions, previous, policy), line(error.headline))


def assigned(
    assignor: Assignor,
    members: Sequence[Subscriber],
    partitions: Mapping[str, int],
    previous: Assignment,
    policy: Policy,
) -> Assignment:
    """What `assignor` gives to whom; topics that may not be shared go out in whole partitions, as if nobody shared.

    Where a group has topics of both kinds, each kind is assigned for itself: fair within, not over both.
    Raises `InvalidAssignmentError` where the result does not fit the members, and its code 90 where one
    that does not share is given a range.
    """
    shared = {t: count for t, count in partitions.items() if policy.may_share(t)}
    apart = {t: count for t, count in partitions.items() if t not in shared}
    first = _checked(assignor, members, shared, previous)
    second = _checked(assignor, [replace(m, sharing=False) for m in members], apart, previous)
    return {m.member: {**first.get(m.member, {}), **second.get(m.member, {})} for m in members}


def _checked(
    assignor: Assignor, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment
) -> Assignment:
    """The assignment of these topics alone."""
    if not partitions:
        return {}
    members = [replace(m, topics=m.topics & partitions.keys()) for m in members]
    assignment = _asked(assignor, members, partitions, previous)
    check(assignment, members, partitions)
    return assignment


def _asked(
    assignor: Assignor, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment
) -> Assignment:
    """What the assignor returns for copies of ours, which are its own to change."""
    before = {member: dict(owned) for member, owned in previous.items()}
    try:
        return plain(assignor.assign(list(members), dict(partitions), before), members, partitions)
    except FAILURES as error:
        raise InvalidAssignmentError(
            f"the assignor {assignor.name!r} failed: {said(error)}", "mend the assignor, or choose another one"
        ) from error
