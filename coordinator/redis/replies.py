"""Values that cross the edge between a member and the store: who calls, and what the store answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, Self, TypeVar

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.policies import NO_POLICY, Policy
from coordinator.progress.ends import Ends
from coordinator.progress.growth import Growth
from coordinator.progress.ownership import Fact, Facts, Ownership
from coordinator.progress.segments import Progress
from coordinator.redis.group_state import KnownTopic
from coordinator.values.ranges import Offsets
from coordinator.values.subscription import TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: the member, its incarnation, and the state that it saw last."""

    member: str = ""
    incarnation: str = ""
    nonce: str = ""
    seq: str = ""
    number: str = ""  # of this call, in the order of its member's calls; empty where the order does not matter
    founding: str = ""  # of the group that it knows (rule: one-founding)


Proof = int | tuple[Fact, ...] | None
"""Of a partition: its position; facts of a part of its hashes, of a process that has read it; or None."""

ProvenExtents = Mapping[TopicPartition, tuple[str, tuple[Fact, ...]]]
"""The `Extent` text of the newest proofs of a partition, and the positions that they prove."""

NO_EXTENTS: Mapping[TopicPartition, str] = MappingProxyType({})
NO_PROVEN_EXTENTS: ProvenExtents = MappingProxyType({})
NO_RANGES: Ranges = MappingProxyType({})
NO_MEMBER = Caller()
"""The caller of a verb that is not called as a member."""


@dataclass(frozen=True, slots=True)
class SeenState:
    """Identity and age of the state that answered. A smaller `seq` later means a loss of state."""

    nonce: str
    seq: int
    founding: str = ""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The value of a verb that renewed the lease, and the state that it came from."""

    seen: SeenState
    value: T


SETTLE_MS = 2_000
"""How long others wait for the ranges of a member whose tasks have stopped, from the beginning of its end.

Then Spark kills Python workers behind the read (spark.python.task.killTimeout).
"""


@dataclass(frozen=True, slots=True)
class Leaving:
    """How long others wait for the unconfirmed ranges of a member that leaves (rule: leave-keeps-unconfirmed)."""

    within_ms: int | None  # None: to the end of its lease
    writers: str  # who may still write, for people

    @classmethod
    def of(cls, writers: str, since_ms: int) -> Self:
        """A leave whose end began so long ago. `writers` names tasks that may still read; empty if all have stopped."""
        if writers:
            return cls(None, writers)
        return cls(max(0, SETTLE_MS - since_ms), "Spark may still write records that its tasks have read")


LATER = Leaving.of("its tasks may still read", 0)
"""A leave that knows nothing of its tasks."""


@dataclass(frozen=True, slots=True)
class Joining:
    """The fields that a member reports when it joins."""

    fields: Mapping[str, str]  # for people, and for assignors
    application: str = ""  # may have one live member; empty: any number
    topics: tuple[str, ...] = ()  # if not empty: one live member for each of these
    targets: Mapping[TopicPartition, int] = field(default_factory=dict)  # targets of its AvailableNow
    pinned: Ranges = field(default_factory=dict)  # the ranges that a pinned member names
    filter: str = ""  # the text of its record filter (rule: one-filter)
    ordering: str = "key"  # of the group: key, partition or none
    next_nonce: str = "0"  # of a group that changes its ordering with this join
    alone: str = ""  # the name of an application that reads the group alone; empty if it shares
    returns: bool = False  # whether it reads alone, and its checkpoint holds what it has read
    role: str = ""  # of a member that wants to be a standby: standby, or working once it has taken over
    joined_at: str = ""  # of the first join of this life, ms of Redis TIME; empty if it never joined

    @property
    def alone_as(self) -> list[str]:
        """The names that may have one live member (rule: one-member-per-application)."""
        names = [*filter(None, (self.application, self.fields.get("query")))]
        return [f"{name} {topic}" for name in names for topic in self.topics] if self.topics else names

    @property
    def shown(self) -> dict[str, str]:
        """The fields, with the application: by name, or by host and driver if it may have several members."""
        host_and_driver = "/".join(self.fields[name] for name in ("host", "driver_pid") if name in self.fields)
        application = self.application or host_and_driver
        known = {"application": application, "filter": self.filter}
        return {name: text for name, text in known.items() if text} | dict(self.fields)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer of Redis to a join."""

    targets: Mapping[TopicPartition, int]
    joined_at: str  # of the first join of this life, ms of Redis TIME: the order of the lives of a member


@dataclass(frozen=True, slots=True)
class JoinReply:
    """The answer to a join."""

    seen: SeenState  # the state of the group
    lease_end_ms: int  # of this host's clock
    targets: Mapping[TopicPartition, int]  # AvailableNow's, raised to those of the other members
    joined_at: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """The assignment as one member sees it."""

    generation: int
    mine: Ranges
    occasion: str  # of the assignment that this member should compute; empty if there is none
    members: tuple[str, ...]  # the members to assign ranges to
    targets: Mapping[TopicPartition, int] = field(default_factory=dict)  # of AvailableNow: the highest of all members
    protocol: str = ""  # of the assignment in force; empty if another assignment is due
    growths: tuple[Growth, ...] = ()  # of all topics of the group
    policy: Policy = NO_POLICY
    role: str = ""  # standby or working; empty of a member that is never a standby
    now_ms: int = field(default=0, compare=False)  # of Redis TIME


@dataclass(frozen=True, slots=True)
class Status:
    """Founding, reset epoch and topics of a group, and how many members live."""

    reset: int
    topics: Mapping[str, KnownTopic]
    founding: str = ""
    alive: int = 0


@dataclass(frozen=True, slots=True)
class Acquired:
    """The ranges that a member owns now, and their positions."""

    reset: int
    topic_ids: Mapping[str, str]  # as recorded by the group
    ownership: Ownership
    progress: Mapping[TopicPartition, Progress]  # of the owned ranges
    whole: Mapping[TopicPartition, Progress]  # of all hashes, of every owner, if the partition has ICs


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The slices that a member got, and the positions of all partitions that have one."""

    reset: int
    topic_ids: Mapping[str, str]  # as recorded by the group
    positions: Mapping[TopicPartition, int]
    reach: Mapping[TopicPartition, int]  # the offset after the last one that is done
    epoch: str  # the lane epoch of all slices; empty if there are none
    slices: Mapping[TopicPartition, Offsets]
    policy: Policy = NO_POLICY
    now_ms: int = field(default=0, compare=False)  # of Redis TIME


@dataclass(frozen=True, slots=True)
class Authorized:
    """The parts of a batch that its member still owns, and what Redis knows of its ends.

    `ends`: an earlier life sealed the batch; None: no life did. `as_planned`: it is sealed at its planned ends, as the
    call asked. `unknown`: an earlier life may have sealed it, and the seal is lost.
    """

    owned: Ownership
    ends: Ends | None = None
    as_planned: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Sealed:
    """What Redis knows of a batch that the sink has completed: its ends, or whether its member ever authorised it."""

    ends: Ends | None = None
    unread: bool = False  # it authorised another batch last


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a commit: the refused facts, empty if there are none.

    `unread`: nothing was written, for the member never authorised this batch (rule: unread-batch).
    `exactly`: no partition has individual commits, and each position is that of the facts. Then the member knows
    its positions without another look (rule: fresh-positions).
    """

    refused: Facts
    exactly: bool
    unread: bool = False
