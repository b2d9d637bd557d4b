"""The read model behind `coop-kafka describe`. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.policies import is_plain_copy
from coordinator.assignment.rebalance import union
from coordinator.progress.growth import Growth
from coordinator.progress.segments import Progress
from coordinator.redis.group_state import LONGEST_BATCH, PINNED, STANDBY, WORKING, GroupState, Handed
from coordinator.tools.fields import (
    EndAge,
    GroupField,
    HashesText,
    Inclusive,
    LaneEpoch,
    LogEnd,
    Means,
    MemberId,
    MemberState,
    PartitionNumber,
    RecoveringMs,
    StableOffset,
    TopicField,
)
from coordinator.tools.operations.gaps import PartitionGaps, count, progress
from coordinator.tools.operations.log_ends import age_s
from coordinator.values.hash_map import HashMap, missing
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.ranges import union as joined
from coordinator.values.subscription import TopicPartition

_FAILED = " (failed: grouped, whole partitions)"


@dataclass(frozen=True, slots=True)
class LaneView:
    """A hash range with one position and one owner."""

    hashes: HashesText
    position: Annotated[int, Means("The next offset to read.", "POSITION")]
    lag: Annotated[int | None, Means("Offsets from the position to the end.", "LANE LAG")]
    epoch: LaneEpoch
    member: Annotated[str | None, Means("Its owner; null if it has none.", "MEMBER")]


@dataclass(frozen=True, slots=True)
class SlicesView:
    """Offsets of a partition that one member of a group without order reads now."""

    offsets: Annotated[
        tuple[Inclusive, ...],
        Means("Ranges of offsets: the first and the last of each. Only without order.", "OFFSETS"),
    ]
    epoch: Annotated[str, Means("Their lane epoch.")]
    member: Annotated[str, Means("The member that reads them now.", "MEMBER")]
    since_s: Annotated[float | None, Means("Age of its batch; null before its authorisation.", "SINCE S")]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition with its lanes."""

    topic: TopicField
    partition: PartitionNumber
    stable: StableOffset
    end: LogEnd
    lag: Annotated[int | None, Means("Offsets from the stable offset to the end.", "LAG")]
    gaps: Annotated[int, Means("Number of gaps above the stable offset.", "GAPS")]
    lanes: tuple[LaneView, ...]
    slices: tuple[SlicesView, ...] = ()  # of a group without order, by their first offsets
    end_age_s: EndAge = None

    @property
    def tp(self) -> TopicPartition:
        """Topic and number."""
        return TopicPartition(self.topic, self.partition)

    @property
    def owners(self) -> set[str]:
        """The members that own its lanes."""
        return {lane.member for lane in self.lanes if lane.member}


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member with a lease, or whose lease ended while it owned ranges that no member has acquired since."""

    member: MemberId
    lease_left_ms: Annotated[int, Means("Time left of its lease; 0 after its end.", "LEASE")]
    state: MemberState
    fields: Annotated[
        Mapping[str, str],
        Means(
            "Name to text, as the member joined: `host`, `driver_pid`, `pid` (of the reader), `capacity`, "
            "`application`, `label.*` and others.",
            "HOST, DRIVER PID, READER PID, CAPACITY, APPLICATION, LABELS",
        ),
    ]


@dataclass(frozen=True, slots=True)
class GrowthView:
    """The growth of a topic (rule: growth-order)."""

    topic: Annotated[str, Means("A topic with [added partitions](ordering.md#when-you-add-partitions).")]
    old: Annotated[int, Means("Partitions before.")]
    new: Annotated[int, Means("Partitions after.")]
    promise: Annotated[str, Means("The keys whose order is kept.")]
    ordered: Annotated[bool, Means("Whether it is the order of all keys.")]
    grace_left_ms: Annotated[int, Means("Time left of the grace; 0 after it.")]
    waiting: Annotated[bool, Means("Whether new partitions wait for older ones.")]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group at one moment."""

    group: GroupField
    state: Annotated[str, Means("[State](operations.md#describe) of the group, by Kafka's names.")]
    generation: Annotated[int, Means("Generation of the assignment; 0 before the first.")]
    assignor: Annotated[str, Means("Name and version of the assignor; empty before the first assignment.")]
    reset: Annotated[int, Means("Reset epoch: 0, or the time of the last reset.")]
    recovering_ms: RecoveringMs
    policy: Annotated[Mapping[str, str], Means("[Policies](ordering.md#policies) that were set: name to boolean.")]
    members: tuple[MemberView, ...]
    partitions: tuple[PartitionView, ...]
    growths: tuple[GrowthView, ...] = ()
    ordering: Annotated[str, Means("`key`, `partition` or `none`.")] = "key"
    unread: Annotated[tuple[str, ...], Means("Ranges that no working member of a pinned group names.")] = ()


