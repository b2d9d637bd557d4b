"""Positions in Redis: first ones, acquisition, commit, assertion, recovery. `ports.Positions` describes each verb."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.policies import Policy, policy_of
from coordinator.assignment.rebalance import union
from coordinator.progress.ends import Ends, text_of
from coordinator.progress.ends import parsed as parsed_ends
from coordinator.progress.failing import FailingRecord
from coordinator.progress.growth import Growth, Segments, parsed
from coordinator.progress.ownership import Fact, Facts, asked_of, coalesced, not_owned
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls, answer, flat, owned_of, owned_text, pairs
from coordinator.redis.errors import sound
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.group_texts import offsets_at
from coordinator.redis.ports import NO_EXTENTS, Offsets, Proof
from coordinator.redis.replies import Acquired, Answer, Authorized, Caller, HandedOut, Moved, Sealed, Status
from coordinator.values.ranges import WHOLE, HashRange, offsets_of
from coordinator.values.subscription import Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class RedisPositions:
    """The calls about positions, and about the lane epochs that guard them."""

    calls: ScriptCalls

    def now_ms(self) -> int:
        return self.calls.now_ms()

    @sound
    def status(self) -> Status:
        k = self.calls.keys
        reply = self.calls.run("status", [k.meta, k.topics, k.leases])
        return Status(int(reply["reset"]), _topics(reply["topics"]), reply["founding"], int(reply["alive"]))

    @sound
    def create(
        self,
        nonce: str,
        topics: Mapping[str, Topic],
        positions: Offsets,
        *,
        grace_ms: int = 0,
        founding: str = "",
    ) -> Answer[int]:
        k = self.calls.keys
        per_partition = (x for tp in positions for x in (k.segments(tp), k.ics(tp), k.stable(tp.topic)))
        keys = [k.meta, k.topics, k.events, k.growth, *per_partition, k.proofs]
        counts = "".join(f"{name} {topics[name].count};" for name in dict.fromkeys(tp.topic for tp in positions))
        args, known = (nonce, str(grace_ms), counts, *_placed(topics, positions)), Caller(founding=founding)
        reply = self.calls.run("create_positions", keys, *args, caller=known)
        self.calls.list_group()
        return answer(reply, int(reply["placed"]))

    @sound
    def acquire(self, caller: Caller, wanted: Ranges, one: Collection[str] = ()) -> Answer[Acquired]:
        k = self.calls.keys
        per_partition = (x for tp in wanted for x in (k.owners(tp), k.segments(tp), k.ics(tp)))
        keys = [k.meta, k.leases, k.member(caller.member), k.events, k.topics, k.batches, *per_partition]
        reply = self.calls.run(
            "acquire", keys, *(_wanted(tp, hashes, one) for tp, hashes in wanted.items()), caller=caller
        )
        ownership, progress, whole = {}, {}, {}
        found = zip(wanted, reply["owned"], reply["segments"], reply["ics"], strict=True)
        for tp, mine, segments, ics in found:
            ownership[tp] = owned_of(mine)
            whole[tp] = Progress.parse(pairs(segments), pairs(ics))
            progress[tp] = Progress(tuple(x for o in ownership[tp] for x in whole[tp].within(o.hashes).segments))
        ids = {topic: known.id for topic, known in _topics(reply["topics"]).items()}
        return answer(reply, Acquired(int(reply["reset"]), ids, ownership, progress, whole))

    @sound
    def hand_out(self, caller: Caller, ends: Offsets, most: int, size: int) -> Answer[HandedOut]:
        k = self.calls.keys
        per_partition = (x for tp in ends for x in (k.segments(tp), k.ics(tp), k.handed(tp)))
        keys = [k.meta, k.leases, k.member(caller.member), k.batches, k.topics, k.events, k.policy, *per_partition]
        args = (str(most), str(size), *map(str, ends.values()))
        reply = self.calls.run("hand_out", keys, *args, caller=caller)
        ids = {topic: known.id for topic, known in _topics(reply["topics"]).items()}
        positions = {tp: int(text) for tp, text in zip(ends, reply["positions"], strict=True) if text}
        reach = {tp: int(text) for tp, text in zip(ends, reply["reach"], strict=True) if text}
        slices = {tp: offsets_of(text) for tp, text in zip(ends, reply["slices"], strict=True) if text}
        handed = HandedOut(int(reply["reset"]), ids, positions, reach, reply["epoch"], slices)
        return answer(reply, replace(handed, policy=policy_of(pairs(reply["policy"])), now_ms=int(reply["now"])))

    @sound
    def authorize(
        self, caller: Caller, end: StreamOffset, *, replayed: bool = False, as_planned: bool = False
    ) -> Answer[Authorized]:
        k, partitions = self.calls.keys, tuple(end.lanes)
        asked = {tp: asked_of(end, lanes) for tp, lanes in end.rows.items()}
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.batches, *map(k.owners, partitions)]
        lanes = (f"{tp.topic} {end.topic_ids.get(tp.topic, '-')} {owned_text(asked[tp])}" for tp in partitions)
        args = str(end.reset), end.digest, "1" * replayed, "1" * as_planned, *lanes
        reply = self.calls.run("authorize", keys, *args, caller=caller)
        held = zip(partitions, reply["owned"].split("\n"), strict=False)
        owned = {tp: asked[tp] if text == "all" else owned_of(text) for tp, text in held}
        fewer = [tp for tp in owned if owned[tp] is not asked[tp]]
        refused = {tp: not_owned(asked[tp], owned[tp]) if end.by_key else (WHOLE,) for tp in fewer}
        self.calls.fence("a batch", caller, refused)
        ends = parsed_ends(reply["seal"]) if reply["sealed"] else None
        planned, unknown = bool(reply["planned"]), bool(reply["unknown"])
        return answer(reply, Authorized(owned, ends, as_planned=planned, unknown=unknown))

    def seal(self, caller: Caller, digest: str, ends: Ends, failing: Sequence[FailingRecord] = ()) -> Answer[bool]:
        k, partitions = self.calls.keys, sorted({record.tp for record in failing})
        keys = [k.meta, k.leases, k.member(caller.member), k.failing, k.events, *map(k.owners, partitions)]
        where = "".join(f"{tp.topic} {tp.partition};" for tp in partitions)
        records = flat({record.field: record.text for record in failing})
        reply = self.calls.run(
            "seal", keys, digest, text_of(ends), where, str(self.calls.delay_ms), *records, caller=caller
        )
        return answer(reply, bool(reply["sealed"]))

    @sound
    def seal_of(self, member: str, digest: str) -> Sealed:
        fields = self.calls.hash(self.calls.keys.member(member))
        authorized = fields.get("authorized", "unknown")
        if authorized == digest:
            return Sealed(parsed_ends(fields["seal"]) if "seal" in fields else None)
        return Sealed(unread=authorized != "unknown")

    @sound
    def commit(self, caller: Caller, offset: StreamOffset, facts: Facts, digest: str = "") -> Answer[Moved]:
        k = self.calls.keys
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.batches, *self._progress_keys(facts)]
        args = str(offset.reset), digest, *_fact_texts(offset, facts)
        reply = self.calls.run("commit", keys, *args, caller=caller)
        refused = {tp: _facts(text) for tp, text in zip(facts, reply["refused"].split("\n"), strict=False) if text}
        self.calls.fence("a commit", caller, {tp: union(f.hashes for f in of_tp) for tp, of_tp in refused.items()})
        return answer(reply, Moved(refused, exactly=bool(reply["exactly"]), unread=bool(reply["unread"])))

    def claim(self, offset: StreamOffset, facts: Facts) -> None:
        k = self.calls.keys
        fewer = {tp: coalesced(of_tp) for tp, of_tp in facts.items()}
        per_partition = (x for tp in facts for x in (*self._progress_keys((tp,)), k.epoch(tp.topic)))
        epochs = " ".join(str(offset.leader_epochs.get(tp, "-")) for tp in facts)
        keys = [k.meta, k.topics, *per_partition]
        known = Caller(founding=offset.founding)
        self.calls.run("claim", keys, str(offset.reset), epochs, *_fact_texts(offset, fewer), caller=known)

    def recreate(
        self, topics: Mapping[str, Topic], positions: Offsets, extents: Mapping[TopicPartition, str] = NO_EXTENTS
    ) -> None:
        k = self.calls.keys
        keys = [k.meta, k.topics, k.events, k.strikes, k.failing]
        for tp in positions:
            keys += [*self._progress_keys((tp,)), k.end(tp.topic), k.epoch(tp.topic), k.reserved(tp)]
        texts = json.dumps([extents.get(tp, "") for tp in positions])
        self.calls.run("recreate", keys, texts, *_placed(topics, positions))

    def recover(
        self,
        caller: Caller,
        nonce: str,
        why: str,
        reset: int,
        topics: Mapping[str, Topic],
        proven: Mapping[TopicPartition, Proof],
        growths: Sequence[Growth] = (),
        policy: Policy | None = None,
    ) -> bool:
        k = self.calls.keys
        fixed = [k.meta, k.leases, k.topics, k.events, k.batches, k.leaving, k.applications, k.targets, k.assignment]
        keys = [*fixed, k.growth, k.working, k.policy, *self._progress_keys(proven), k.proofs]
        grew = "".join(f"{growth.field}|{growth.value};" for growth in growths)
        policies = "-" if policy is None else "".join(f"{name} {value};" for name, value in policy.fields.items())
        parts = {f"{tp.topic} {tp.partition}": _parts_text(of) for tp, of in proven.items() if isinstance(of, tuple)}
        whole = {tp: position if isinstance(position, int) else None for tp, position in proven.items()}
        args = nonce, why, str(reset), grew, policies, json.dumps(parts)
        return "waits" in self.calls.run("recover", keys, *args, *_placed(topics, whole), caller=caller)

    @sound
    def reset_epoch(self) -> int:
        return int(self.calls.hash(self.calls.keys.meta).get("reset_epoch", "0"))

    @sound
    def stable(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        found = zip(topics, self.calls.hashes(map(self.calls.keys.stable, topics)), strict=True)
        return {tp: o for topic, offsets in found for tp, o in offsets_at(topic, offsets).items()}

    @sound
    def extents(self, topics: Sequence[str]) -> dict[TopicPartition, str]:
        found = zip(topics, self.calls.hashes(map(self.calls.keys.epoch, topics)), strict=True)
        return {TopicPartition(t, int(p)): text for t, texts in found for p, text in texts.items()}

    def report_ends(self, ends: Offsets, extents: Mapping[TopicPartition, str]) -> None:
        k, fields = self.calls.keys, defaultdict[str, dict[str, str]](dict)
        for tp, end in ends.items():
            fields[k.end(tp.topic)][str(tp.partition)] = str(end)
        for tp, text in extents.items():
            fields[k.epoch(tp.topic)][str(tp.partition)] = text
        self.calls.run("show", [k.meta, *fields], *(json.dumps(flat(texts)) for texts in fields.values()))

    @sound
    def positions(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Segments]:
        found = zip(partitions, self.calls.hashes(map(self.calls.keys.segments, partitions)), strict=True)
        segments = {tp: Progress.parse_whole(tp, text).segments for tp, text in found if text}
        return {tp: tuple((s.hashes, s.position) for s in of_tp) for tp, of_tp in segments.items()}

    @sound
    def progress(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Progress]:
        k = self.calls.keys
        found = self.calls.hashes(key for tp in partitions for key in (k.ics(tp), k.segments(tp)))
        pairs_of = zip(partitions, found[::2], found[1::2], strict=True)
        return {tp: Progress.parse_whole(tp, positions, ics) for tp, ics, positions in pairs_of if positions}

    @sound
    def growths(self) -> tuple[Growth, ...]:
        return parsed(self.calls.hash(self.calls.keys.growth))

    def grow(self, growths: Sequence[Growth]) -> None:
        k = self.calls.keys
        self.calls.run("grow", [k.meta, k.growth, k.events], *(x for g in growths for x in (g.field, g.value)))

    def _progress_keys(self, partitions: Iterable[TopicPartition]) -> list[str]:
        k = self.calls.keys
        return [x for tp in partitions for x in (k.owners(tp), k.segments(tp), k.ics(tp), k.stable(tp.topic))]


def _wanted(tp: TopicPartition, hashes: Iterable[HashRange], one: Collection[str]) -> str:
    word = "one" if tp.topic in one else ""
    return "".join(f"{h} {word};" for h in hashes)


def _topics(texts: Sequence[str]) -> dict[str, KnownTopic]:
    return {topic: KnownTopic.parse(topic, text) for topic, text in pairs(texts).items()}


def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(Fact.parse(*x.split()) for x in text.split(";") if x)


def _fact_texts(offset: StreamOffset, facts: Facts) -> list[str]:
    return [
        f"{tp.topic} {offset.topic_ids.get(tp.topic, '-')} {tp.partition} "
        + "".join(f"{f.hashes} {f.epoch} {f.done};" if f.epoch else f"{f.hashes} {f.done} ;" for f in of_tp)
        for tp, of_tp in facts.items()
    ]


def _parts_text(facts: Iterable[Fact]) -> str:
    """The positions of some hashes, as scripts read them."""
    return "".join(f"{f.hashes} {f.position};" for f in facts)


def _placed(topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int | None]) -> list[str]:
    """The positions as scripts read them; "-" where there is none.

    A topic has the partitions that the caller sees, and those of the positions: others assign these, or saw it grow.
    """
    count = {name: topic.partitions[-1] + 1 for name, topic in topics.items()}
    for tp in positions:
        count[tp.topic] = max(count[tp.topic], tp.partition + 1)
    return [
        f"{tp.topic} {topics[tp.topic].id} {count[tp.topic]} {tp.partition} {'-' if position is None else position}"
        for tp, position in positions.items()
    ]
