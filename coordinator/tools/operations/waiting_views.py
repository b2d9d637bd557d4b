"""Key ranges over which members died or hung, keys whose record failed, and events, as all see them. Pure."""

from dataclasses import dataclass
from typing import Annotated, Self

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.redis.group_state import GroupEvent
from coordinator.tools.fields import DeferredKeys, HashesText, Means, ParkedKeys, PartitionNumber, TopicField


@dataclass(frozen=True, slots=True)
class FailingCounts:
    """How many keys fail."""

    deferred_keys: DeferredKeys = 0
    parked_keys: ParkedKeys = 0


@dataclass(frozen=True, slots=True)
class StrikeView:
    """A struck range."""

    topic: TopicField
    partition: PartitionNumber
    hashes: HashesText
    offset: Annotated[int, Means("Beginning of the offsets that were read in vain.", "OFFSET")]
    strikes: Annotated[int, Means("How often members died or hung over it.", "STRIKES")]
    state: Annotated[str, Means("`on trial` or `parked`.", "STATE")]
    at_ms: Annotated[int, Means("Time at which a member last died or hung over it.", "AT")]
    member: Annotated[str, Means("The member that died or hung over it last.", "MEMBER")]

    @classmethod
    def of(cls, strike: Strike) -> Self:
        """The view of a strike."""
        state = "parked" if strike.parked else "on trial"
        return cls(*strike.tp, str(strike.hashes), strike.offset, strike.count, state, strike.at_ms, strike.member)


@dataclass(frozen=True, slots=True)
class FailingKey:
    """A key and its failing record."""

    topic: TopicField
    partition: PartitionNumber
    hash: Annotated[str, Means("Hash of the key, 16 hex digits.", "HASH")]
    offset: Annotated[int, Means("Offset of the failing record.", "OFFSET")]
    state: Annotated[str, Means("`deferred` or `parked`.", "STATE")]
    attempts: Annotated[int, Means("Attempts so far.", "ATTEMPTS")]
    next_try_ms: Annotated[
        int | None, Means("No attempt before this time; null if it waits for `release`.", "NEXT TRY")
    ]
    error: Annotated[str, Means("Class of the last exception; empty if unknown.", "ERROR")]
    message: Annotated[str, Means("Its message.", "MESSAGE")]

    @classmethod
    def of(cls, record: FailingRecord) -> Self:
        """The view of a failing record."""
        next_try_ms = None if record.parked else record.next_ms
        tried = record.offset, record.state, record.attempts, next_try_ms, record.error, record.message
        return cls(record.tp.topic, record.tp.partition, f"{record.key_hash:016x}", *tried)


@dataclass(frozen=True, slots=True)
class EventView:
    """An event of a group."""

    id: Annotated[str, Means("Id of the entry in Redis.")]
    at_ms: Annotated[int, Means("Time of the event.", "the first")]
    kind: Annotated[str, Means("Kind of the event.", "the second")]
    member: Annotated[str, Means("The member that caused it; empty without one.", "the third")]
    why: Annotated[str, Means("The reason.", "the rest")]
    ranges: Annotated[str, Means("Key ranges whose owner changed; empty without them.", "the rest")]

    @classmethod
    def of(cls, event: GroupEvent) -> Self:
        """The view of an event."""
        return cls(event.id, event.at_ms, event.kind, event.member, event.why, event.ranges)
