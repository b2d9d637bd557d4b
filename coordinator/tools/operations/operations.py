"""An operator's changes of a group: moves its positions, deletes it. Needs Redis and Kafka.

    reset    1 mirror, at the new reset epoch -> 2 reset.lua -> 3 mirror again, from Redis

After a kill between 1 and 2, the next member finds a loss of state and recovers to the mirror: the reset happens
wholly. Step 3 corrects a mirror that a leaving member wrote meanwhile. If the script refuses, step 3 undoes step 1
(rule: reset-epoch).
"""

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from coordinator.assignment.policies import policy_of
from coordinator.errors import CoopKafkaError, UnknownGroupError
from coordinator.progress import mirror
from coordinator.progress.leader_epochs import Extents, parsed
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.positions import RedisPositions
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.refusals import operator, refusal, refused
from coordinator.tools.operations.reset_plan import (
    ChosenPartitions,
    PartitionReset,
    Target,
    known_after,
    moves,
    partitions_of,
)
from coordinator.values import verdicts
from coordinator.values.log import Log
from coordinator.values.offset_spec import AtTimestamp
from coordinator.values.subscription import Pattern, Topic, TopicPartition

_log = logging.getLogger(__name__)
MOVES_NAMED = 20
"""An event names this many moved partitions, and counts the rest."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A planned reset."""

    moves: tuple[PartitionReset, ...]
    state: GroupState
    topics: Mapping[str, Topic]  # of the group, as Kafka has them


@dataclass(frozen=True, slots=True)
class Executed:
    """A reset that was executed."""

    epoch: int
    mirrored: bool  # False: plain consumers use Kafka's group of that name, so nothing was written there


@dataclass(frozen=True, slots=True)
class Remains:
    """The parts of a group that can be deleted."""

    keys: int  # in Redis
    mirrored: tuple[TopicPartition, ...]  # in Kafka's own group


