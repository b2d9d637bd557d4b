"""The verbs of positions: founded, acquired, authorised, committed, asserted, recovered. One script a method.

Every method may raise a `verdicts.Verdict`; what Redis itself refuses is a `StoreError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.assignment_text import Ranges
from coordinator.group_state import KnownTopic
from coordinator.keys import GROUPS
from coordinator.ownership import Fact, Facts, Owned, Ownership
from coordinator.progress import Progress
from coordinator.ranges import HashRange
from coordinator.redis_calls import Answer, Caller, Seen, answer
from coordinator.redis_membership import MembershipVerbs
from coordinator.stream_offset import StreamOffset
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
    unplaced: tuple[TopicPartition, ...]  # partitions that have no positions yet


class RedisStore(MembershipVerbs):
    """The verbs. Safe for two threads (the reader's and its heartbeat)."""

    def status(self, caller: Caller) -> Status:
        """What the group is; `Absent` if Redis holds nothing of it."""
        k = self._keys
        nonce, seq, reset, _, topics = self._run("status", caller, [k.meta, k.topics])
        names = dict(zip(topics[::2], topics[1::2], strict=True))
        known = {topic: KnownTopic(text.split()[0], int(text.split()[1])) for topic, text in names.items()}
        return Status(Seen(nonce, int(seq)), int(reset), known)

    def found(
        self, caller: Caller, nonce: str, topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int]
    ) -> int:
        """Give partitions their first positions where they have none; found the group, of `nonce`, if there is one."""
        k = self._keys
        keys = [k.meta, k.topics, k.events, *(x for tp in positions for x in (k.segments(tp), k.stable(tp.topic)))]
        reply = self._run("found", caller, keys, nonce, *_placed(topics, positions))
        with self._client.reading() as redis:
            redis.sadd(GROUPS, k.group)
        return int(reply[2])

    def acquire(self, caller: Caller, wanted: Ranges) -> Answer[Acquired]:
        """Take what is free or takeable of `wanted`; all that the member then owns there, with its positions."""
        partitions = tuple(wanted)
        k = self._keys
        per_partition = (x for tp in partitions for x in (k.owners(tp), k.segments(tp), k.ics(tp)))
        keys = [k.meta, k.leases, k.member(caller.member), k.events, k.topics, k.batches, *per_partition]
        reply = self._run("acquire", caller, keys, *("".join(f"{h} ;" for h in wanted[tp]) for tp in partitions))
        ownership, progress = {}, {}
        for tp, (mine, segments, ics) in zip(partitions, reply[5], strict=True):
            ownership[tp] = _owned(mine)
            whole = Progress.parse(_pairs(segments), _pairs(ics))
            progress[tp] = Progress(tuple(x for o in ownership[tp] for x in whole.within(o.hashes).segments))
        unplaced = tuple(tp for tp, (_, segments, _) in zip(partitions, reply[5], strict=True) if not segments)
        ids = {topic: text.split()[0] for topic, text in _pairs(reply[4]).items()}
        return answer(reply, Acquired(int(reply[3]), ids, ownership, progress, unplaced))

    def authorize(self, caller: Caller, end: StreamOffset) -> Answer[Ownership]:
        """Which parts of the lanes of `end` are still owned at their epoch (R7)."""
        k, partitions = self._keys, tuple(end.lanes)
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.batches, *map(k.owners, partitions)]
        lanes = (
            f"{tp.topic} {end.topic_ids.get(tp.topic, '-')} " + "".join(f"{x.hashes} {x.epoch};" for x in end.lanes[tp])
            for tp in partitions
        )
        reply = self._run("authorize", caller, keys, str(end.reset), *lanes)
        return answer(reply, {tp: _owned(text) for tp, text in zip(partitions, reply[3], strict=True)})

    def commit(self, caller: Caller, offset: StreamOffset, facts: Facts) -> Answer[Facts]:
        """Move positions through the fence; the facts that were refused, empty if none."""
        k, partitions = self._keys, tuple(facts)
        per_partition = (x for tp in partitions for x in self._progress_keys(tp))
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.batches, *per_partition]
        reply = self._run("commit", caller, keys, str(offset.reset), *_fact_texts(offset, facts))
        refused = {tp: _facts(text) for tp, text in zip(partitions, reply[3], strict=True)}
        return answer(reply, {tp: f for tp, f in refused.items() if f})

    def claim(self, caller: Caller, offset: StreamOffset, facts: Facts) -> None:
        """Assert positions without the fence (spec 7); facts of another reset epoch or topic id are ignored."""
        k = self._keys
        keys = [k.meta, k.topics, *(x for tp in facts for x in self._progress_keys(tp))]
        self._run("claim", caller, keys, str(offset.reset), *_fact_texts(offset, facts))

    def recreate(self, caller: Caller, topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int]) -> None:
        """New positions for partitions whose log was replaced; every lane epoch on them is void."""
        k = self._keys
        per_partition = (x for tp in positions for x in (k.owners(tp), k.segments(tp), k.ics(tp), k.stable(tp.topic)))
        self._run("recreate", caller, [k.meta, k.topics, *per_partition], *_placed(topics, positions))

    def recover(
        self,
        caller: Caller,
        nonce: str,
        why: str,
        topics: Mapping[str, Topic],
        proven: Mapping[TopicPartition, int | None],
    ) -> None:
        """Begin again after a loss of state, at `nonce`; nothing happens if somebody else has already.

        `StateLostError` where neither Redis nor `proven` has a position for a partition.
        """
        k = self._keys
        fixed = [k.meta, k.leases, k.topics, k.events, k.batches, k.leaving, k.applications, k.targets, k.assignment]
        keys = [*fixed, *(x for tp in proven for x in self._progress_keys(tp))]
        positions = {tp: "-" if position is None else str(position) for tp, position in proven.items()}
        self._run("recover", caller, keys, nonce, why, *_placed(topics, positions))

    def stable(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """The stable offset of every partition of `topics`."""
        with self._client.reading() as redis:
            found = {topic: redis.hgetall(self._keys.stable(topic)) for topic in topics}
        return {TopicPartition(t, int(p)): int(o) for t, offsets in found.items() for p, o in offsets.items()}

    def report_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """Show the log ends to whoever looks; decides nothing."""
        with self._client.reading() as redis:
            pipeline = redis.pipeline(transaction=False)
            for tp, end in ends.items():
                pipeline.hset(self._keys.end(tp.topic), str(tp.partition), str(end))
            pipeline.execute()

    def event(self, kind: str, why: str) -> None:
        """Tell the events stream."""
        with self._client.reading() as redis:
            redis.xadd(self._keys.events, {"event": kind, "member": "", "why": why}, maxlen=1000)

    def _progress_keys(self, tp: TopicPartition) -> tuple[str, str, str]:
        return self._keys.owners(tp), self._keys.segments(tp), self._keys.stable(tp.topic)


def _pairs(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _owned(text: str) -> tuple[Owned, ...]:
    return tuple(Owned(HashRange.parse(h), e) for h, e in (x.split() for x in text.split(";") if x))


def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(Fact(HashRange.parse(h), int(p), e) for h, e, p in (x.split() for x in text.split(";") if x))


def _fact_texts(offset: StreamOffset, facts: Facts) -> list[str]:
    return [
        f"{tp.topic} {offset.topic_ids.get(tp.topic, '-')} {tp.partition} "
        + "".join(f"{f.hashes} {f.epoch} {f.position};" if f.epoch else f"{f.hashes} {f.position} ;" for f in of_tp)
        for tp, of_tp in facts.items()
    ]


def _placed(
    topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int] | Mapping[TopicPartition, str]
) -> list[str]:
    return [
        f"{tp.topic} {topics[tp.topic].id} {topics[tp.topic].partitions[-1] + 1} {tp.partition} {position}"
        for tp, position in positions.items()
    ]
