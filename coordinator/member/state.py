"""The state of one member between two calls of Spark, as one frozen value.

    life        the identity of the member, its lease, and the last refusal of Redis
    log         Kafka as this member saw it last
    evidence    the offsets that this process has seen, and so may assert
    batch       the micro-batch under way
    commits     the commit under way, and the last commit
    owning      the owned ranges, with their positions
    ...         one value for each further idea below

`turns` holds and replaces the state; steps make the next one. The heartbeat thread only reads it.
Times are ms of this host's clock, unless a comment names another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.policies import NO_POLICY, Policy
from coordinator.errors import RedisUnavailableError
from coordinator.member.batch import Batch
from coordinator.member.evidence import NOTHING, Evidence
from coordinator.member.kinds import Kind, Request
from coordinator.plan.cost.batch_cost import Ended
from coordinator.plan.cost.quotas import Quota
from coordinator.plan.planning import Cutting, OwnedRanges
from coordinator.plan.poison import Strike, TrialLanes
from coordinator.progress.data_loss import Loss
from coordinator.progress.failing import FailingRecord
from coordinator.progress.growth import Growth, Sight
from coordinator.progress.leader_epochs import Extents
from coordinator.progress.slices import LaneId
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.lane_lines import LaneReport
from coordinator.redis.replies import Acquired, Caller, Moved, SeenState
from coordinator.values.subscription import Bounds, OffsetByPartition, Topic, TopicPartition
from coordinator.values.verdicts import Verdict

StoredEnds = tuple[OffsetByPartition, Mapping[TopicPartition, str]]
"""Log ends, and extents as Redis stores them."""

LookedAt = tuple[object, ...]
"""The values of a look that a result was computed from. While they are equal, the result stays."""

NOT_ACQUIRED = Acquired(0, {}, {}, {}, {})


@dataclass(frozen=True, slots=True)
class Away:
    """Redis has not answered some kinds of requests since then. It ends once each of them has an answer.

    Answers to other kinds do not end it: a Redis that is full answers reads, and refuses writes.
    `waited`: the member has waited since the last try.
    """

    since_ms: int
    error: RedisUnavailableError
    waited: bool = False
    unanswered: frozenset[Kind[..., Any]] = frozenset()

    def answered(self, kind: Kind[..., Any]) -> "Away | None":
        """The outage after an answer to a request of this kind; None if it is over."""
        left = self.unanswered - {kind}
        return replace(self, unanswered=left) if left else None


@dataclass(frozen=True, slots=True)
class Life:
    """One life of one member: same checkpoint, same member; each process is another incarnation (rule: one-life)."""

    incarnation: str
    minted: str = ""  # the member id of a checkpoint that names none
    member: str = ""  # empty until an offset has reached this process
    nonce: str = ""  # of the group state that this life has joined; empty: it must join
    nonce_before: str = ""  # the same, kept while it must join again
    founding: str = ""  # of the group that it has found or joined, or that its checkpoint names; empty: it knows none
    joined_at: str = ""  # of its first join, ms of Redis TIME: later lives of the member have a larger one
    asserted_at: str | None = None  # the nonce at which it has asserted its positions; empty: before it joined
    seq: int = 0  # of the latest answer at `nonce`
    lease_end_ms: int = 0  # acknowledged
    role: str = ""  # of a member that wants to be a standby: standby or working, as of the last look
    reached: bool = False  # whether Redis has ever answered
    away: Away | None = None
    verdict: Verdict | None = None  # the last refusal, until a step has handled it
    other: tuple[str, int] | None = None  # a member in the way, and its lease end of Redis TIME

    def answered(self, kind: Kind[..., Any]) -> "Life":
        """The life after an answer of Redis, or a refusal by a script, to a request of this kind."""
        return replace(self, reached=True, away=self.away and self.away.answered(kind))

    @property
    def caller(self) -> Caller:
        """The identity of this life in calls of the store."""
        return Caller(self.member, self.incarnation, self.nonce, str(self.seq), founding=self.founding)

    def renewed(self, seen: SeenState, until_ms: int) -> "Life":
        """The life after an answer to it. A late answer, of another nonce, changes nothing."""
        if seen.nonce != self.nonce:
            return self
        return replace(self, seq=max(self.seq, seen.seq), lease_end_ms=max(self.lease_end_ms, until_ms))

    def rejoining(self) -> "Life":
        """The life that must join again before its next call."""
        return replace(self, nonce="", asserted_at=None)


@dataclass(frozen=True, slots=True)
class Low:
    """A log end that was lower than before at each look since then."""

    epoch: int  # the leader epoch
    since_ms: int
    believed: bool = False


def unsure(low: Mapping[TopicPartition, Low]) -> frozenset[TopicPartition]:
    """The partitions whose low end is not believed yet."""
    return frozenset(tp for tp, of in low.items() if not of.believed)


UNSEEN = Bounds(0, 0)
"""The bounds of a log whose leader has never answered: nothing of it is read or lost."""


@dataclass(frozen=True, slots=True)
class LogView:
    """Kafka as this member saw it last."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    partitions: tuple[TopicPartition, ...] = ()  # of all topics, ascending
    asked_ms: int | None = None  # for the topics
    beginnings: OffsetByPartition | None = None  # as old as the topics
    bounds: Mapping[TopicPartition, Bounds] = field(default_factory=dict)
    epoch_ends: Mapping[tuple[str, TopicPartition, int, int], int | None] = field(default_factory=dict)
    reached: OffsetByPartition = field(
        default_factory=dict
    )  # how far these logs reached at the last look, also if it was low
    low: Mapping[TopicPartition, Low] = field(default_factory=dict)
    silent: frozenset[TopicPartition] = frozenset()  # the leader did not answer at the last look
    told: Mapping[str, int] = field(default_factory=dict)  # partitions that wait for joined topics, as said in the log

    @property
    def unsure(self) -> frozenset[TopicPartition]:
        """The partitions whose end is not known now: nothing is planned of them, and nothing of them is lost yet."""
        return self.silent | unsure(self.low)

    @property
    def topic_ids(self) -> dict[str, str]:
        """The topic ids by name."""
        return {name: topic.id for name, topic in self.topics.items()}


