"""What an operator does to a group from outside: moves its positions, deletes it. Needs Redis and Kafka.

    reset    mirror first, at the new reset epoch -> reset.lua -> mirror again, as Redis has it then

Killed after the first step, the mirror knows of a reset that Redis does not: whoever starts next finds a loss of state,
and recovers to the positions of the mirror. So a reset happens wholly, then or by the next call. The last step is for a
member that was leaving and wrote the mirror in between, and undoes the first if the script refused (rule: reset-epoch).
"""

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from coordinator import verdicts
from coordinator.errors import CoopKafkaError, UnknownGroupError
from coordinator.group_state import GroupState
from coordinator.offset_spec import AtTimestamp
from coordinator.operations.refusals import operator, refusal, refused
from coordinator.operations.reset_plan import Chosen, Move, Target, known_after, moves, partitions_of
from coordinator.ports import Log
from coordinator.progress import mirror
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.subscription import Pattern, Topic, TopicPartition

_log = logging.getLogger(__name__)
MOVES_TOLD = 20
"""An event names this many moved partitions, and counts the rest."""


class OperatorLog(Log, Protocol):
    """Kafka as an operator needs it."""

    def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget what Kafka's own group has committed of these partitions; the group too, if it is then empty."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A reset that can be executed: what moves, and the group it was made for."""

    moves: tuple[Move, ...]
    state: GroupState
    topics: Mapping[str, Topic]  # of the group, as Kafka has them


@dataclass(frozen=True, slots=True)
class Executed:
    """A reset that was executed."""

    epoch: int
    mirrored: bool  # False: plain consumers live in Kafka's group of that name, which keeps the mirror off


@dataclass(frozen=True, slots=True)
class Remains:
    """What there is of a group to delete."""

    keys: int  # in Redis
    mirrored: tuple[TopicPartition, ...]  # in Kafka's own group


class Operator:
    """One group, one operator."""

    def __init__(
        self,
        client: RedisClient,
        log: OperatorLog,
        group: str,
        *,
        now: Callable[[], int] | None = None,
        tokens: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        """A simulation gives `now`, instead of Redis TIME, and `tokens`: random hex digits of so many bytes."""
        self._client, self._log, self._group, self._tokens = client, log, group, tokens
        self._store = OperatorVerbs.of_group(client, group, now)

    def plan_reset(self, wanted: Chosen | None, target: Target) -> Reset:
        """What a reset would move; `wanted` is None for all topics. Refused while members live, as by Kafka's tool."""
        state = self._idle()
        topics = self._existing({tp.topic for tp in state.segments} | set(wanted or ()))
        partitions = partitions_of(wanted, state, topics)
        if not set(partitions) >= state.segments.keys():
            self._check()
        by_time = self._log.resolve(target, partitions) if isinstance(target, AtTimestamp) else {}
        return Reset(moves(target, partitions, state, self._log.bounds(partitions), by_time), state, topics)

    def reset(self, planned: Reset) -> Executed:
        """Execute a reset; never half of it, see the module."""
        state, after = planned.state, {m.tp: m.after for m in planned.moves}
        known = known_after(state, planned.moves, planned.topics)
        since, in_mirror = _reset_epoch(state), mirror.latest_reset(self._group_offsets())
        epoch = max(self._store.now_ms(), max(since, in_mirror) + 1)
        positions = {tp: after.get(tp) for tp in sorted({*state.segments, *after})}
        mirrored = self._mirror({**state.stable, **after}, epoch, {t: k.id for t, k in known.items()}, planned.topics)
        nonce = self._tokens(4)
        with self._mirrored_after():
            try:
                self._store.reset(nonce, epoch, since, _why(planned.moves), known, positions)
            except verdicts.Verdict as verdict:
                if read_group(self._client, self._group).meta.get("nonce") != nonce:  # else it is ours, sent twice
                    raise refusal(self._group, verdict) from None
        return Executed(epoch, mirrored)

    def remains(self) -> Remains:
        """What there is to delete; refused while members live, `UnknownGroupError` if there is nothing."""
        with refused(self._group):
            keys = self._store.deletable(self._store.names())
        found = Remains(keys, tuple(sorted(self._in_mirror())))
        if not found.keys and not found.mirrored:
            raise UnknownGroupError(
                f"neither Redis nor Kafka has a group {self._group!r} of coop-kafka",
                "look at the names with coop-kafka groups list, and at the database number of the Redis url",
            )
        return found

    def delete(self) -> Remains:
        """Delete the group: the mirror first, since a mirror without Redis is a loss of state, never a new group."""
        found = self.remains()
        self._log.delete_group_offsets(self._group, found.mirrored)
        with refused(self._group):
            self._store.delete(self._store.names())
        self._log.delete_group_offsets(self._group, self._in_mirror())  # what a member wrote meanwhile
        return found

    # ------------------------------------------------------------------------------------------

    def _idle(self) -> GroupState:
        """The group, if no member's lease runs."""
        state, now_ms = read_group(self._client, self._group), self._store.now_ms()
        for member, lease_end in sorted(state.leases_ms.items()):
            if lease_end >= now_ms:
                raise refusal(self._group, verdicts.Busy(member, lease_end, now_ms))
        return state

    def _existing(self, names: Iterable[str]) -> Mapping[str, Topic]:
        return self._log.topics(Pattern(f"^(?:{'|'.join(map(re.escape, sorted(names)))})$"))

    def _group_offsets(self) -> mirror.GroupOffsets:
        """The offsets of Kafka's own group; refused if the mirror is of another schema."""
        return mirror.of_this_schema(self._log.group_offsets(self._group), self._group)

    def _in_mirror(self) -> list[TopicPartition]:
        return [tp for tp, entry in self._group_offsets().items() if mirror.is_mirror({tp: entry})]

    def _check(self) -> None:
        with refused(self._group):
            self._store.check()

    @contextmanager
    def _mirrored_after(self) -> Iterator[None]:
        """Put the mirror right after what is done within; where that was refused, what hinders it is only logged."""
        try:
            yield
        except BaseException:
            try:
                self._mirror_what_is()
            except CoopKafkaError as error:
                _log.warning("Kafka's own group %r still holds the refused reset: %s", self._group, error)
            raise
        self._mirror_what_is()

    def _mirror_what_is(self) -> None:
        """Not while Redis may be behind the mirror, which is the better copy then."""
        self._check()
        state = read_group(self._client, self._group)
        ids = {topic: known.id for topic, known in state.topics.items()}
        self._mirror(state.stable, _reset_epoch(state), ids, self._existing(state.topics))

    def _mirror(
        self, stable: Mapping[TopicPartition, int], epoch: int, ids: Mapping[str, str], there: Mapping[str, Topic]
    ) -> bool:
        """Write the mirror, but for topics that Kafka has no more; plain consumers in Kafka's group keep it off."""
        entries = {
            tp: mirror.entry(offset, epoch, ids[tp.topic])
            for tp, offset in stable.items()
            if tp.topic in there and tp.partition in there[tp.topic].partitions
        }
        return self._log.commit_group_offsets(self._group, entries)


def _reset_epoch(state: GroupState) -> int:
    return int(state.meta.get("reset_epoch", "0"))


def _why(moved: Sequence[Move]) -> str:
    told = ", ".join(f"{m.tp} {m.before} -> {m.after}" for m in moved[:MOVES_TOLD])
    more = f" and {len(moved) - MOVES_TOLD} more" if len(moved) > MOVES_TOLD else ""
    return f"by {operator()}: {told}{more}"
