"""The verbs of the Commit API: the member that commits, and individual commits of one partition. One method a verb.

Every method may raise a `verdicts.Verdict`. An error of Redis itself is a `StoreError`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from coordinator.errors import (
    CommitWithoutOrderError,
    StateFormatError,
    TopicRangeFetchNotAllowedError,
    UnknownGroupError,
)
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.replies import Caller
from coordinator.redis.script_texts import owned_of, owned_text
from coordinator.redis.verb import Reply, sound, verb
from coordinator.values.hash_map import HashMap
from coordinator.values.identifiers import LANE_EPOCH
from coordinator.values.ranges import HashRange, OffsetRange, Offsets
from coordinator.values.subscription import TopicPartition

Reads = Mapping[TopicPartition, tuple[tuple[HashRange, int], ...]]
"""For each lane of a batch, the offset after the last one that the batch reads."""
_LOG_END = "-"  # an argument of the scripts for a caller without a batch


@dataclass(frozen=True, slots=True)
class Standing:
    """The right to commit: the caller, the reset epoch, the topics and the lanes that it acts for.

    It ends at the offsets of `reads`; without `reads`, at the log ends that Redis holds.
    """

    caller: Caller
    reset: int
    topic_ids: Mapping[str, str]
    lanes: Ownership
    reads: Reads | None = None
    batch: str = ""  # the digest of the batch of `reads`
    early: bool = False  # its tasks may end before `reads`

    @classmethod
    def of_batch(cls, caller: Caller, end: StreamOffset) -> Self:
        """The standing of a member in the batch that ends at `end`."""
        lanes = {tp: tuple(Owned(lane.hashes, lane.epoch) for lane in of_tp) for tp, of_tp in end.lanes.items()}
        reads = {tp: tuple((row.hashes, row.until) for row in rows) for tp, rows in end.rows.items()}
        return cls(caller, end.reset, end.topic_ids, lanes, reads, end.digest, bool(end.early))

    def reads_of(self, tp: TopicPartition) -> str:
        """How far the batch reads the partition, lane by lane, as commit_ranges.lua reads it."""
        if self.reads is None:
            return _LOG_END
        return "".join(f"{hashes} {until};" for hashes, until in self.reads.get(tp, ()))

    def reach(self, tp: TopicPartition, lanes: Sequence[Owned]) -> str:
        """How far the batch reads any of these lanes of the partition, as reserve.lua reads it."""
        if self.reads is None:
            return _LOG_END
        ends = (
            until for read, until in self.reads.get(tp, ()) if any(lane.hashes.intersection(read) for lane in lanes)
        )
        return str(max(ends, default=0))


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The result of a commit."""

    word: str  # COMMITTED, NOT_ALLOWED, TOO_OLD, FULL, NOT_OWNED, BEYOND, UNSEALED
    stable: int
    held: int  # individual commits of the partition
    repeated: int  # ranges of the call that were already done
    refused: tuple[Owned, ...]  # lanes that the caller no longer owns at their lane epoch
    reach: int  # the first offset that none of the call's lanes may commit


@dataclass(frozen=True, slots=True)
class ReservedTurn:
    """Whether it is the turn of the reserved offsets."""

    stable: int
    word: str  # TURN, WAIT, ALONE, TAKEN, BEYOND, NOT_OWNED: see reserve.lua
    who: str  # in the way, as "member/worker 40-44 lo-hi"; for BEYOND, the first offset that is refused; or empty


@dataclass(frozen=True, slots=True)
class Reservation:
    """Offsets and lanes that a worker commits in order."""

    worker: str
    offsets: OffsetRange
    lanes: Sequence[Owned]


