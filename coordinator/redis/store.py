"""The verbs of positions: first ones, acquisition, authorisation, commit, assertion, recovery. One script a method.

Every method may raise a `verdicts.Verdict`. An error of Redis itself is a `StoreError`.
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
    """The answer of `status` about a group."""

    seen: Seen
    reset: int
    topics: Mapping[str, KnownTopic]


@dataclass(frozen=True, slots=True)
class Acquired:
    """The ranges that a member owns now, and their positions."""

    reset: int
    topic_ids: Mapping[str, str]  # as recorded by the group
    ownership: Ownership
    progress: Mapping[TopicPartition, Progress]  # of the owned ranges
    whole: Mapping[TopicPartition, Progress]  # of all hashes, whoever owns them, if the partition has ICs


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a commit: the refused facts, empty if there are none.

    `unread`: nothing was written, for the member never authorised this batch (rule: unread-batch).
    `exactly`: no partition has individual commits, and each position is that of the facts. Then the member knows
    its positions without another look (rule: fresh-positions).
    """

    refused: Facts
    exactly: bool
    unread: bool = False


class RedisStore(MembershipVerbs, PolicyVerbs, GrowthVerbs, PoisonVerbs, ReportVerbs):
    """The verbs. Safe for two threads (the reader's and its heartbeat)."""

    @sound
    def status(self, caller: Caller) -> Status:
        """Identity and topics of the group. Raises `Absent` if Redis holds nothing of it."""
        k = self._keys
        nonce, seq, reset, _, topics = self._run("status", caller, [k.meta, k.topics])
        known = {topic: KnownTopic.parse(topic, text) for topic, text in pairs(topics).items()}
        return Status(Seen(nonce, int(seq)), int(reset), known)

    @sound
    def create_positions(
        self,
        caller: Caller,
        nonce: str,
        topics: Mapping[str, Topic],
        positions: Mapping[TopicPartition, int],
        *,
        grace_ms: int | None = None,
    ) -> int:
        """Write first positions where there are none. With a `nonce`, create the group if it does not exist.

        A topic with more partitions than recorded has grown. The growth is recorded with its grace. With a grace of
        None it is not recorded: the caller reads given partitions, and does not see a topic grow.
        """
        k = self._keys
        per_partition = (x for tp in positions for x in (k.segments(tp), k.ics(tp), k.stable(tp.topic)))
        keys = [k.meta, k.topics, k.events, k.growth, *per_partition]
        reply = self._run("create_positions", caller, keys, nonce, _text(grace_ms), *_placed(topics, positions))
        with self._client.reading() as redis:
            redis.sadd(GROUPS, k.group)
        return int(reply[2])

    @sound
    def acquire(self, caller: Caller, wanted: Ranges, *, placed: bool = False) -> Answer[Acquired]:
        """Acquire the free or takeable parts of `wanted`. The answer is all owned ranges with their positions.

        `placed`: the caller has seen positions of all these partitions at this nonce. A missing one is then `Lost`.
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
        """The parts of the lanes of `end` that the member still owns (rule: authorize-every-batch)."""
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
        """Move positions through the fence. With a digest, only if this member authorised that batch."""
        k, partitions = self._keys, tuple(facts)
        per_partition = (x for tp in partitions for x in self._progress_keys(tp))
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.batches, *per_partition]
        reply = self._run("commit", caller, keys, str(offset.reset), digest, *_fact_texts(offset, facts))
        refused = {tp: _facts(text) for tp, text in zip(partitions, reply[3].split("\n"), strict=False) if text}
        return answer(reply, Moved(refused, exactly=bool(reply[4]), unread=bool(reply[5])))

    def claim(self, caller: Caller, offset: StreamOffset, facts: Facts) -> None:
        """Assert positions without the fence (rule: assert-beginnings).

        Facts of an older reset epoch or of another topic id are ignored.
        """
        k = self._keys
        keys = [k.meta, k.topics, *(x for tp in facts for x in self._progress_keys(tp))]
        fewer = {tp: coalesced(of_tp) for tp, of_tp in facts.items()}
        self._run("claim", caller, keys, str(offset.reset), *_fact_texts(offset, fewer))

    def recreate(self, caller: Caller, topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int]) -> None:
        """Write new positions for partitions whose log was replaced. Every lane epoch on them is void."""
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
        """Recover from a loss of state, at `nonce` (rule: recover-by-proof). Does nothing if that was done already.

        `proven` are positions of the reset epoch `reset`. If it is newer than the one in Redis, positions in Redis
        prove nothing. `growths` are recorded if Redis has none of that name. Raises `StateLostError` if a partition
        has no position, in Redis or in `proven`.
        """
        k = self._keys
        fixed = [k.meta, k.leases, k.topics, k.events, k.batches, k.leaving, k.applications, k.targets, k.assignment]
        keys = [*fixed, k.growth, *(x for tp in proven for x in self._progress_keys(tp))]
        grew = "".join(f"{growth.field}|{growth.value};" for growth in growths)
        positions = {tp: "-" if position is None else str(position) for tp, position in proven.items()}
        self._run("recover", caller, keys, nonce, why, str(reset), grew, *_placed(topics, positions))

    @sound
    def reset_epoch(self) -> int:
        """The reset epoch in Redis, also before a recovery; 0 if Redis holds nothing."""
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
        """Write the log ends, for people and for commits, and `extents`, which are `Extent` texts."""
        told: dict[str, dict[str, str]] = defaultdict(dict)
        for tp, end in ends.items():
            told[self._keys.end(tp.topic)][str(tp.partition)] = str(end)
        for tp, text in (extents or {}).items():
            told[self._keys.epoch(tp.topic)][str(tp.partition)] = text
        flat = (json.dumps([text for pair in texts.items() for text in pair]) for texts in told.values())
        self._run("show", NOBODY, [self._keys.meta, *told], *flat)

    @sound
    def extents(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        """The leader epochs of the partitions of `topics`, as text."""
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
