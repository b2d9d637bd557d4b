"""Applies requests: the only place where a member calls Redis, Kafka, the cost model or the user's listener.

Runs in the stream reader's process, on its main thread, and on the heartbeat thread for the heartbeat's own calls.
An outage of Redis is a `RedisUnavailableError`, a refusal a `Verdict`; `turns` makes both part of the state.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.ownership_listener import KeyRanges, OwnershipListener
from coordinator.assignment.policies import NO_POLICY, UNKNOWN_POLICY, UNREADABLE, Policy, cluster_policy
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import CoopKafkaError, KafkaAccessError, StateFormatError, UnknownTopicError
from coordinator.errors.quoting import VALUE, bounded
from coordinator.member.inbox import Inbox, Reach
from coordinator.member.kinds import Request
from coordinator.member.lane_report import Planned, lane_report
from coordinator.plan.cost.batch_cost import Ended
from coordinator.plan.cost.steering import Steering
from coordinator.plan.packing import Task
from coordinator.progress.ends import Ends
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent, Extents, parsed
from coordinator.progress.mirror import GroupOffsets, entries, foundings, of_this_schema, plain
from coordinator.progress.ownership import Facts, facts_below
from coordinator.progress.slices import LaneId
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.lane_lines import BatchLine, LaneReport
from coordinator.redis.replies import (
    NO_PROVEN_EXTENTS,
    Acquired,
    Answer,
    Caller,
    Joining,
    JoinReply,
    Proof,
    ProvenExtents,
    Status,
)
from coordinator.redis.store import Store
from coordinator.values.clock import Clock
from coordinator.values.log import Log
from coordinator.values.subscription import Bounds, OffsetByPartition, Pattern, Subscription, Topic, TopicPartition
from coordinator.values.verdicts import Absent, Replaced, Verdict

_log = logging.getLogger(__name__)
_batches = logging.getLogger("coordinator.batches")


@dataclass(frozen=True, slots=True)
class World:
    """What a member talks to, and the calls that need more than one method of it."""

    settings: GroupSettings
    subscription: Subscription
    redis: Store | None  # None: without a group
    log: Log
    guesses: Steering
    inbox: Inbox
    clock: Clock

    @property
    def store(self) -> Store:
        """The group in Redis; no step of a query without a group asks for it."""
        if self.redis is None:
            raise AssertionError("a query without a group has no store")
        return self.redis

    def answer(self, request: Request[Any], caller: Caller) -> Any:
        """The answer to a request; an `Answer` of the store where Redis has also renewed the lease.

        A notice is made once, and whether it succeeded is its answer: no outage is waited for.
        """
        kind, whose = request.kind, (caller,) if request.kind.by_caller else ()
        if not kind.notice:
            return kind.of(self)(*whose, **request.arguments)
        try:
            kind.of(self)(*whose, **request.arguments)
            return True
        except (CoopKafkaError, Verdict) as error:
            _log.warning("%s of %s failed: %s", kind.verb, caller.member, error or type(error).__name__)
            return False

    # -- Kafka -------------------------------------------------------------------------------------

    def topics(self, *, anew: bool = False) -> dict[str, Topic]:
        """The subscribed topics now. `anew`: also those of a pattern that came since the last look at the cluster."""
        return self.log.topics(self.subscription, quick=not anew)

    def other_topics(self, names: Sequence[str], *, quick: bool = False) -> dict[str, Topic]:
        """Those of some topics that exist; the group may have members that subscribe to others than this one.

        `quick`: perhaps without one that is new.
        """
        return self.log.topics(Pattern(f"^(?:{'|'.join(map(re.escape, names))})$"), quick=quick)

    def leader_racks(self, topics: Sequence[str]) -> dict[TopicPartition, str]:
        """The racks of the partitions' leaders; nothing if Kafka does not answer, since they are only a preference."""
        try:
            return self.log.leader_racks(topics)
        except CoopKafkaError as error:
            _log.warning("group %s is assigned without racks: %s", self.settings.group, error)
            return {}

    def log_ends(
        self, partitions: Sequence[TopicPartition], beginnings: OffsetByPartition | None = None, *, strict: bool = False
    ) -> Mapping[TopicPartition, Bounds] | None:
        """The bounds of logs whose leader answers. None if a topic has vanished; with `strict`, an error."""
        try:
            return self.log.bounds_now(partitions, beginnings)
        except UnknownTopicError:
            if strict:
                raise
            return None

    def watch(self, ends: OffsetByPartition) -> int:
        """End the next wait once one of these logs has a new record; for so many milliseconds from now."""
        return self.log.watch(ends, self.clock.wake)

    def left_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> Extents:
        """The ends of older leader epochs in the logs as they are now, each with the leader epoch of now.

        A log of the same leader epoch is left out, and one whose leader does not know, or does not answer now: its next
        owner checks it before a plan (rule: silent-leader).
        """
        try:
            bounds = self.log.bounds_now(tuple(epochs)) if epochs else {}
        except UnknownTopicError:
            return {}
        older = {tp: epoch for tp, epoch in epochs.items() if tp in bounds and epoch < bounds[tp].epoch}
        ends = self.log.ends_of_epochs(older) if older else {}
        return {tp: Extent(bounds[tp].epoch, end) for tp, end in ends.items()}

    def group_offsets(self) -> GroupOffsets | None:
        """The offsets of Kafka's own group; None where access is denied.

        A Kafka that does not answer is an error: not to know of a mirror would create the group anew. So is a name that
        a share group has: there can be no mirror.
        """
        try:
            self.log.must_hold_offsets(self.settings.group)
            return self.log.group_offsets(self.settings.group)
        except KafkaAccessError as error:
            _log.warning("Kafka's own group %s cannot be read: %s", self.settings.group, error)
            return None

    def cluster_policies(self) -> tuple[str, Policy]:
        """The policies of the Kafka cluster, with their version; `-` where this user may not read them."""
        try:
            version, fields = self.log.cluster_policies()
        except KafkaAccessError:
            return UNREADABLE, UNKNOWN_POLICY if self.settings.policies == "required" else NO_POLICY
        return version, cluster_policy(fields)

    def mirror(self, partitions: Sequence[TopicPartition], topics: Sequence[str], founding: str = "") -> bool | None:
        """Commit the stable offsets to Kafka's own group; False if plain consumers live in it, None if it failed.

        A reset between our read and our write would leave an old offset: repeat both (rule: mirror-after-reset). The
        same holds for a change of a policy (rule: policies-survive), for a log that was cut (rule: leader-epoch-facts),
        and for another founding of the group: what a member of the earlier one wrote is replaced (rule: one-founding).
        Entries of another schema are not overwritten.
        """
        group, store = self.settings.group, self.store
        try:
            offsets = of_this_schema(self.log.group_offsets(group, patient=False), group)
            before, allowed, written = None, True, dict[TopicPartition, tuple[int, str]]()
            while allowed:
                status, policy = store.positions.status(), store.policies.policy()
                if before is None and founding not in ("", status.founding):
                    raise Replaced(status.founding)
                now = _mirror_entries(store, partitions, topics, status, policy)
                fell = any(tp in now and now[tp][0] < offset for tp, (offset, _) in written.items())
                if (status.founding, status.reset, policy) == before and not fell:
                    break
                before, written = (status.founding, status.reset, policy), now
                allowed = self.log.commit_group_offsets(group, written, patient=False)
            if allowed:
                self._tell_overruled(plain(offsets), written)
            if allowed and (foreign := [tp for tp, f in foundings(offsets).items() if f != status.founding]):
                self._drop_foreign([tp for tp in foreign if tp not in written], status.founding)
        except (CoopKafkaError, Verdict) as error:
            _log.warning("the stable offsets were not mirrored to Kafka's own group %s: %s", group, error)
            return None
        if not allowed:
            _log.warning("plain Kafka consumers are active in group %s: stable offsets are not mirrored", group)
        return allowed

    def _tell_overruled(self, others: OffsetByPartition, written: GroupOffsets) -> None:
        """Offsets that another program committed, and that the mirror has replaced by other ones."""
        found = [f"{tp} at {o}, here {written[tp][0]}" for tp, o in others.items() if written.get(tp, (o,))[0] != o]
        if not found:
            return
        group = self.settings.group
        why = f"another program committed offsets to Kafka's own group: {bounded(', '.join(sorted(found)), VALUE)}"
        _log.warning(
            "group %s: %s. They move nothing, and were replaced: the group's positions are in Redis. Remedy: to move "
            "them, stop the queries of the group and run coop-kafka reset-offsets %s",
            group,
            why,
            group,
        )
        self.store.reports.event("overruled", why)

    def _drop_foreign(self, partitions: Sequence[TopicPartition], founding: str) -> None:
        """Delete entries of an earlier group of this name: beside ours, they would contradict it after a loss."""
        group = self.settings.group
        _log.warning("Kafka's own group %s had offsets of another group of that name; it is %s now", group, founding)
        if partitions:
            self.delete_mirror(partitions)

    def delete_mirror(self, partitions: Sequence[TopicPartition]) -> None:
        """Delete entries of the mirror. If Kafka refuses it, they stay until Kafka's own retention ends."""
        group = self.settings.group
        try:
            self.log.delete_group_offsets(group, partitions)
        except CoopKafkaError as error:
            _log.warning("offsets of forgotten topics stay in Kafka's own group %s: %s", group, error)

    # -- Redis -------------------------------------------------------------------------------------

    def join(self, caller: Caller, joined_before: str, joining: Joining) -> JoinReply:
        """Join the group. The lease runs from the moment of the call: the answer may be late."""
        lease_end_ms = self.clock.now_ms() + self.settings.session_ms
        joining = replace(joining, next_nonce=self.settings.tokens(4))
        answer = self.store.members.join(caller, joined_before, joining)
        return JoinReply(answer.seen, lease_end_ms, answer.value.targets, answer.value.joined_at)

    def metadata(self, member: str, *, anyway: bool = False) -> Mapping[str, str] | None:
        """The fields that a member reports of itself; nothing where it has left or its entry is damaged.

        `anyway`: None where Redis does not answer.
        """
        try:
            return next((s.metadata for s in self.store.members.subscribers((member,))), {})
        except StateFormatError:
            return {}
        except (CoopKafkaError, Verdict):
            if anyway:
                return None
            raise

    def check_server(self, check: Callable[[], None]) -> None:
        """Run a check of the Redis server that raises its own errors."""
        check()

    def status(self) -> Status | None:
        """Reset epoch and topics of the group; None if Redis holds no such group."""
        try:
            return self.store.positions.status()
        except Absent:
            return None

    def create(
        self,
        topics: Mapping[str, Topic],
        positions: OffsetByPartition,
        grace_ms: int,
        *,
        create: bool = False,
        founding: str = "",
        joined: Sequence[str] = (),
    ) -> str:
        """Write first positions where there are none; the founding of the group. `joined`: topics of copartition.

        `create`: the group does not exist yet. Else it must be of this `founding`, unless that is not known.
        """
        nonce = self.settings.tokens(4) if create else ""
        store = self.store.positions
        answer = store.create(nonce, topics, positions, grace_ms=grace_ms, founding=founding, joined=joined)
        return answer.seen.founding

    def acquire(
        self, caller: Caller, wanted: Ranges, *, again: bool = False, one: frozenset[str] = frozenset()
    ) -> Answer[Acquired]:
        """Acquire what is free or takeable; `again`: after a release in the same step."""
        return self.store.positions.acquire(caller, wanted, one)

    def claim(self, offset: StreamOffset, facts: Facts) -> None:
        """Assert positions, as far as the log still has the records below them (rule: leader-epoch-facts)."""
        left = self.left_of_epochs({tp: epoch for tp, epoch in offset.leader_epochs.items() if tp in facts})
        epochs = {**offset.leader_epochs, **{tp: extent.epoch for tp, extent in left.items()}}
        self.store.positions.claim(replace(offset, leader_epochs=epochs), facts_below(facts, left))

    def recover(  # noqa: PLR0913, PLR0917 - a proof each
        self,
        caller: Caller,
        why: str,
        reset: int,
        topics: Mapping[str, Topic],
        proven: Mapping[TopicPartition, Proof],
        growths: Sequence[Growth],
        policy: Policy | None = None,
        founding: str = "",
        extents: ProvenExtents = NO_PROVEN_EXTENTS,
    ) -> bool:
        """Begin again after a loss of state, at proven positions and a new nonce; True: proofs of others are missing.

        `founding` and `extents` are those of the proofs.
        """
        caller, nonce = replace(caller, founding=founding), self.settings.tokens(4)
        return self.store.positions.recover(caller, nonce, why, reset, topics, proven, growths, policy, extents)

    def report_ends(
        self, caller: Caller, ends: OffsetByPartition, extents: Mapping[TopicPartition, str], at_ms: int = 0
    ) -> None:
        """Store log ends and leader epochs, unless Redis is older than the caller knows (rule: loss-of-state)."""
        self.store.positions.report_ends(ends, extents, at_ms, caller)

    # -- the cost model ----------------------------------------------------------------------------

    def pack(
        self,
        end: StreamOffset,
        readable: StreamOffset,
        *,
        apart: frozenset[LaneId] = frozenset(),
        in_order: frozenset[str] = frozenset(),
    ) -> tuple[Task, ...]:
        """The tasks of a batch; the inbox then receives their cost reports."""
        tasks = self.guesses.pack(end, readable, apart=apart, in_order=in_order)
        self.inbox.begin(end, tasks)
        return tasks

    def ends(self, end: StreamOffset) -> Ends | None:
        """The ends of the batch that ends at `end`, as its tasks reported them; None if this process did not run it."""
        return self.inbox.ends(end)

    def reach(self) -> Reach:
        """Which tasks reach this process."""
        return self.inbox.reach

    def learn(self, start: StreamOffset) -> Ended | None:
        """The batch that ends at `start` is in the sink; see `Steering.learn`."""
        ends, failures = self.inbox.ends(start) or {}, self.inbox.failures(start)
        ended = self.guesses.learn(start, self.inbox.end(), ends, judged=not failures.kafka_away)
        return ended and replace(ended, failures=failures)

    def describe_lanes(self, planned: Planned, ended: Ended | None) -> LaneReport:
        """The lanes of a plan, for people."""
        return lane_report(planned, ended, self.guesses.history, self.clock.now_ms())

    # -- notices -----------------------------------------------------------------------------------

    def event(self, caller: Caller, kind: str, why: str, ranges: Ranges | None = None) -> None:
        """Add an entry of this member to the group's events stream."""
        self.store.reports.event(kind, why, caller.member, ranges)

    def notify(self, revoked: Ranges, lost: Ranges, assigned: Ranges) -> None:
        """Call the user's ownership listener."""
        listener: OwnershipListener = self.settings.listener
        _notify(listener.on_revoked, revoked)
        _notify(listener.on_lost, lost)
        _notify(listener.on_assigned, assigned)

    def log_line(self, text: str, *, info: bool = False) -> None:
        """Write a line to the driver's log; a warning unless `info`."""
        _log.log(logging.INFO if info else logging.WARNING, "%s", text)

    def log_batch(self, line: BatchLine) -> None:
        """Write the line of a batch that the sink completed to the driver's log; `context` is for logs in JSON."""
        group = self.settings.group or ""
        _batches.info("%s", line.text(group), extra={"context": {"group": group, **line.fields}})


def _notify(method: Callable[[KeyRanges], None], ranges: KeyRanges) -> None:
    if not ranges:
        return
    try:
        method(ranges)
    except Exception:  # noqa: BLE001 - whatever a user's class raises must not hurt the query
        _log.exception("the ownership listener failed, the query continues")


def _mirror_entries(
    store: Store, of: Sequence[TopicPartition], topics: Sequence[str], status: Status, policy: Policy
) -> dict[TopicPartition, tuple[int, str]]:
    """The entries. Extents are read first: after a cut, an older stable offset would have the newer leader epoch."""
    partitions, ids = frozenset(of), {topic: known.id for topic, known in status.topics.items()}
    growths, extents = store.positions.growths(), store.positions.extents(topics)
    stable = {tp: o for tp, o in store.positions.stable(topics).items() if tp in partitions}
    known = parsed(extents, status.reset, ids)
    return entries(stable, status.reset, ids, growths, known, policy.mirrored, status.founding)
