"""An assignment under the group's policies, checked before a member uses it (rule: checked-assignment). Pure.

    a member's assignor --> result --> plain values --> check --> the assignment
             |________________|____________|______________|
                              v
             its failure, and `grouped` with whole partitions instead

A broken user's class costs its group the choice of assignor, and ends no query: any member may compute.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.assignment.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignment.assignors.check import check
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.assignors.result import plain
from coordinator.assignment.policies import Policy
from coordinator.errors import InvalidAssignmentError
from coordinator.values.user_class import FAILURES, error_text, line


@dataclass(frozen=True, slots=True)
class Computed:
    """An assignment that fits the members."""

    assignment: Assignment
    failure: str = ""  # of the requested assignor, in one short line


def computed(
    assignor: Assignor,
    members: Sequence[Subscriber],
    partitions: Mapping[str, int],
    previous: Assignment,
    policy: Policy,
) -> Computed:
    """The assignment of `assignor`, or of `grouped` in whole partitions if it fails."""
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
    """The assignment of `assignor`, with whole partitions of topics that may not be shared.

    If a group has topics of both kinds, each kind is assigned by itself: shares are fair within a kind.
    Raises `InvalidAssignmentError` if the result does not fit the members; code 90 for a range of one that does not
    share.
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
    """The assignor's result for copies of the arguments, which it may change."""
    before = {member: dict(owned) for member, owned in previous.items()}
    try:
        return plain(assignor.assign(list(members), dict(partitions), before), members, partitions)
    except FAILURES as error:
        raise InvalidAssignmentError(
            f"the assignor {assignor.name!r} failed: {error_text(error)}", "fix the assignor, or choose another one"
        ) from error
