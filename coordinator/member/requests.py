"""What a member asks of the world: one frozen value for each call of Kafka, Redis, the cost model or the listener.

    Kafka    reads
    Redis    reads, and effects; the answer of an effect is what Redis decided
    Cost     the cost model, which lives in the same process
    Notice   what people see: it never fails, and nothing is decided by it
    Mirror   reads Redis and writes Kafka's own group; it never fails

A step names a request, `apply` makes the call, and `Seen` holds the answer. Pure values; `T_co` is the answer's type.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from coordinator.assignment.assigning import Computed
from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.policies import Policy
from coordinator.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.cost.batch_cost import Ended, LaneId
from coordinator.cost.guesses import Allowance
from coordinator.offset_spec import OffsetSpec
from coordinator.plan.packing import Task
from coordinator.plan.planning import OwnedRanges
from coordinator.plan.poison import Strike
from coordinator.progress.growth import Growth, Segments
from coordinator.progress.mirror import GroupOffsets
from coordinator.progress.ownership import Facts, Ownership
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import HashRange, OffsetRange
from coordinator.redis.calls import Seen
from coordinator.redis.membership import Joining, Look
from coordinator.redis.store import Acquired, Moved, Status
from coordinator.reports.lane_lines import BatchLine, LaneLine, LanesTold
from coordinator.reports.lane_report import Planned
from coordinator.subscription import Bounds, Topic, TopicPartition

T_co = TypeVar("T_co", covariant=True)
Offsets = Mapping[TopicPartition, int]
Heirs = Mapping[TopicPartition, Sequence[tuple[HashRange, str]]]


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to a join."""

    seen: Seen  # the state of the group
    lease_end_ms: int  # of this host's clock
    targets: Offsets  # AvailableNow's, raised to those of the other members


class Request(Generic[T_co]):
    """A call of the world, whose answer is a `T_co`."""

    __slots__ = ()


class Kafka(Request[T_co]):
    """A call of Kafka; its errors are `LogError`s, which end the query's call."""

    __slots__ = ()


class Redis(Request[T_co]):
    """A call of Redis: a verdict or an outage sends the member back to its first step."""

    __slots__ = ()
    numbered: ClassVar[bool] = False
    """Whether it is one of the member's own calls, which it makes one after the other."""


class MemberCall(Redis[T_co]):
    """A call that only a member may make; its answer renews the lease."""

    __slots__ = ()
    numbered: ClassVar[bool] = True


class Cost(Request[T_co]):
    """A call of the cost model."""

    __slots__ = ()


class Notice(Request[bool]):
    """Something to show; the answer is whether it was shown."""

    __slots__ = ()


# -- Kafka -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadTopics(Kafka[Mapping[str, Topic]]):
    """The subscribed topics now; `again`: after log ends were read in the same look."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class ReadLogEnds(Kafka[Mapping[TopicPartition, Bounds] | None]):
    """Beginning and end of each log; None if a topic has vanished, unless `strict`, which raises."""

    partitions: tuple[TopicPartition, ...]
    beginnings: Offsets | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ReadHighWatermarks(Kafka[Offsets]):
    """The high watermarks of partitions."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ReadEpochEnds(Kafka[Offsets]):
    """Where leader epochs end in the logs as they are now."""

    epochs: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ResolveOffsets(Kafka[Offsets]):
    """The offsets that starting options mean."""

    spec: OffsetSpec
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ReadFirstTimes(Kafka[Offsets]):
    """The time of the first record in each stretch of offsets, in ms."""

    stretches: Mapping[TopicPartition, OffsetRange]


@dataclass(frozen=True, slots=True)
class ReadGroupOffsets(Kafka[GroupOffsets]):
    """The offsets of Kafka's own group; nothing where access is denied."""


# -- Redis: members ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Join(Redis[Joined]):
    """Join the group."""

    joined_before: str
    joining: Joining


@dataclass(frozen=True, slots=True)
class Heartbeat(MemberCall[None]):
    """Renew the lease."""


