"""An assignment under the group's policies, checked before anybody uses it (spec 4.1, 6). Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator.assignment.policies import Policy
from coordinator.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignors.check import check
from coordinator.errors import CoopKafkaError, InvalidAssignmentError


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
    try:
        assignment = assignor.assign(members, partitions, previous)
        check(assignment, members, partitions)
    except CoopKafkaError:
        raise
    except Exception as error:
        raise InvalidAssignmentError(
            f"the assignor {assignor.name!r} failed: {type(error).__name__}: {error}",
            "mend the assignor, or choose another one",
        ) from error
    return assignment
