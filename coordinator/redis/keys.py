"""Every Redis key, spelt once. All keys of a group share one hash tag, so they live in one cluster slot.

coop:v1:groups                         SET     group names
coop:v1:{orders}:meta                  HASH    schema, nonce, run_id, reset_epoch, commit_seq, epochs ...
coop:v1:{orders}:leases                ZSET    member -> lease end (ms of Redis TIME)
coop:v1:{orders}:member:<id>           HASH    application, host, driver_pid, pid, capacity, incarnation, joined_at ...
coop:v1:{orders}:batches               ZSET    member -> when its batch counts as hung (ms of Redis TIME)
coop:v1:{orders}:leaving               SET     members that take no more ranges
coop:v1:{orders}:standbys              HASH    member that wants to be a standby, or was drained -> standby or working
coop:v1:{orders}:applications          HASH    application, or query of Spark -> member
coop:v1:{orders}:targets               HASH    member -> "topic partition offset;..." where its AvailableNow ends
coop:v1:{orders}:assignment            HASH    member -> JSON of the key ranges it should own
coop:v1:{orders}:policy                HASH    policy -> true, false or unknown; see coordinator/assignment/policies.py
coop:v1:{orders}:topics                HASH    topic -> "<topic id> <partition count>"
coop:v1:{orders}:working               HASH    member -> "topic partition lo-hi from-until[ one];..." tasks are at
coop:v1:{orders}:strikes               HASH    "topic partition lo-hi" -> "struck|parked count from-until ms member"
coop:v1:{orders}:failing               HASH    "topic partition hash" -> "deferred|parked offset attempts ms error ..."
coop:v1:{orders}:lanes                 HASH    member -> a line for each of its lanes, as it planned them last
coop:v1:{orders}:growth                HASH    "<topic> <old> <new>" -> "<topic id> [~]<seen ms> <until ms>[ <ends>]"
coop:v1:{orders}:stable:<topic>        HASH    partition -> stable offset
coop:v1:{orders}:end:<topic>           HASH    partition -> log end at last look; at -> ms of Redis TIME
coop:v1:{orders}:epoch:<topic>         HASH    partition -> "<leader epoch>@<log end under it> reset=<epoch> topic=<id>"
coop:v1:{orders}:segments:<topic>:<p>  HASH    "lo-hi" -> position
coop:v1:{orders}:owners:<topic>:<p>    HASH    "lo-hi" -> "<lane epoch> <member>"
coop:v1:{orders}:ics:<topic>:<p>       HASH    "lo-hi" -> "53-60 71-71"
coop:v1:{orders}:handed:<topic>:<p>    HASH    "120-159" -> "<lane epoch> <member>"
coop:v1:{orders}:reserved:<topic>:<p>  HASH    "40-44 lo-hi ..." -> "<member>/<worker> held|parked|ended until <ms> ..."
coop:v1:{orders}:proofs                HASH    "topic partition" -> "lo-hi position;..." of a recovery that waits
coop:v1:{orders}:chosen                STRING  exists while a new member is about to join this replica set
coop:v1:{orders}:events                STREAM  what happened to the group, and why
coop:v1:{orders}:history               STREAM  each micro-batch: member, rows, bytes, seconds, lanes, slowest lane
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coordinator.values.subscription import TopicPartition

GROUPS = "coop:v1:groups"
_OF_TOPIC = ("stable", "end", "epoch")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


@lru_cache(maxsize=64)
def encode(group: str) -> str:
    """The group's name as keys have it: percent-encoded outside `[A-Za-z0-9._-]`."""
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in group.encode())


@lru_cache(maxsize=32_768)  # those of a thousand partitions are named several times in every batch
def _key(group: str, *parts: str | int) -> str:
    return ":".join(("coop:v1", "{" + encode(group) + "}", *map(str, parts)))