@dataclass(frozen=True, slots=True)
class LookAtGroup(MemberCall[Look]):
    """The assignment as this member sees it."""


@dataclass(frozen=True, slots=True)
class ReadSubscribers(Redis[tuple[Subscriber, ...]]):
    """What an assignor may know of members."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadMetadata(Redis[Mapping[str, str] | None]):
    """What a member reports of itself; nothing where it has left or its entry is damaged.

    `anyway`: None where Redis does not answer.
    """

    member: str
    anyway: bool = False


@dataclass(frozen=True, slots=True)
class ReadAssignment(Redis[Assignment]):
    """The assignment in force."""


@dataclass(frozen=True, slots=True)
class ReadHeirs(Redis[Heirs]):
    """Which parts of ranges are assigned to which other members."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class ReadPartitionCounts(Redis[Mapping[str, int]]):
    """The group's topics with their partition counts."""


@dataclass(frozen=True, slots=True)
class ReadPolicy(Redis[Policy]):
    """The policies in force."""


@dataclass(frozen=True, slots=True)
class Assign(MemberCall[int]):
    """Record an assignment; its generation, 0 if another was first."""

    occasion: str
    protocol: str
    assignment: Assignment
    failure: str


@dataclass(frozen=True, slots=True)
class Release(MemberCall[int]):
    """Release ranges to the members that they are assigned to; how many were released."""

    ranges: Heirs


@dataclass(frozen=True, slots=True)
class Finish(MemberCall[bool]):
    """AvailableNow: whether every hash of every partition is at its target, or parked."""

    targets: Offsets


@dataclass(frozen=True, slots=True)
class Leave(MemberCall[int]):
    """Free every range without an unconfirmed slice; how many are kept until the lease ends."""

    unconfirmed: Ranges


@dataclass(frozen=True, slots=True)
class CheckServer(Redis[None]):
    """A check of the Redis server that raises its own errors."""

    check: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Compute(Request[Computed]):
    """An assignment of the user's assignor, which is called once: it need not be pure."""

    assignor: Assignor
    members: tuple[Subscriber, ...]
    counts: Mapping[str, int]
    previous: Assignment
    policy: Policy


# -- Redis: positions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadStatus(Redis[Status | None]):
    """Reset epoch and topics of the group; None if Redis holds no such group."""


@dataclass(frozen=True, slots=True)
class CreatePositions(Redis[int]):
    """First positions where there are none; `create`: of a group that does not exist yet."""

    topics: Mapping[str, Topic]
    positions: Offsets
    grace_ms: int | None
    create: bool = False


@dataclass(frozen=True, slots=True)
class Acquire(MemberCall[Acquired]):
    """Acquire what is free or takeable; the answer is all that the member owns. `again`: after a release."""

    wanted: Ranges
    placed: bool
    again: bool = False


@dataclass(frozen=True, slots=True)
class Authorize(MemberCall[Ownership]):
    """Which parts of a batch are still owned at their lane epoch."""

    end: StreamOffset


@dataclass(frozen=True, slots=True)
class Commit(MemberCall[Moved]):
    """Move positions through the fence."""

    offset: StreamOffset
    facts: Facts
    digest: str


@dataclass(frozen=True, slots=True)
class Claim(Redis[None]):
    """Assert positions without the fence."""

    offset: StreamOffset
    facts: Facts


@dataclass(frozen=True, slots=True)
class Recreate(Redis[None]):
    """New positions for partitions whose log was replaced or cut."""

    topics: Mapping[str, Topic]
    positions: Offsets


@dataclass(frozen=True, slots=True)
class Recover(Redis[None]):
    """Begin again after a loss of state, at proven positions."""

    why: str
    reset: int
    topics: Mapping[str, Topic]
    proven: Mapping[TopicPartition, int | None]
    growths: tuple[Growth, ...]


@dataclass(frozen=True, slots=True)
class ReadResetEpoch(Redis[int]):
    """The reset epoch that Redis holds."""