def view(group: str, state: GroupState) -> GroupView:
    """The view of a group."""
    shown = live(state) | {member for owners in state.owners.values() for _, _, member in owners}
    shown |= {s.member for handed in state.handed.values() for s in handed}
    members = tuple(_member(member, end, state) for member, end in sorted(state.leases_ms.items()) if member in shown)
    recovering_until = float(state.meta.get("recovering_until") or 0)
    return GroupView(
        group=group,
        state=_state(state, members),
        generation=int(state.meta.get("generation", "0")),
        assignor=state.meta.get("protocol", "") + (_FAILED if "failure" in state.meta else ""),
        reset=state.reset_epoch,
        recovering_ms=max(0, int(recovering_until) - state.now_ms),
        policy={name: value for name, value in state.policy.items() if not is_plain_copy(name, value)},
        members=members,
        partitions=tuple(_partition(tp, state) for tp in sorted(state.segments)),
        growths=tuple(_growth(growth, state) for growth in state.growths),
        ordering=state.ordering,
        unread=tuple(_unread(state, members)),
    )


def oldest_end_s(partitions: Iterable[PartitionView | PartitionGaps]) -> float | None:
    """The age of the oldest log end that is shown; None if no end is known."""
    return max((p.end_age_s for p in partitions if p.end_age_s is not None), default=None)


def total_lag(partitions: Iterable[PartitionView]) -> int | None:
    """The lag of those partitions whose end is known; None if no end is known."""
    known = [p.lag for p in partitions if p.lag is not None]
    return sum(known) if known else None


def whole_lag(partitions: Collection[PartitionView]) -> int | None:
    """The lag of these partitions; None unless each end is known."""
    known = [p.lag for p in partitions if p.lag is not None]
    return sum(known) if len(known) == len(partitions) else None


def worst_first(partitions: Iterable[PartitionView]) -> list[PartitionView]:
    """The partitions, those with the largest lag first."""
    return sorted(partitions, key=lambda p: (-(p.lag or 0), p.tp))


def live(state: GroupState) -> frozenset[str]:
    """The members whose lease runs."""
    return frozenset(member for member, end in state.leases_ms.items() if end > state.now_ms)


def working(members: Iterable[MemberView]) -> list[str]:
    """Those of the members that work."""
    return [m.member for m in members if m.state == WORKING]


def lag(position: int, end: int | None) -> int | None:
    """Offsets from a position to the end: `lag(40, 50)` is 10.

    Never negative: the end is of a member's last look, and a position may have passed it since.
    """
    return None if end is None else max(0, end - position)


def _growth(growth: Growth, state: GroupState) -> GrowthView:
    left = max(0, growth.until_ms - state.now_ms)
    waiting = growth.gated and not growth.passed(state.stable)
    return GrowthView(growth.topic, growth.old, growth.new, growth.promise, growth.kept, left, waiting)


def _member(member: str, lease_end_ms: int, state: GroupState) -> MemberView:
    left = max(0, lease_end_ms - state.now_ms)
    return MemberView(member, left, _member_state(member, left, state), state.members.get(member, {}))


def _member_state(member: str, lease_left_ms: int, state: GroupState) -> str:
    if not lease_left_ms:
        return "ended"
    if member in state.leaving:
        return "leaving"
    if state.standbys.get(member) == STANDBY:
        return STANDBY
    return "hung" if state.hung_ms.get(member, state.now_ms) < state.now_ms else WORKING