@dataclass(frozen=True, slots=True)
class CommittedRange:
    """Hashes of a partition with one owner and one position."""

    hashes: HashRange
    position: int  # all offsets below it are done
    done: Offsets  # individual commits above it
    owner: str  # a member; empty if the range is free


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The progress of a partition. The ranges ascend, and tile the hash space."""

    stable: int  # the lowest position: all records before it are done
    ranges: tuple[CommittedRange, ...]


def _outcome(reply: Reply) -> CommitOutcome:
    stable, held, repeated, reach = (int(reply[name]) for name in ("stable", "held", "repeated", "reach"))
    return CommitOutcome(reply["outcome"], stable, held, repeated, owned_of(reply["refused"]), reach)


_COMMIT_RANGES = verb(
    "commit_ranges",
    "meta member topics policy events owners segments ics stable log_end=end",
    "reset topic id partition lanes offsets most reads batch early",
    _outcome,
)
_RESERVE = verb(
    "reserve",
    "meta member reserved owners segments ics log_end=end",
    "partition worker offsets state lease_ms lanes reach",
    lambda reply: ReservedTurn(int(reply["stable"]), reply["turn"], reply["who"]),
)


class CommitVerbs:
    """The calls of a member that acknowledges records itself."""

    def __init__(self, calls: ScriptCalls) -> None:
        self._calls = calls
        self._fenced: frozenset[tuple[TopicPartition, Owned]] = frozenset()  # lanes whose refusal is an event already

    @property
    def group(self) -> str:
        """The group's name."""
        return self._calls.keys.group

    def member(self, member: str) -> tuple[Caller, Mapping[str, str]]:
        """A member and its fields, as of its last join. Raises `UnknownGroupError` if there is none.

        Raises `CommitWithoutOrderError` in a group without order, and 89 in one in partition order.
        """
        k = self._calls.keys
        meta, fields = self._calls.hashes((k.meta, k.member(member)))
        self._check_ordering(meta)
        if "nonce" not in meta or "incarnation" not in fields:
            raise UnknownGroupError(
                f"group {k.group!r} has no member {member!r} in this Redis",
                "take group and member from the offset of a running query, or from coop-kafka describe",
            )
        return Caller(member, fields["incarnation"], meta["nonce"], "0"), fields

    def check_ordering(self) -> None:
        """Raise `CommitWithoutOrderError` in a group without order, and 89 in one in partition order.

        A caller of before the change needs it: the change made a new nonce, so each of its calls gets REJOIN.
        """
        self._check_ordering(self._calls.hash(self._calls.keys.meta))

    def _check_ordering(self, meta: Mapping[str, str]) -> None:
        if meta.get("ordering") == "none":
            raise CommitWithoutOrderError(
                f"group {self.group!r} has ordering=none, and its members own no key ranges; nothing was committed"
            )
        if meta.get("ordering") == "partition":
            raise TopicRangeFetchNotAllowedError(
                f"group {self.group!r} has ordering=partition: it reads each partition in the log's order, and commits "
                "no part of a batch; nothing was committed",
                "let each batch commit its records, or stop all queries of the group and start them with ordering=key",
            )

    @sound
    def standing(self, caller: Caller) -> Standing:
        """The ranges that the member owns now, in every partition of the group."""
        k = self._calls.keys
        with self._calls.client.reading() as redis:
            meta, topics = redis.hgetall(k.meta), redis.hgetall(k.topics)
            try:
                known = {topic: KnownTopic.parse(topic, text) for topic, text in topics.items()}
                partitions = [TopicPartition(t, p) for t, of_t in known.items() for p in range(of_t.partitions)]
                lanes = {tp: _lanes(caller.member, redis.hgetall(k.owners(tp))) for tp in partitions}
                return Standing(caller, int(meta["reset_epoch"]), {t: of_t.id for t, of_t in known.items()}, lanes)
            except (ValueError, KeyError):
                raise StateFormatError(
                    f"topics, owners or reset epoch of group {k.group!r} are damaged",
                    "look at the keys coop:v1:{group}:*; restore or delete the group's state",
                ) from None

    @sound
    def committed(self, tp: TopicPartition) -> CommittedOffsets:
        """Positions, individual commits and owners of a partition. Raises `UnknownGroupError` if it has none."""
        k = self._calls.keys
        meta, owners, ics, positions = self._calls.hashes((k.meta, k.owners(tp), k.ics(tp), k.segments(tp)))
        if not positions:
            raise UnknownGroupError(
                f"group {k.group!r} has no positions of {tp} in this Redis", "look at them with coop-kafka describe"
            )
        in_force = f"{meta.get('nonce')}."
        owned = {HashRange.parse(h): value.split(" ")[-1] for h, value in owners.items() if value.startswith(in_force)}
        members, progress = HashMap(sorted(owned.items())), Progress.parse_whole(tp, positions, ics)
        ranges = (
            CommittedRange(hashes, s.position, s.ics, member)
            for s in progress.segments
            for hashes, member in members.filled(s.hashes, "")
        )
        return CommittedOffsets(progress.stable, tuple(ranges))

    @sound
    def commit_ranges(
        self, standing: Standing, tp: TopicPartition, lanes: Sequence[Owned], offsets: Offsets, most: int
    ) -> CommitOutcome:
        """Commit `offsets` in those lanes. The partition may hold `most` individual commits."""
        outcome = self._calls.run(
            _COMMIT_RANGES,
            standing.caller,
            tp,
            reset=str(standing.reset),
            topic=tp.topic,
            id=standing.topic_ids.get(tp.topic, "-"),
            partition=str(tp.partition),
            lanes=owned_text(lanes),
            offsets=" ".join(map(str, offsets)),
            most=str(most),
            reads=standing.reads_of(tp),
            batch=standing.batch,
            early=standing.early,
        )
        unreported = [lane.hashes for lane in outcome.refused if (tp, lane) not in self._fenced]
        self._fenced |= {(tp, lane) for lane in outcome.refused}
        self._calls.fence("an individual commit", standing.caller, {tp: tuple(unreported)} if unreported else {})
        return outcome

    @sound
    def reserve(
        self, standing: Standing, tp: TopicPartition, wanted: Reservation, state: str, lease_ms: int
    ) -> ReservedTurn:
        """Make, renew or end a reservation. The answer is the turn, or the worker in the way."""
        return self._calls.run(
            _RESERVE,
            standing.caller,
            tp,
            partition=str(tp.partition),
            worker=wanted.worker,
            offsets=str(wanted.offsets),
            state=state,
            lease_ms=str(lease_ms),
            lanes=owned_text(wanted.lanes),
            reach=standing.reach(tp, wanted.lanes),
        )


def _lanes(member: str, owners: Mapping[str, str]) -> tuple[Owned, ...]:
    mine = ((hashes, value.split()) for hashes, value in owners.items())
    found = tuple(sorted(Owned(HashRange.parse(h), epoch) for h, (epoch, owner) in mine if owner == member))
    if not all(LANE_EPOCH.fullmatch(owned.epoch) for owned in found):
        raise ValueError
    return found