@dataclass(frozen=True, slots=True)
class ReadStable(Redis[Offsets]):
    """The stable offsets of topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadExtents(Redis[Mapping[TopicPartition, str]]):
    """What Redis holds of leader epochs."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadPositions(Redis[Mapping[TopicPartition, Segments]]):
    """The positions of every hash of partitions."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ReadGrowths(Redis[tuple[Growth, ...]]):
    """The growths that the group has recorded."""


@dataclass(frozen=True, slots=True)
class RecordGrowths(Redis[None]):
    """Record growths, or the ends of those that have none yet."""

    growths: tuple[Growth, ...]


@dataclass(frozen=True, slots=True)
class ReportEnds(Redis[None]):
    """Store log ends, and how far logs reached under which leader epoch."""

    ends: Offsets
    extents: Mapping[TopicPartition, str]


@dataclass(frozen=True, slots=True)
class ReadRedisTime(Redis[int]):
    """Redis TIME in ms."""


# -- Redis: poison -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadWorking(Redis[frozenset[str]]):
    """The members that have reported which slices they work on."""


@dataclass(frozen=True, slots=True)
class ReportWorking(MemberCall[None]):
    """Report the slices that this member works on, as `poison.working_text` writes them."""

    text: str


@dataclass(frozen=True, slots=True)
class StrikeMember(Redis[None]):
    """Strike the slices of a member if its lease or its longest batch is over."""

    member: str


@dataclass(frozen=True, slots=True)
class ReadStrikes(Redis[tuple[Strike, ...]]):
    """Every strike in force."""


@dataclass(frozen=True, slots=True)
class Forgive(Redis[int]):
    """Remove strikes that were passed."""

    strikes: tuple[Strike, ...]


@dataclass(frozen=True, slots=True)
class Abandon(MemberCall[None]):
    """Give ranges up at their lane epochs."""

    ranges: Ownership


# -- the cost model ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grant(Cost[Allowance]):
    """How much each lane may read; see `Guesses.grant`."""

    work: OwnedRanges
    ends: Offsets
    trial: LaneId | None
    everything: bool
    anew: tuple[LaneId, ...] = ()


@dataclass(frozen=True, slots=True)
class Pack(Cost[tuple[Task, ...]]):
    """The tasks of a batch; see `Guesses.pack`."""

    end: StreamOffset
    readable: StreamOffset
    trial: bool


@dataclass(frozen=True, slots=True)
class Learn(Cost[Ended | None]):
    """The batch that ends here is in the sink; see `Guesses.learn`."""

    start: StreamOffset


@dataclass(frozen=True, slots=True)
class OffsetsOfARecord(Cost[int]):
    """How many offsets hold about one record of a lane."""

    lane: LaneId


@dataclass(frozen=True, slots=True)
class DescribeLanes(Cost[LanesTold]):
    """The lanes of a plan, for people."""

    planned: Planned
    ended: Ended | None


# -- notices -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event(Notice):
    """An entry of the group's events stream."""

    kind: str
    why: str
    ranges: Ranges | None = None


@dataclass(frozen=True, slots=True)
class ShowBatch(Notice):
    """An entry of the group's history of batches."""

    line: BatchLine


@dataclass(frozen=True, slots=True)
class ShowLanes(Notice):
    """The lanes of this member in Redis."""

    lines: tuple[LaneLine, ...]
    slow_percent: int


@dataclass(frozen=True, slots=True)
class Notify(Notice):
    """What the user's ownership listener is called with."""

    revoked: Ranges
    lost: Ranges
    assigned: Ranges


@dataclass(frozen=True, slots=True)
class Mirror(Request[bool | None]):
    """Commit the stable offsets to Kafka's own group; False if plain consumers live in it, None if it failed."""

    partitions: tuple[TopicPartition, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Log(Notice):
    """A line in the driver's log; a warning unless `info`."""

    text: str
    info: bool = False