def _state(state: GroupState, members: tuple[MemberView, ...]) -> str:
    """Kafka's name for the state of the group; `Dead` does not occur, since such a group does not exist."""
    if not live(state):
        return "Empty"
    if state.ordering == "none":  # it has no assignment (rule: hand-out)
        return "Stable"
    at_work = {*working(members)}
    assigned, taken = _assigned(state), owned(state)
    if state.meta.get("protocol") == PINNED:  # the entries and the ranges of other members wait for their spares
        assigned, taken = ({m: ranges for m, ranges in of.items() if m in at_work} for of in (assigned, taken))
        waiting = assigned.keys() != at_work
    else:
        waiting = state.assignment.keys() != at_work or _unassigned(state)
    if waiting:
        return "PreparingRebalance"
    return "Stable" if taken == assigned else "CompletingRebalance"


def _unread(state: GroupState, members: tuple[MemberView, ...]) -> Iterator[str]:
    """The ranges that no working member of a pinned group names; none in a group that assigns ranges."""
    if state.meta.get("protocol") != PINNED:
        return
    named = [state.assignment.get(member, {}) for member in working(members)]
    for tp in sorted(state.segments):
        yield from (f"{tp} {hashes}" for hashes in missing(WHOLE, (h for ranges in named for h in ranges.get(tp, ()))))


def _unassigned(state: GroupState) -> bool:
    """Whether a topic has grown since the assignment."""
    assigned = {tp for ranges in state.assignment.values() for tp in ranges}
    topics = {tp.topic for tp in assigned}
    return any(tp.topic in topics and tp not in assigned for tp in state.segments)


def _assigned(state: GroupState) -> dict[str, Ranges]:
    ranges = {m: {tp: union(r) for tp, r in of_member.items() if r} for m, of_member in state.assignment.items()}
    return {m: of_member for m, of_member in ranges.items() if of_member}


def owned(state: GroupState) -> dict[str, Ranges]:
    """The ranges of each member, at lane epochs in force."""
    found: dict[str, dict[TopicPartition, list[HashRange]]] = {}
    for tp, owners in state.owners.items():
        for hashes, epoch, member in owners:
            if state.in_force(epoch):
                found.setdefault(member, {}).setdefault(tp, []).append(hashes)
    return {m: {tp: union(r) for tp, r in of_member.items()} for m, of_member in found.items()}


def _partition(tp: TopicPartition, state: GroupState) -> PartitionView:
    segments, owners, end = state.segments[tp], state.owners.get(tp, ()), state.ends.get(tp)
    stable = min((position for _, position in segments), default=state.stable.get(tp, 0))
    owner_of = HashMap((hashes, (epoch, member)) for hashes, epoch, member in owners)
    lanes = (
        LaneView(str(hashes), position, lag(position, end), *owner)
        for segment, position in segments
        for hashes, owner in owner_of.filled(segment, (None, None))
    )
    found = progress(state, tp)
    slices = tuple(_slices(state, state.handed.get(tp, ()), found))
    behind, gaps = lag(stable, end), count(found)
    return PartitionView(tp.topic, tp.partition, stable, end, behind, gaps, tuple(lanes), slices, age_s(state, tp))


def _slices(state: GroupState, handed: Iterable[Handed], found: Progress) -> Iterator[SlicesView]:
    """The slices at lane epochs in force, each without the offsets that are done in every hash."""
    held: dict[tuple[str, str], list[OffsetRange]] = {}
    for offsets, epoch, member in handed:
        held.setdefault((epoch, member), []).extend(r for s in found.segments for r in s.remaining(offsets))
    for (epoch, member), unread in held.items():
        if unread and state.in_force(epoch):
            yield SlicesView(tuple(map(Inclusive.of, joined(unread))), epoch, member, runs_s(member, state))


def runs_s(member: str, state: GroupState) -> float | None:
    """Since when a batch of the member runs: Redis has the time at which it counts as hung."""
    hung_ms, longest = state.hung_ms.get(member), state.members.get(member, {}).get(LONGEST_BATCH)
    if hung_ms is None or longest is None:
        return None
    return max(0, state.now_ms - (hung_ms - int(longest))) / 1_000