class Operator:
    """The operations on one group."""

    def __init__(
        self,
        client: RedisClient,
        log: Log,
        group: str,
        *,
        now: Callable[[], int] | None = None,
        tokens: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        """A simulation passes `now` in place of Redis TIME, and `tokens` in place of random hex digits."""
        self._client, self._log, self._group, self._tokens = client, log, group, tokens
        self._store = OperatorVerbs.of_group(client, group, now)

    def plan_reset(self, wanted: ChosenPartitions | None, target: Target) -> Reset:
        """Plan a reset; `wanted` is None for all topics. Raises `GroupBusyError` while members live."""
        state = idle(self._client, self._store, self._group)
        topics = existing(self._log, {tp.topic for tp in state.segments} | set(wanted or ()))
        partitions = partitions_of(wanted, state, topics)
        if not set(partitions) >= state.segments.keys():
            with refused(self._group):
                self._store.check()
        by_time = self._log.resolve(target, partitions) if isinstance(target, AtTimestamp) else {}
        return Reset(moves(target, partitions, state, self._log.bounds(partitions), by_time), state, topics)

    def reset(self, planned: Reset) -> Executed:
        """Execute a reset, wholly or not at all (see the module)."""
        state, after = planned.state, {m.tp: m.after for m in planned.moves}
        known = known_after(state, planned.moves, planned.topics)
        since, in_mirror = state.reset_epoch, mirror.latest_reset(self._group_offsets())
        epoch = max(self._store.now_ms(), max(since, in_mirror) + 1)
        positions = {tp: after.get(tp) for tp in sorted({*state.segments, *after})}
        mirrored = self._mirror({**state.stable, **after}, epoch, {t: k.id for t, k in known.items()}, planned.topics)
        nonce = self._tokens(4)
        with self._mirrored_after(epoch):
            try:
                self._store.reset(nonce, epoch, since, _why(planned.moves), known, positions)
            except verdicts.Verdict as verdict:
                found = read_group(self._client, self._group)
                if found.meta.get("nonce") != nonce:  # else this call did it, sent twice
                    raise refusal(self._group, verdict) from None
        return Executed(epoch, mirrored)

    def remains(self) -> Remains:
        """The parts to delete. Raises `GroupBusyError` while members live, and `UnknownGroupError`."""
        with refused(self._group):
            keys = self._store.deletable()
        found = Remains(keys, tuple(sorted(self._in_mirror())))
        if not found.keys and not found.mirrored:
            raise UnknownGroupError(f"neither Redis nor Kafka has a group {self._group!r} of coop-kafka")
        return found

    def delete(self) -> Remains:
        """Delete the group, the mirror first: a mirror without Redis would be a loss of state, not a new group."""
        found = self.remains()
        self._log.delete_group_offsets(self._group, found.mirrored)
        with refused(self._group):
            self._store.delete()
        self._log.delete_group_offsets(self._group, self._in_mirror())  # a member may have written meanwhile
        return found

    def _group_offsets(self) -> mirror.GroupOffsets:
        """The offsets of Kafka's own group; refused if the mirror is of another schema."""
        return mirror.of_this_schema(self._log.group_offsets(self._group), self._group)

    def _in_mirror(self) -> list[TopicPartition]:
        return [tp for tp, entry in self._group_offsets().items() if mirror.is_mirror({tp: entry})]

    @contextmanager
    def _mirrored_after(self, epoch: int) -> Iterator[None]:
        """Write the mirror from Redis at the end, unless Redis is older than this reset epoch by then.

        If the body was refused, an error of that is only logged.
        """
        try:
            yield
        except BaseException:
            try:
                self._mirror_what_is()
            except CoopKafkaError as error:
                _log.warning("Kafka's own group %r still holds the refused reset: %s", self._group, error)
            raise
        self._mirror_what_is(epoch)

    def _mirror_what_is(self, since: int = 0) -> None:
        """Refused while Redis may be behind the mirror, or is from before `since`: the mirror is the better copy."""
        with refused(self._group):
            self._store.check()
        topics = read_group(self._client, self._group).topics
        texts = RedisPositions(self._store.calls).extents(tuple(topics))  # first: as a member does
        state = read_group(self._client, self._group)
        ids, epoch = {topic: known.id for topic, known in state.topics.items()}, state.reset_epoch
        if epoch < since:
            return
        extents = parsed(texts, epoch, ids)
        self._mirror(state.stable, epoch, ids, existing(self._log, state.topics), extents)

    def _mirror(
        self,
        stable: Mapping[TopicPartition, int],
        epoch: int,
        ids: Mapping[str, str],
        there: Mapping[str, Topic],
        extents: Extents = MappingProxyType({}),
    ) -> bool:
        """Write the mirror for topics that Kafka has. False if plain consumers use Kafka's group."""
        state = read_group(self._client, self._group)
        policy, founding = policy_of(state.policy), state.meta["founding"]
        entries = {}
        for tp, offset in stable.items():
            if tp.topic in there and tp.partition in there[tp.topic].partitions:
                entry = mirror.entry(offset, epoch, ids[tp.topic], extents.get(tp))
                entries[tp] = mirror.with_founding(mirror.with_policy(entry, policy.mirrored(tp.topic)), founding)
        return self._log.commit_group_offsets(self._group, entries)


def existing(log: Log, names: Iterable[str]) -> Mapping[str, Topic]:
    """Those of the topics that Kafka has."""
    return log.topics(Pattern(f"^(?:{'|'.join(map(re.escape, sorted(names)))})$"))


def idle(client: RedisClient, store: OperatorVerbs, group: str) -> GroupState:
    """The group. Raises `GroupBusyError` while a member's lease runs."""
    state, now_ms = read_group(client, group), store.now_ms()
    for member, lease_end in sorted(state.leases_ms.items()):
        if lease_end >= now_ms:
            raise refusal(group, verdicts.Busy(member, lease_end, now_ms))
    return state


def _why(moved: Sequence[PartitionReset]) -> str:
    named = ", ".join(f"{m.tp} {m.before} -> {m.after}" for m in moved[:MOVES_NAMED])
    more = f" and {len(moved) - MOVES_NAMED} more" if len(moved) > MOVES_NAMED else ""
    return f"by {operator()}: {named}{more}"