@dataclass(frozen=True, slots=True)
class CommitUnderWay:
    """A commit that Redis has not acknowledged yet."""

    start: StreamOffset
    request: Request[Moved]
    all_of_it: bool = True  # else this member no longer owns a part of the start


@dataclass(frozen=True, slots=True)
class Commits:
    """The last commits."""

    under_way: CommitUnderWay | None = None
    confirmed: StreamOffset | None = None  # the last offset that was committed
    whole: StreamOffset | None = None  # the same, if it was committed whole


@dataclass(frozen=True, slots=True)
class Owning:
    """The ranges that the member owns, as of its last look."""

    acquired: Acquired = NOT_ACQUIRED  # the user's listener knows these ranges
    ranges: Ranges = field(default_factory=dict)  # of `acquired`
    as_of: tuple[str, int] | None = None  # nonce and generation
    lacking: bool = False  # whether the assignment gives it more: others have not freed it, or it has no position
    stale: bool = False  # positions have moved since: acquire again before the next plan
    placed: frozenset[TopicPartition] = frozenset()  # partitions that have positions since `placed_at`
    placed_at: str = ""  # a nonce
    unplaced: frozenset[TopicPartition] = frozenset()  # have none at `placed_at`: their leader has not answered yet
    topics: frozenset[str] = frozenset()  # subscribed to at the last join, which reported them
    asked_for: frozenset[TopicPartition] = frozenset()  # assigned, but unknown to Kafka when asked
    targets: OffsetByPartition = field(default_factory=dict)  # AvailableNow's, of all members
    growths: tuple[Growth, ...] = ()  # of the group's topics, as Redis last held them
    looked_at_ms: int = 0  # Redis TIME; 0: before the first look
    topics_at_ms: int = 0  # Redis TIME, not after the member's look at the topics; 0: before the first look
    forgot_ms: int | None = None  # when it last asked for topics without subscribers
    policy: Policy = NO_POLICY  # as of the last look
    moved: bool = False  # ranges have moved between it and other members after a batch, and it has said so


@dataclass(frozen=True, slots=True)
class Losses:
    """The checks for lost records."""

    completed: StreamOffset = NOTHING  # the last batch in the sink
    within: StreamOffset = NOTHING  # the last offset that was found to lie within the logs
    checked: Mapping[TopicPartition, tuple[str, int]] = field(default_factory=dict)  # nonce and leader epoch
    settled: LookedAt | None = None  # the values in which nothing was lost
    logged: tuple[Loss, ...] = ()  # of a query without a group: losses with a log line


@dataclass(frozen=True, slots=True)
class Mirrored:
    """The mirror in Kafka's own group, and its proofs at the last recovery."""

    at_ms: int | None = None
    allowed: bool = True
    behind: bool = False
    policy: Policy = NO_POLICY  # the group's, at the last update because of a change
    extents: Extents = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterPolicies:
    """The policies of the Kafka cluster as this member read them last, and where it copied them."""

    read_ms: int | None = None
    found: tuple[str, Policy] | None = None  # version and policies
    copied_at: str = ""  # a nonce


@dataclass(frozen=True, slots=True)
class Growing:
    """The sights of topics that grew."""

    sights: tuple[Sight, ...] = ()
    number: int = 0  # of the next sight
    topic_ids: Mapping[str, str] = field(default_factory=dict)  # of the topics that the sights are of
    low: Mapping[TopicPartition, Low] = field(default_factory=dict)  # high watermarks; meanwhile there is no sight
    logged: frozenset[Growth] = frozenset()
    graces: Mapping[str, int] | None = None  # when the grace of each growth ends, by its name; None: before a look
    over: frozenset[tuple[Growth, str]] = frozenset()  # growths that hold nothing back, each at a nonce
    closed: frozenset[TopicPartition] = frozenset()  # new partitions that still wait for older ones
    unnamed: Ranges = field(default_factory=dict)  # of older partitions: no pinned member names them


