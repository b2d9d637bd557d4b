"""The verbs of positions: founded, acquired, authorised, committed, asserted, recovered. One script a method.

Every method may raise a `verdicts.Verdict`; what Redis itself refuses is a `StoreError`.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.assignment.assignment_text import Ranges
from coordinator.group_state import KnownTopic
from coordinator.group_texts import offsets_at
from coordinator.progress.growth import Growth
from coordinator.progress.ownership import Fact, Facts, Ownership, coalesced, lane_ranges, not_owned
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import NOBODY, Answer, Caller, Seen, answer, owned_of, owned_text, pairs
from coordinator.redis.errors import sound
from coordinator.redis.growth import GrowthVerbs
from coordinator.redis.keys import GROUPS
from coordinator.redis.membership import MembershipVerbs
from coordinator.redis.poison import PoisonVerbs
from coordinator.redis.policy import PolicyVerbs
from coordinator.redis.reports import ReportVerbs
from coordinator.subscription import Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class Status:
    """The group as `status` finds it."""

    seen: Seen
    reset: int
    topics: Mapping[str, KnownTopic]


@dataclass(frozen=True, slots=True)
class Acquired:
    """What a member owns now, and how far it is done."""

    reset: int
    topic_ids: Mapping[str, str]  # as the group recorded them
    ownership: Ownership
    progress: Mapping[TopicPartition, Progress]  # of what is owned
    whole: Mapping[TopicPartition, Progress]  # of all hashes, whoever owns them, where a partition has ICs


@dataclass(frozen=True, slots=True)
class Moved:
    """What a commit did: the facts that were refused, empty if none.

    `unread`: nothing, for the member never authorized this batch, so nobody read it.
    `exactly`: each partition has no individual commits, and is done exactly as far as the facts say, where they say it.
    """

    refused: Facts
    exactly: bool
    unread: bool = False


class RedisStore(MembershipVerbs, PolicyVerbs, GrowthVerbs, PoisonVerbs, ReportVerbs):
    """The verbs. Safe for two threads (the reader's and its heartbeat)."""

    @sound
    def status(self, caller: Caller) -> Status:
        """What the group is; `Absent` if Redis holds nothing of it."""
        k = self._keys
        nonce, seq, reset, _, topics = self._run("status", caller, [k.meta, k.topics])
        known = {topic: KnownTopic.parse(topic, text) for topic, text in pairs(topics).items()}
        return Status(Seen(nonce, int(seq)), int(reset), known)

    @sound
    def found(
        self,
        caller: Caller,
        nonce: str,
        topics: Mapping[str, Topic],
        positions: Mapping[TopicPartition, int],
        *,
        grace_ms: int | None = None,
    ) -> int:
        """Give partitions their first positions where they have none; found the group, of `nonce`, if there is one.

        Where a topic has more partitions than the group knew, the growth is recorded with its grace (spec R8),
        unless that is None: the caller reads given partitions, and does not see a topic grow.
        """
        k = self._keys
        per_partition = (x for tp in positions for x in (k.segments(tp), k.ics(tp), k.stable(tp.topic)))
        keys = [k.meta, k.topics, k.events, k.growth, *per_partition]
        reply = self._run("found", caller, keys, nonce, _text(grace_ms), *_placed(topics, positions))
        with self._client.reading() as redis:
            redis.sadd(GROUPS, k.group)
        return int(reply[2])

    @sound
    def acquire(self, caller: Caller, wanted: Ranges, *, placed: bool = False) -> Answer[Acquired]:
        """Take what is free or takeable of `wanted`; all that the member then owns there, with its positions.

        `placed`: all these partitions have had positions since this nonce, so one without any has lost them (`Lost`).
        """
        partitions = tuple(wanted)
        k = self._keys
        per_partition = (x for tp in partitions for x in (k.owners(tp), k.segments(tp), k.ics(tp)))
        keys = [k.meta, k.leases, k.member(caller.member), k.events, k.topics, k.batches, *per_partition]
        texts = ("".join(f"{h} ;" for h in wanted[tp]) for tp in partitions)
        reply = self._run("acquire", caller, keys, "placed" if placed else "", *texts)
        ownership, progress, whole = {}, {}, {}
        for tp, (mine, segments, ics) in zip(partitions, reply[5], strict=True):
            ownership[tp] = owned_of(mine)
            whole[tp] = Progress.parse(pairs(segments), pairs(ics))
            progress[tp] = Progress(tuple(x for o in ownership[tp] for x in whole[tp].within(o.hashes).segments))
        ids = {topic: KnownTopic.parse(topic, text).id for topic, text in pairs(reply[4]).items()}
        return answer(reply, Acquired(int(reply[3]), ids, ownership, progress, whole))

    @sound
    def authorize(self, caller: Caller, end: StreamOffset) -> Answer[Ownership]:
        """Which parts of the lanes of `end` are still owned at their epoch (R7)."""
        k, partitions = self._keys, tuple(end.lanes)
        asked = {tp: lane_ranges(lanes) for tp, lanes in end.rows.items()}
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.batches, *map(k.owners, partitions)]
        lanes = (f"{tp.topic} {end.topic_ids.get(tp.topic, '-')} {owned_text(asked[tp])}" for tp in partitions)
        reply = self._run("authorize", caller, keys, str(end.reset), end.digest, *lanes)
        held = zip(partitions, reply[3].split("\n"), strict=False)
        told = {tp: asked[tp] if text == "all" else owned_of(text) for tp, text in held}
        self._fence("a batch", caller, {tp: not_owned(asked[tp], told[tp]) for tp in told if told[tp] is not asked[tp]})
        return answer(reply, told)

    @sound
    def commit(self, caller: Caller, offset: StreamOffset, facts: Facts, digest: str = "") -> Answer[Moved]:
        """Move positions through the fence; with the digest of the batch only if this member authorized it."""
        k, partitions = self._keys, tuple(facts)
        per_partition = (x for tp in partitions for x in self._progress_keys(tp))
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.batches, *per_partition]
        reply = self._run("commit", caller, keys, str(offset.reset), digest, *_fact_texts(offset, facts))
        refused = {tp: _facts(text) for tp, text in zip(partitions, reply[3].split("\n"), strict=False) if text}
        return answer(reply, Moved(refused, exactly=bool(reply[4]), unread=bool(reply[5])))

    def claim(self, caller: Caller, offset: StreamOffset, facts: Facts) -> None:
        """Assert positions without the fence (spec 7); facts of another reset epoch or topic id are ignored."""
        k = self._keys
        keys = [k.meta, k.topics, *(x for tp in facts for x in self._progress_keys(tp))]
        fewer = {tp: coalesced(of_tp) for tp, of_tp in facts.items()}
        self._run("claim", caller, keys, str(offset.reset), *_fact_texts(offset, fewer))

    def recreate(self, caller: Caller, topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int]) -> None:
        """New positions for partitions whose log was replaced; every lane epoch on them is void."""
        k = self._keys
        per_partition = (x for tp in positions for x in (*self._progress_keys(tp), k.end(tp.topic)))
        self._run(
            "recreate", caller, [k.meta, k.topics, k.events, k.strikes, *per_partition], *_placed(topics, positions)
        )

    def recover(
        self,
        caller: Caller,
        nonce: str,
        why: str,
        reset: int,
        topics: Mapping[str, Topic],
        proven: Mapping[TopicPartition, int | None],
        growths: Iterable[Growth] = (),
    ) -> None:
        """Begin again after a loss of state, at `nonce`; nothing happens if somebody else has already.

        `proven` holds facts of the reset epoch `reset`: if that is newer than Redis', nothing that Redis has proves
        anything. `growths` are recorded where Redis has none of that name. `StateLostError` where neither Redis nor
        `proven` has a position for a partition.
        """
        k = self._keys
        fixed = [k.meta, k.leases, k.topics, k.events, k.batches, k.leaving, k.applications, k.targets, k.assignment]
        keys = [*fixed, k.growth, *(x for tp in proven for x in self._progress_keys(tp))]
        grew = "".join(f"{growth.field}|{growth.value};" for growth in growths)
        positions = {tp: "-" if position is None else str(position) for tp, position in proven.items()}
        self._run("recover", caller, keys, nonce, why, str(reset), grew, *_placed(topics, positions))

    @sound
    def reset_epoch(self) -> int:
        """The reset epoch that Redis holds, also while the group is to be recovered; 0 if it holds nothing."""
        with self._client.reading() as redis:
            return int(redis.hgetall(self._keys.meta).get("reset_epoch", "0"))

    @sound
    def stable(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """The stable offset of every partition of `topics`."""
        with self._client.reading() as redis:
            found = {topic: redis.hgetall(self._keys.stable(topic)) for topic in topics}
        return {tp: o for topic, offsets in found.items() for tp, o in offsets_at(topic, offsets).items()}

    def report_ends(
        self, ends: Mapping[TopicPartition, int], extents: Mapping[TopicPartition, str] | None = None
    ) -> None:
        """Show the log ends to whoever looks, and keep `extents`, which are `Extent` texts."""
        told: dict[str, dict[str, str]] = defaultdict(dict)
        for tp, end in ends.items():
            told[self._keys.end(tp.topic)][str(tp.partition)] = str(end)
        for tp, text in (extents or {}).items():
            told[self._keys.epoch(tp.topic)][str(tp.partition)] = text
        flat = (json.dumps([text for pair in texts.items() for text in pair]) for texts in told.values())
        self._run("show", NOBODY, [self._keys.meta, *told], *flat)

    @sound
    def extents(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        """What is kept of leader epochs of the partitions of `topics`, as text."""
        with self._client.reading() as redis:
            found = {topic: redis.hgetall(self._keys.epoch(topic)) for topic in topics}
        return {TopicPartition(t, int(p)): text for t, texts in found.items() for p, text in texts.items()}

    def _progress_keys(self, tp: TopicPartition) -> tuple[str, str, str, str]:
        k = self._keys
        return k.owners(tp), k.segments(tp), k.ics(tp), k.stable(tp.topic)


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(Fact.parse(*x.split()) for x in text.split(";") if x)


def _fact_texts(offset: StreamOffset, facts: Facts) -> list[str]:
    return [
        f"{tp.topic} {offset.topic_ids.get(tp.topic, '-')} {tp.partition} "
        + "".join(f"{f.hashes} {f.epoch} {f.done};" if f.epoch else f"{f.hashes} {f.done} ;" for f in of_tp)
        for tp, of_tp in facts.items()
    ]


def _placed(
    topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int] | Mapping[TopicPartition, str]
) -> list[str]:
    return [
        f"{tp.topic} {topics[tp.topic].id} {topics[tp.topic].partitions[-1] + 1} {tp.partition} {position}"
        for tp, position in positions.items()
    ]
