"""The edges the coordinator needs, as protocols: the log (Kafka), and the store (Redis) in four parts.

    Members     the members of the group, and the ranges assigned to each
    Positions   positions, and the lane epochs that guard them
    Poison      slices under way, strikes of those that a lost member left, and failing records
    Reports     values for people, without influence on any decision (rule: reports-decide-nothing)

Every verb of the store may raise a `verdicts.Verdict`. An error of Redis itself is a `StoreError`, and an unreadable
value in Redis a `StateFormatError`. An `Answer` also means that the caller's lease was renewed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.assignment.policies import Policy
from coordinator.plan.poison import Strike
from coordinator.progress.ends import Ends
from coordinator.progress.failing import FailingRecord
from coordinator.progress.growth import Growth, Segments
from coordinator.progress.ownership import Fact, Facts, Ownership
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.lane_lines import BatchLine, LaneLine
from coordinator.redis.replies import (
    LATER,
    Acquired,
    Admitted,
    Answer,
    Authorized,
    Caller,
    HandedOut,
    Joining,
    Leaving,
    Look,
    Moved,
    Sealed,
    Status,
)
from coordinator.values.offset_spec import OffsetSpec
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Bounds, Subscription, Topic, TopicPartition

Offsets = Mapping[TopicPartition, int]
NO_EXTENTS: Mapping[TopicPartition, str] = MappingProxyType({})
NO_RANGES: Ranges = MappingProxyType({})


class Log(Protocol):
    """Kafka as the driver sees it. Every call talks to a broker; errors are `LogError`s."""

    def topics(self, subscription: Subscription, *, quick: bool = False) -> dict[str, Topic]:
        """The topics a subscription means now, by name; of a pattern perhaps without new ones, if `quick`.

        A topic that is subscribed to by name and does not exist raises `UnknownTopicError`, so does
        an assigned partition that the topic does not have; a pattern may match nothing. For
        `Assigned`, `Topic.partitions` holds only the assigned partitions.
        """

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Offsets | None = None
    ) -> dict[TopicPartition, Bounds]:
        """Beginning and end of each partition's log, with the leader epoch from the same answer as the end.

        Only the ends are asked for where `beginnings` are known.
        """

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: Offsets | None = None
    ) -> dict[TopicPartition, Bounds]:
        """The same of the partitions whose leader answers now. Raises once one has not answered for too long."""

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where, in each log as it is now, the records of that leader epoch and older ones end.

        Partitions whose leader knows nothing of leader epochs are left out.
        """

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition's log, whatever isolation reads have: records of open transactions lie below it."""

    def high_watermarks_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The same of the partitions whose leader answers now."""

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that `spec` means in each of `partitions`, by Spark's rules for it."""

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int]:
        """The time, in milliseconds, of the first record that is left in each stretch; none where there is none."""

    def leader_racks(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        """The rack of each partition's leader, where the broker names one; topics that do not exist are left out."""

    def must_hold_offsets(self, group: str) -> None:
        """Raise `GroupTypeError` if Kafka's own group of that name is of a type that cannot hold offsets of ours."""

    def group_offsets(self, group: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        """What Kafka's own group of that name has committed: offset and metadata text. Not `patient`: asked once."""

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        """Commit to Kafka's own group; False if plain consumers live in it, which forbids that."""

    def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete the offsets of these partitions from Kafka's own group, and the group too if it is then empty."""

    def cluster_policies(self) -> tuple[str, Mapping[str, str]]:
        """The policies of the whole Kafka cluster, by name, with a version that only grows; empty if there are none.

        Raises `KafkaAccessError` if this user may not read them.
        """

    def close(self) -> None:
        """Drop the connections."""


Proof = int | tuple[Fact, ...] | None
"""Of a partition: its position; facts of a part of its hashes, of a process that has read it; or None."""


class Members(Protocol):
    """The members of one group."""

    def join(self, caller: Caller, joined_nonce: str, joining: Joining) -> Answer[Admitted]:
        """Join with this incarnation. The answer has the targets, raised to those of the other members.

        Raises `Busy` while another member of the same application, or of the same query, lives. Raises `Held` while
        another member works that reads pinned ranges of this one, or that is assigned ranges where this one is pinned.
        Raises `OtherFilter` or `OtherOrdering` while any member of a group with another filter or ordering lives.
        """

    def heartbeat(self, caller: Caller, *, reading: bool = False) -> Answer[None]:
        """Renew the lease. Push the expiry of all keys of the group, including topics of other members.

        `reading`: a task of an authorised batch may read. The clock of the batch runs just as long (rule: batch-clock).
        """

    def forget(self, caller: Caller, topics: Collection[str]) -> Answer[tuple[TopicPartition, ...]]:
        """Delete those of `topics` that no live member has subscribed to for `retention_ms`: their partitions.

        A topic is marked at the first call that finds no subscriber: its time runs from then on (rule: topic-expiry).
        """

    def look(self, caller: Caller) -> Answer[Look]:
        """The ranges that the member should own, and whether an assignment is due."""

    def subscribers(self, members: Sequence[str]) -> tuple[Subscriber, ...]:
        """The fields of these members that an assignor may read. Members that have left are missing."""

    def assignment(self) -> Assignment:
        """The assignment in force."""

    def partition_counts(self) -> Mapping[str, int]:
        """The group's topics with their partition counts."""

    def policy(self) -> Policy:
        """The policies in force; the defaults if none is set."""

    def copy_policies(self, version: str, policy: Policy) -> None:
        """Copy the policies of the Kafka cluster to the group, unless it has newer ones (rule: cluster-policies)."""

    def assign(
        self, caller: Caller, occasion: str, protocol: str, assignment: Assignment, failure: str = ""
    ) -> Answer[int]:
        """Record an assignment. The answer is its generation, or 0 if its occasion has passed.

        `failure` is the error of this protocol's assignor, if another one made the assignment.
        """

    def release(self, caller: Caller, ranges: Ranges) -> Answer[int]:
        """Release the parts of `ranges` that are assigned to other working members. The answer is their number.

        A pinned member releases all of them.
        """

    def leave(self, caller: Caller, unconfirmed: Ranges, leaving: Leaving = LATER) -> int:
        """Free every range without an unconfirmed slice. The answer is the number of ranges kept.

        `leaving` says how long others wait for these (rule: leave-keeps-unconfirmed).
        """

    def finish(self, caller: Caller, targets: Offsets, pinned: Ranges = NO_RANGES) -> Answer[bool]:
        """AvailableNow: whether every hash of every partition is at its target, or parked at its position.

        Of the partitions in `pinned`, only these hashes count.
        """


class Positions(Protocol):
    """The positions of one group."""

    def now_ms(self) -> int:
        """Redis TIME in ms."""

    def status(self) -> Status:
        """Reset epoch and topics of the group. Raises `Absent` if Redis holds nothing of it."""

    def create(
        self,
        nonce: str,
        topics: Mapping[str, Topic],
        positions: Offsets,
        *,
        grace_ms: int = 0,
        founding: str = "",
    ) -> Answer[int]:
        """Write first positions where there are none; how many. With a `nonce`, create the group if it is absent.

        Raises `Replaced` if the group has another `founding`, `Recovering` for a caller that names none: it proves
        nothing, and others prove their positions first.
        A topic with more partitions in Kafka than a member has seen has grown. The growth is recorded with its grace,
        whichever of its partitions the caller reads.
        """

    def acquire(self, caller: Caller, wanted: Ranges, one: Collection[str] = ()) -> Answer[Acquired]:
        """Acquire the free or takeable parts of `wanted`. The answer is all owned ranges with their positions.

        Of the topics `one`, each wanted range has one lane epoch if the member owns all of it (rule: partition-order).

        Raises `Lost` if a wanted partition has no positions: `create` has written them at this nonce.
        """

    def hand_out(self, caller: Caller, ends: Offsets, most: int, size: int) -> Answer[HandedOut]:
        """Take the lowest free offsets below `ends`, at most `most`: those of a group without order (rule: hand-out).

        Partitions take turns; each gives at most `size` offsets in a turn. First the caller's own slices become free,
        and those of members whose lease has ended. With 0 as `most` it gets positions only. The same call, sent twice,
        gets the same slices.
        """

    def authorize(
        self, caller: Caller, end: StreamOffset, *, replayed: bool = False, as_planned: bool = False
    ) -> Answer[Authorized]:
        """The parts of the lanes of `end` that the member still owns (rule: authorize-every-batch).

        `replayed`: another process planned it, and its tasks may end slices early. `as_planned`: seal it at its planned
        ends, unless an earlier life has authorised it.
        """

    def seal(self, caller: Caller, digest: str, ends: Ends, failing: Sequence[FailingRecord] = ()) -> Answer[bool]:
        """Add true ends of a batch to its seal (rule: seal-before-sink); False if it is not the last batch.

        `failing`: the records at which hashes end. Those of hashes that the member no longer owns are not stored.
        """

    def seal_of(self, member: str, digest: str) -> Sealed:
        """The true ends of the batch with this digest, which an earlier life has sealed."""

    def commit(self, caller: Caller, offset: StreamOffset, facts: Facts, digest: str = "") -> Answer[Moved]:
        """Move positions through the fence. With a digest, only if this member authorised that batch."""

    def claim(self, offset: StreamOffset, facts: Facts) -> None:
        """Assert positions without the fence (rule: assert-beginnings).

        Facts of an older reset epoch, of another topic id or of an older leader epoch than the stored one are ignored.
        """

    def recreate(
        self, topics: Mapping[str, Topic], positions: Offsets, extents: Mapping[TopicPartition, str] = NO_EXTENTS
    ) -> None:
        """Write new positions for partitions whose log was replaced or cut. Every lane epoch on them is void.

        `extents` are written too: `Extent` texts of logs that were cut. Positions of the same topic never rise.
        """

    def recover(
        self,
        caller: Caller,
        nonce: str,
        why: str,
        reset: int,
        topics: Mapping[str, Topic],
        proven: Mapping[TopicPartition, Proof],
        growths: Sequence[Growth] = (),
        policy: Policy | None = None,
    ) -> bool:
        """Recover from a loss of state, at `nonce` (rule: recover-by-proof). Does nothing if that was done already.

        True: nothing was recovered yet, since others may prove the rest of a partition (rule: proofs-add-up).

        `proven` are positions of the reset epoch `reset`. If it is newer than the one in Redis, positions in Redis
        prove nothing. `growths` are recorded if Redis has none of that name. The
        stricter of `policy` and of the policies in Redis holds; without both, policies are unknown. Raises
        `StateLostError` if a partition has no position, in Redis or in `proven`.
        """

    def reset_epoch(self) -> int:
        """The reset epoch in Redis, also before a recovery; 0 if Redis holds nothing."""

    def stable(self, topics: Sequence[str]) -> Offsets:
        """The stable offset of every partition of `topics`."""

    def extents(self, topics: Sequence[str]) -> Mapping[TopicPartition, str]:
        """How far the logs of `topics` reached under which leader epoch, as `Extent` texts."""

    def report_ends(self, ends: Offsets, extents: Mapping[TopicPartition, str]) -> None:
        """Write the log ends, for people and for commits, and `extents`, which are `Extent` texts."""

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Segments]:
        """The positions of all hashes of those `partitions` that have positions, of every owner."""

    def progress(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Progress]:
        """The positions and individual commits of all hashes of those `partitions` that have positions."""

    def growths(self) -> tuple[Growth, ...]:
        """Every recorded growth; none if there is no group."""

    def grow(self, growths: Sequence[Growth]) -> None:
        """Record growths that are missing, and ends of growths that have none."""


class Poison(Protocol):
    """The calls that keep a hung record from stopping the group member by member."""

    def at_work(self) -> frozenset[str]:
        """The members that have written slices."""

    def working(self, caller: Caller, text: str) -> Answer[None]:
        """Write the slices that are begun and not ended, as `poison.working_text` has them; empty after a batch."""

    def strike(self, member: str) -> None:
        """Strike the slices of `member` if its lease or its longest batch is over. Any member may call this."""

    def strikes(self) -> tuple[Strike, ...]:
        """Every strike in force."""

    def forgive(self, strikes: Sequence[Strike], why: str = "") -> int:
        """Remove strikes; `why` is the reason of an operator. The answer is their number."""

    def failing(self) -> tuple[FailingRecord, ...]:
        """Every failing record."""

    def resume(self, records: Sequence[FailingRecord], why: str = "") -> int:
        """Remove failing records, unless newer ones replaced them; `why` is the reason of an operator. Their number."""

    def abandon(self, caller: Caller, ranges: Ownership) -> Answer[None]:
        """Free ranges at their lane epochs: a batch that leaves them out can never commit them."""


class Reports(Protocol):
    """What a group shows to people and programs."""

    def event(self, kind: str, why: str, member: str = "", ranges: Ranges | None = None) -> None:
        """Add an event to the events stream."""

    def batch(self, line: BatchLine) -> None:
        """Add a batch to the group's history."""

    def lanes(self, caller: Caller, lines: Sequence[LaneLine], slow_percent: int) -> Answer[None]:
        """Replace the member's lane lines. Also write which percentage of its slots slow lanes take."""


@dataclass(frozen=True, slots=True)
class Store:
    """The state of one group. Safe for two threads (the reader's and its heartbeat)."""

    members: Members
    positions: Positions
    poison: Poison
    reports: Reports