@dataclass(frozen=True, slots=True)
class Strikes:
    """The strikes of the group as this member saw them last."""

    strikes: tuple[Strike, ...] = ()
    looked_at_ms: int | None = None  # None: look before the next use


@dataclass(frozen=True, slots=True)
class Failing:
    """The failing records of the group as this member saw them last."""

    records: tuple[FailingRecord, ...] = ()
    looked_at_ms: int | None = None  # None: look before the next use
    full: frozenset[TopicPartition] = frozenset()  # partitions at their cap


@dataclass(frozen=True, slots=True)
class Reading:
    """How far owned ranges may be read: the result of the limits."""

    seen: LookedAt | None = None  # the values that it was computed from; None: compute it again
    work: OwnedRanges = field(default_factory=dict)
    held: OwnedRanges = field(default_factory=dict)  # the part of `work` that waits because of failing keys
    due: frozenset[LaneId] = frozenset()  # failing keys that are tried again
    trials: TrialLanes = field(default_factory=dict)
    ceilings: tuple[tuple[str, OwnedRanges], ...] = ()  # the names of limits, and their results
    quotas: tuple[Quota, ...] = ()
    cutting: Cutting | None = None
    owned: Ranges = field(default_factory=dict)  # when it was computed
    until: OffsetByPartition = field(default_factory=dict)  # how far each partition is read, after Spark's limits
    first_times: Mapping[tuple[TopicPartition, int], int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pacing:
    """AvailableNow's targets, and when the last batches were planned."""

    targets: OffsetByPartition | None = None  # of this run; None: it does not end by itself
    late: frozenset[TopicPartition] = frozenset()  # whose leader has not answered yet: their targets follow
    helps: bool = False  # waits for other members: its next batch reads to their targets
    planned_ms: int | None = None
    idle: tuple[OwnedRanges, OffsetByPartition] | None = None  # the work in which there was nothing to read
    idle_ms: int | None = None  # when that was looked at last


@dataclass(frozen=True, slots=True)
class Shown:
    """The last values shown to people."""

    ends: tuple[str, StoredEnds] | None = None  # those in Redis, after their nonce
    ends_ms: int | None = None  # when they were stored
    ended: Ended | None = None  # the last batch in the sink
    filtered: int = 0  # records that filters dropped, in all batches in the sink
    skipped: int = 0  # likewise records that the user's function failed on, and that were left out
    dead_lettered: int = 0  # likewise those that were written to the dead-letter topic
    looked_at_ms: int | None = None
    slow_percent: int = 0
    quotas: tuple[Quota, ...] = ()
    request: Request[bool] | None = None  # the lanes in Redis
    nonce: str = ""  # of `request`
    lanes: LaneReport = field(default_factory=LaneReport)
    limit_logged: bool = False  # the line about reading as the bottleneck was logged
    apart_logged: bool = False  # the line about lanes that are far apart was logged
    start_used: bool = False  # the line about starting options was logged

    def after(self, ended: Ended) -> "Shown":
        """The same after one more batch in the sink."""
        skipped = self.skipped + ended.failures.skipped
        dead_lettered = self.dead_lettered + ended.failures.dead_lettered
        filtered = self.filtered + ended.filtered
        return replace(self, ended=ended, filtered=filtered, skipped=skipped, dead_lettered=dead_lettered)


@dataclass(frozen=True, slots=True)
class Turn:
    """The steps done in this call of Spark; it begins anew with each call."""

    learned: bool = False
    committed: bool = False
    skipped: bool = False  # part of the start was left out, and must vanish from the next offset
    fresh: bool = False  # ranges and positions were read in this call, and it has not waited since
    acquired: bool = False  # ranges may be owned that were not owned before this call


@dataclass(frozen=True, slots=True)
class State:
    """See the module."""

    life: Life
    log: LogView = LogView()
    evidence: Evidence = field(default_factory=Evidence)
    batch: Batch | None = None
    commits: Commits = Commits()
    owning: Owning = Owning()
    losses: Losses = Losses()
    mirrored: Mirrored = Mirrored()
    cluster_policies: ClusterPolicies = ClusterPolicies()
    growing: Growing = Growing()
    strikes: Strikes = Strikes()
    failing: Failing = Failing()
    reading: Reading = Reading()
    pace: Pacing = Pacing()
    shown: Shown = Shown()
    turn: Turn = Turn()
    initial: StreamOffset | None = None  # of a query without a group: its resolved starting offsets
