"""The check of every assignment before it is used, of each assignor (rule: checked-assignment).

The ranges of each partition tile its hash space among subscribers of its topic. A member that does not share has whole
partitions only.
"""

from collections.abc import Mapping, Sequence

from coordinator.assignment.assignors.assignor import Assignment, Subscriber, topic_partitions
from coordinator.errors import ConsumerRangeFetchNotAcceptedError, InvalidAssignmentError
from coordinator.values.hash_map import HashMap, missing, overlap
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

_REMEDY = "fix the assignor, or choose another one"


def check(assignment: Assignment, members: Sequence[Subscriber], partitions: Mapping[str, int]) -> None:
    """Raise InvalidAssignmentError unless `assignment` fits the members and tiles their partitions."""
    known = {m.member: m for m in members}
    pieces: dict[TopicPartition, list[tuple[HashRange, str]]] = {}
    for member, owned in assignment.items():
        for tp, ranges in owned.items():
            _check_member(known.get(member), member, tp, ranges)
            pieces.setdefault(tp, []).extend((h, member) for h in ranges)
    wanted = {tp for m in members for t in m.topics for tp in topic_partitions(t, partitions.get(t, 0))}
    for tp in sorted(wanted | pieces.keys()):
        if tp not in wanted:
            raise InvalidAssignmentError(f"{tp} is assigned, but does not exist", _REMEDY)
        _check_tiles(tp, sorted(pieces.get(tp, ())))


def _check_member(
    subscriber: Subscriber | None, member: str, tp: TopicPartition, ranges: tuple[HashRange, ...]
) -> None:
    if subscriber is None:
        raise InvalidAssignmentError(f"{tp} is assigned to {member}, which is not a member", _REMEDY)
    if tp.topic not in subscriber.topics:
        raise InvalidAssignmentError(f"{tp} is assigned to {member}, which does not subscribe to its topic", _REMEDY)
    if overlap(ranges):
        raise InvalidAssignmentError(f"the ranges of {member} in {tp} overlap or do not ascend", _REMEDY)
    if ranges and not subscriber.sharing and ranges != (WHOLE,):
        raise ConsumerRangeFetchNotAcceptedError(
            f"{member} does not share partitions, but the assignor assigned it {', '.join(map(str, ranges))} of {tp}"
        )


def _check_tiles(tp: TopicPartition, pieces: list[tuple[HashRange, str]]) -> None:
    for hashes, members in HashMap.stacked(pieces):
        if len(members) > 1:
            raise InvalidAssignmentError(f"{hashes} of {tp} is assigned to {' and '.join(members)}", _REMEDY)
    if free := missing(WHOLE, (hashes for hashes, _ in pieces)):
        raise InvalidAssignmentError(f"no member owns {free[0]} of {tp}", _REMEDY)
