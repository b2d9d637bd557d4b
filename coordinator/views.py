"""The read model behind `coop-kafka describe`: a group as people and programs look at it.

Pure: made from a `GroupState`, knows neither Redis nor how a table is drawn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coordinator.group_state import GroupState
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition

Owner = tuple[HashRange, str, str]
"""An owned range with its lane epoch and member."""


@dataclass(frozen=True, slots=True)
class LaneView:
    """A hash range with one position and one owner."""

    hashes: str  # "lo-hi", inclusive, 16 hex digits each
    position: int  # the next offset to read
    lag: int | None  # records and holes from the position to the end; None while the end is unknown
    epoch: str | None  # None: nobody owns the range
    member: str | None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition: its stable offset, and the lanes that make it."""

    topic: str
    partition: int
    stable: int
    end: int | None  # the log's end when a member last looked; None if none has yet
    lag: int | None  # behind the end of the stable offset
    lanes: tuple[LaneView, ...]


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member that holds a lease, or held one and still owns what nobody has taken over."""

    id: str
    lease_left_ms: int  # 0 once the lease has ended: its ranges can be taken (spec R6)
    fields: Mapping[str, str]  # what it said of itself when it joined


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group at one moment."""

    group: str
    state: str  # Kafka's names: Stable, Empty
    members: tuple[MemberView, ...]
    partitions: tuple[PartitionView, ...]


def view(group: str, state: GroupState) -> GroupView:
    """What there is to see of a group."""
    owners = {member for owned in state.owners.values() for _, _, member in owned}
    members = tuple(
        _member(member, end, state)
        for member, end in sorted(state.leases_ms.items())
        if end > state.now_ms or member in owners
    )
    return GroupView(
        group=group,
        state="Stable" if any(member.lease_left_ms for member in members) else "Empty",
        members=members,
        partitions=tuple(_partition(tp, state) for tp in sorted(state.segments)),
    )


def lag(position: int, end: int | None) -> int | None:
    """How far a position is behind the end, in offsets: `lag(40, 50)` is 10.

    Never negative: the end is from a member's last look, and a position may have passed it since.
    A lane's own records are its share of these offsets.
    """
    return None if end is None else max(0, end - position)


def _member(member: str, lease_end_ms: int, state: GroupState) -> MemberView:
    return MemberView(member, max(0, lease_end_ms - state.now_ms), state.members.get(member, {}))


def _partition(tp: TopicPartition, state: GroupState) -> PartitionView:
    segments, owners, end = state.segments[tp], state.owners.get(tp, ()), state.ends.get(tp)
    stable = min((position for _, position in segments), default=state.stable.get(tp, 0))
    lanes = (
        LaneView(str(hashes), position, lag(position, end), epoch, member)
        for segment, position in segments
        for hashes, epoch, member in _owned_pieces(segment, owners)
    )
    return PartitionView(tp.topic, tp.partition, stable, end, lag(stable, end), tuple(lanes))


def _owned_pieces(segment: HashRange, owners: tuple[Owner, ...]) -> Iterator[tuple[HashRange, str | None, str | None]]:
    """The segment, cut where its owner changes.

    segment  |==================|
    owners     |aaaaaa||bbbbbbbbbbbb|
    pieces   |=|aaaaaa||bbbbbbbb|
    """
    bounds = (bound for hashes, _, _ in owners for bound in (hashes.lo, hashes.hi + 1))
    for piece in segment.cut(bounds):
        owner = next(((epoch, member) for hashes, epoch, member in owners if piece.lo in hashes), (None, None))
        yield piece, *owner