class _Fixed:
    """A key that each group has once; the attribute has its name."""

    def __set_name__(self, _: object, name: str) -> None:
        self._name = name

    def __get__(self, keys: "GroupKeys", _: object) -> str:
        return _key(keys.group, self._name)


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """The keys of one group; the module describes the content of each."""

    group: str
    meta = _Fixed()
    leases = _Fixed()
    batches = _Fixed()
    leaving = _Fixed()
    standbys = _Fixed()
    applications = _Fixed()
    targets = _Fixed()
    assignment = _Fixed()
    policy = _Fixed()
    topics = _Fixed()
    working = _Fixed()
    strikes = _Fixed()
    failing = _Fixed()
    lanes = _Fixed()
    growth = _Fixed()
    proofs = _Fixed()
    chosen = _Fixed()
    events = _Fixed()
    history = _Fixed()

    @property
    def prefix(self) -> str:
        """What each key of the group begins with."""
        return self._key("")

    def _key(self, *parts: str | int) -> str:
        return _key(self.group, *parts)

    def member(self, member: str) -> str:
        """The fields of a member."""
        return self._key("member", member)

    def stable(self, topic: str) -> str:
        """The stable offset of each partition."""
        return self._key("stable", topic)

    def end(self, topic: str) -> str:
        """The log end of each partition, and the time of the look in the field `at`."""
        return self._key("end", topic)

    def epoch(self, topic: str) -> str:
        """The leader epoch of each partition, and the log end seen under it."""
        return self._key("epoch", topic)

    def segments(self, tp: TopicPartition) -> str:
        """The position of each segment."""
        return self._key("segments", tp.topic, tp.partition)

    def owners(self, tp: TopicPartition) -> str:
        """The owner of each hash range."""
        return self._key("owners", tp.topic, tp.partition)

    def ics(self, tp: TopicPartition) -> str:
        """The individual commits above the position of each segment."""
        return self._key("ics", tp.topic, tp.partition)

    def handed(self, tp: TopicPartition) -> str:
        """The offsets that members of a group without order read now."""
        return self._key("handed", tp.topic, tp.partition)

    def reserved(self, tp: TopicPartition) -> str:
        """The reserved offsets and hashes, their workers, and ordered commits that wait for their turn."""
        return self._key("reserved", tp.topic, tp.partition)

    def maker(self, name: str) -> Callable[[Any], str]:
        """Makes the key of that name: of a topic, or of a partition, where each has its own."""
        found: Any = getattr(self, name)
        if isinstance(found, str):
            return lambda _: found
        make: Callable[[Any], str] = found
        return (lambda of: make(getattr(of, "topic", of))) if name in _OF_TOPIC else make

    def all(self, partitions: Iterable[TopicPartition]) -> list[str]:
        """Every key that the group can have, for those partitions, except those of members, `proofs` and `chosen`."""
        tps = sorted(partitions)
        topics = sorted({tp.topic for tp in tps})
        per_topic = [k for t in topics for k in self._of_topic(t)]
        per_partition = [k for tp in tps for k in self._of_partition(tp)]
        group = [self.meta, self.leases, self.batches, self.leaving, self.applications, self.targets]
        group += [self.assignment, self.policy, self.topics, self.growth, self.working, self.strikes, self.events]
        group += [self.failing, self.lanes, self.history, self.standbys]
        return [*group, *per_topic, *per_partition]

    def of_topic(self, topic: str, partitions: Iterable[TopicPartition]) -> list[str]:
        """Every key of a topic with those partitions."""
        return [*self._of_topic(topic), *(k for tp in partitions for k in self._of_partition(tp))]

    def _of_topic(self, topic: str) -> tuple[str, ...]:
        return self.stable(topic), self.end(topic), self.epoch(topic)

    def _of_partition(self, tp: TopicPartition) -> tuple[str, ...]:
        return self.segments(tp), self.owners(tp), self.ics(tp), self.handed(tp), self.reserved(tp)
