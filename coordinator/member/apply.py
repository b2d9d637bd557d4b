"""Applies requests: the only place where a member calls Redis, Kafka, the cost model or the user's listener.

Runs in the stream reader's process, on its main thread, and on the heartbeat thread for the heartbeat's own calls.
An outage of Redis is a `RedisUnavailableError`, a refusal a `Verdict`; `turns` makes both part of the state.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.assignment.assigning import computed
from coordinator.assignment.ownership_listener import KeyRanges, OwnershipListener
from coordinator.clock import Clock
from coordinator.cost.guesses import Guesses
from coordinator.errors import CoopKafkaError, KafkaAccessError, StateFormatError, UnknownTopicError
from coordinator.member import requests as r
from coordinator.member.inbox import Inbox
from coordinator.ports import Log
from coordinator.progress import mirror as mirroring
from coordinator.progress.leader_epochs import parsed
from coordinator.redis.calls import Caller
from coordinator.redis.store import RedisStore, Status
from coordinator.reports.lane_report import lanes_told
from coordinator.settings import GroupSettings
from coordinator.subscription import Subscription, TopicPartition
from coordinator.verdicts import Absent, Verdict

_log = logging.getLogger(__name__)
NOBODY = Caller()


@dataclass(frozen=True, slots=True)
class World:
    """What a member talks to."""

    settings: GroupSettings
    subscription: Subscription
    redis: RedisStore | None  # None: without a group
    log: Log
    guesses: Guesses
    inbox: Inbox
    clock: Clock

    @property
    def store(self) -> RedisStore:
        """The group in Redis; no step of a query without a group asks for it."""
        if self.redis is None:
            raise AssertionError("a query without a group has no store")
        return self.redis

    def answer(self, request: r.Request[Any], caller: Caller) -> Any:
        """The answer to a request; an `Answer` of the store where Redis has also renewed the lease."""
        return _CALLS[type(request)](self, request, caller)


def _join(w: World, q: r.Join, caller: Caller) -> r.Joined:
    """The lease runs from the moment of the call: the answer may be late."""
    lease_end_ms = w.clock.now_ms() + w.settings.session_ms
    answer = w.store.join(caller, q.joined_before, q.joining)
    return r.Joined(answer.seen, lease_end_ms, answer.value)


def _log_ends(w: World, q: r.ReadLogEnds, caller: Caller) -> Any:
    try:
        return w.log.bounds(q.partitions, q.beginnings)
    except UnknownTopicError:
        if q.strict:
            raise
        return None


def _group_offsets(w: World, q: r.ReadGroupOffsets, caller: Caller) -> mirroring.GroupOffsets:
    """A Kafka that does not answer is an error: not to know of a mirror would create the group anew."""
    try:
        return w.log.group_offsets(w.settings.group)
    except KafkaAccessError as error:
        _log.warning("Kafka's own group %s cannot be read: %s", w.settings.group, error)
        return {}


def _status(w: World, q: r.ReadStatus, caller: Caller) -> Status | None:
    try:
        return w.store.status(NOBODY)
    except Absent:
        return None


def _metadata(w: World, q: r.ReadMetadata, caller: Caller) -> Mapping[str, str] | None:
    try:
        return next((s.metadata for s in w.store.subscribers([q.member])), {})
    except StateFormatError:
        return {}
    except (CoopKafkaError, Verdict):
        if q.anyway:
            return None
        raise


def _create(w: World, q: r.CreatePositions, caller: Caller) -> int:
    nonce = w.settings.tokens(4) if q.create else ""
    return w.store.create_positions(NOBODY, nonce, q.topics, q.positions, grace_ms=q.grace_ms)


def _recover(w: World, q: r.Recover, caller: Caller) -> None:
    w.store.recover(caller, w.settings.tokens(4), q.why, q.reset, q.topics, q.proven, q.growths)


def _pack(w: World, q: r.Pack, caller: Caller) -> Any:
    tasks = w.guesses.pack(q.end, q.readable, trial=q.trial)
    w.inbox.begin(q.end, tasks)
    return tasks


def _notify(w: World, q: r.Notify, caller: Caller) -> bool:
    listener: OwnershipListener = w.settings.listener
    _notify_of(listener.on_revoked, q.revoked)
    _notify_of(listener.on_lost, q.lost)
    _notify_of(listener.on_assigned, q.assigned)
    return True


def _notify_of(method: Callable[[KeyRanges], None], ranges: KeyRanges) -> None:
    if not ranges:
        return
    try:
        method(ranges)
    except Exception:  # noqa: BLE001 - whatever a user's class raises must not hurt the query
        _log.exception("the ownership listener failed, the query goes on")


def _line(w: World, q: r.Log, caller: Caller) -> bool:
    _log.log(logging.INFO if q.info else logging.WARNING, "%s", q.text)
    return True


def _mirror(w: World, q: r.Mirror, caller: Caller) -> bool | None:
    """A reset between our read and our write would leave an old offset: repeat both (rule: mirror-after-reset).

    Entries of another schema are not overwritten.
    """
    group = w.settings.group
    try:
        mirroring.of_this_schema(w.log.group_offsets(group), group)
        before, allowed = None, True
        while allowed and (status := w.store.status(NOBODY)).reset != before:
            before = status.reset
            allowed = w.log.commit_group_offsets(group, _mirror_entries(w.store, q, status))
    except (CoopKafkaError, Verdict) as error:
        _log.warning("Kafka's own group %s was not told the stable offsets: %s", group, error)
        return None
    if not allowed:
        _log.warning("plain Kafka consumers live in group %s: stable offsets are not mirrored", group)
    return allowed


def _mirror_entries(store: RedisStore, q: r.Mirror, status: Status) -> dict[TopicPartition, tuple[int, str]]:
    partitions, ids = frozenset(q.partitions), {topic: known.id for topic, known in status.topics.items()}
    stable = {tp: o for tp, o in store.stable(q.topics).items() if tp in partitions}
    growths = store.growths()
    return mirroring.entries(stable, status.reset, ids, growths, parsed(store.extents(q.topics), status.reset, ids))


def _shown(show: Callable[[World, Any, Caller], Any]) -> Callable[[World, Any, Caller], bool]:
    """A notice: a Redis that does not answer is not waited for."""

    def shown(w: World, q: r.Request[Any], caller: Caller) -> Any:
        try:
            show(w, q, caller)
            return True
        except (CoopKafkaError, Verdict) as error:
            _log.warning("%s could not show %s: %s", caller.member, type(q).__name__, error or type(error).__name__)
            return False

    return shown


_CALLS: dict[type, Callable[[World, Any, Caller], Any]] = {
    r.ReadTopics: lambda w, q, c: w.log.topics(w.subscription),
    r.ReadLogEnds: _log_ends,
    r.ReadHighWatermarks: lambda w, q, c: w.log.high_watermarks(q.partitions),
    r.ReadEpochEnds: lambda w, q, c: w.log.ends_of_epochs(q.epochs),
    r.ResolveOffsets: lambda w, q, c: w.log.resolve(q.spec, q.partitions),
    r.ReadFirstTimes: lambda w, q, c: w.log.first_times(q.stretches),
    r.ReadGroupOffsets: _group_offsets,
    r.Join: _join,
    r.Heartbeat: lambda w, q, c: w.store.heartbeat(c),
    r.LookAtGroup: lambda w, q, c: w.store.look(c),
    r.ReadSubscribers: lambda w, q, c: w.store.subscribers(q.members),
    r.ReadMetadata: _metadata,
    r.ReadAssignment: lambda w, q, c: w.store.assignment(),
    r.ReadHeirs: lambda w, q, c: w.store.heirs(q.ranges),
    r.ReadPartitionCounts: lambda w, q, c: w.store.partition_counts(),
    r.ReadPolicy: lambda w, q, c: w.store.policy(),
    r.Compute: lambda w, q, c: computed(q.assignor, q.members, q.counts, q.previous, q.policy),
    r.Assign: lambda w, q, c: w.store.assign(c, q.occasion, q.protocol, q.assignment, q.failure),
    r.Release: lambda w, q, c: w.store.release(c, q.ranges),
    r.Finish: lambda w, q, c: w.store.finish(c, q.targets),
    r.CheckServer: lambda w, q, c: q.check(),
    r.ReadStatus: _status,
    r.CreatePositions: _create,
    r.Acquire: lambda w, q, c: w.store.acquire(c, q.wanted, placed=q.placed),
    r.Authorize: lambda w, q, c: w.store.authorize(c, q.end),
    r.Commit: lambda w, q, c: w.store.commit(c, q.offset, q.facts, q.digest),
    r.Claim: lambda w, q, c: w.store.claim(NOBODY, q.offset, q.facts),
    r.Recreate: lambda w, q, c: w.store.recreate(NOBODY, q.topics, q.positions),
    r.Recover: _recover,
    r.ReadResetEpoch: lambda w, q, c: w.store.reset_epoch(),
    r.ReadStable: lambda w, q, c: w.store.stable(q.topics),
    r.ReadExtents: lambda w, q, c: w.store.extents(q.topics),
    r.ReadPositions: lambda w, q, c: w.store.positions(q.partitions),
    r.ReadGrowths: lambda w, q, c: w.store.growths(),
    r.RecordGrowths: lambda w, q, c: w.store.grow(q.growths),
    r.ReportEnds: lambda w, q, c: w.store.report_ends(q.ends, q.extents),
    r.ReadRedisTime: lambda w, q, c: w.store.now_ms(),
    r.ReadWorking: lambda w, q, c: w.store.at_work(),
    r.StrikeMember: lambda w, q, c: w.store.strike(q.member),
    r.ReadStrikes: lambda w, q, c: w.store.strikes(),
    r.Forgive: lambda w, q, c: w.store.forgive(q.strikes),
    r.Abandon: lambda w, q, c: w.store.abandon(c, q.ranges),
    r.ReportWorking: lambda w, q, c: w.store.working(c, q.text),
    r.Leave: lambda w, q, c: w.store.leave(c, q.unconfirmed),
    r.Grant: lambda w, q, c: w.guesses.grant(q.work, q.ends, q.trial, everything=q.everything, anew=q.anew),
    r.Pack: _pack,
    r.Learn: lambda w, q, c: w.guesses.learn(q.start, w.inbox.end()),
    r.OffsetsOfARecord: lambda w, q, c: w.guesses.offsets_of_a_record(q.lane),
    r.DescribeLanes: lambda w, q, c: lanes_told(q.planned, q.ended, w.guesses.history, w.clock.now_ms()),
    r.Event: _shown(lambda w, q, c: w.store.event(q.kind, q.why, c.member, q.ranges)),
    r.ShowBatch: _shown(lambda w, q, c: w.store.tell_batch(q.line)),
    r.ShowLanes: _shown(lambda w, q, c: w.store.report(c, q.lines, q.slow_percent)),
    r.Notify: _notify,
    r.Mirror: _mirror,
    r.Log: _line,
}
