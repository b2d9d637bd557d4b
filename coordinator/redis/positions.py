"""Positions in Redis: first ones, acquisition, commit, assertion, recovery. `ports.Positions` describes each verb."""

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
from coordinator.redis.calls import ScriptCalls, flat, owned_of, owned_text, pairs, place
from coordinator.redis.client import Reply
from coordinator.redis.errors import sound
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.group_texts import offsets_at
from coordinator.redis.ports import NO_EXTENTS, Offsets, Proof
from coordinator.redis.replies import Acquired, Answer, Authorized, Caller, HandedOut, Moved, Sealed, Status
from coordinator.redis.verb import fields, nothing, number, truth, verb
from coordinator.values.ranges import WHOLE, HashRange, offsets_of
from coordinator.values.subscription import Topic, TopicPartition


def _status(reply: Reply) -> Status:
    return Status(int(reply["reset"]), _topics(reply["topics"]), reply["founding"])


STATUS = verb("status", "meta topics", "", _status)
_CREATE = verb(
    "create_positions",
    "meta topics events growth proofs",
    "nonce grace_ms counts places",
    number("placed"),
    partitions="segments ics stable",
)
_ACQUIRE = verb(
    "acquire", "meta leases member events topics batches", "wanted", fields, partitions="owners segments ics"
)
_HAND_OUT = verb(
    "hand_out",
    "meta leases member batches topics events policy",
    "most size ends",
    fields,
    partitions="segments ics handed",
)
_AUTHORIZE = verb(
    "authorize",
    "meta leases member topics batches",
    "reset digest replayed as_planned ids lanes",
    fields,
    partitions="owners",
)
_SEAL = verb(
    "seal",
    "meta leases member failing events",
    "digest ends where delay_ms records",
    truth("sealed"),
    partitions="owners",
)
_COMMIT = verb(
    "commit",
    "meta leases member topics batches",
    "reset digest ids facts",
    fields,
    partitions="owners segments ics stable",
)
_CLAIM = verb(
    "claim", "meta topics", "reset ids facts leader_epochs", nothing, partitions="owners segments ics stable epoch"
)
_RECREATE = verb(
    "recreate",
    "meta topics events strikes failing",
    "places extents",
    nothing,
    partitions="owners segments ics stable log_end=end epoch reserved",
)
_RECOVER = verb(
    "recover",
    "meta leases topics events batches leaving applications targets assignment growth working policy proofs",
    "nonce why reset growths policies parts places",
    fields,
    partitions="owners segments ics stable",
)
_SHOW = verb("show", "meta", "texts", nothing, hashes="")
_GROW = verb("grow", "meta growth events", "growths", nothing)


@dataclass(frozen=True, slots=True)
class RedisPositions:
    """The calls about positions, and about the lane epochs that guard them."""

    calls: ScriptCalls

    def now_ms(self) -> int:
        return self.calls.now_ms()

    @sound
    def status(self) -> Status:
        return self.calls.run(STATUS)

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
        placed = self.calls.ask(
            _CREATE,
            Caller(founding=founding),
            nonce=nonce,
            grace_ms=str(grace_ms),
            counts={tp.topic: str(topics[tp.topic].count) for tp in positions},
            places=_places(topics, positions),
            partitions=positions,
        )
        self.calls.list_group()
        return placed

    @sound
    def acquire(self, caller: Caller, wanted: Ranges, one: Collection[str] = ()) -> Answer[Acquired]:
        texts = [_wanted(tp, hashes, one) for tp, hashes in wanted.items()]
        got = self.calls.ask(_ACQUIRE, caller, wanted=texts, partitions=wanted)
        reply = got.value
        ownership, progress, whole = {}, {}, {}
        found = zip(wanted, reply["owned"], reply["segments"], reply["ics"], strict=True)
        for tp, mine, segments, ics in found:
            ownership[tp] = owned_of(mine)
            whole[tp] = Progress.parse(pairs(segments), pairs(ics))
            progress[tp] = Progress(tuple(x for o in ownership[tp] for x in whole[tp].within(o.hashes).segments))
        ids = {topic: known.id for topic, known in _topics(reply["topics"]).items()}
        return Answer(got.seen, Acquired(int(reply["reset"]), ids, ownership, progress, whole))

    @sound
    def hand_out(self, caller: Caller, ends: Offsets, most: int, size: int) -> Answer[HandedOut]:
        texts = [*map(str, ends.values())]
        got = self.calls.ask(_HAND_OUT, caller, most=str(most), size=str(size), ends=texts, partitions=ends)
        reply = got.value
        ids = {topic: known.id for topic, known in _topics(reply["topics"]).items()}
        positions = {tp: int(text) for tp, text in zip(ends, reply["positions"], strict=True) if text}
        reach = {tp: int(text) for tp, text in zip(ends, reply["reach"], strict=True) if text}
        slices = {tp: offsets_of(text) for tp, text in zip(ends, reply["slices"], strict=True) if text}
        handed = HandedOut(int(reply["reset"]), ids, positions, reach, reply["epoch"], slices)
        return Answer(got.seen, replace(handed, policy=policy_of(pairs(reply["policy"])), now_ms=int(reply["now"])))

    @sound
    def authorize(
        self, caller: Caller, end: StreamOffset, *, replayed: bool = False, as_planned: bool = False
    ) -> Answer[Authorized]:
        partitions = tuple(end.lanes)
        asked = {tp: asked_of(end, lanes) for tp, lanes in end.rows.items()}
        got = self.calls.ask(
            _AUTHORIZE,
            caller,
            reset=str(end.reset),
            digest=end.digest,
            replayed=replayed,
            as_planned=as_planned,
            ids=_ids(end, partitions),
            lanes=[owned_text(asked[tp]) for tp in partitions],
            partitions=partitions,
        )
        reply = got.value
        held = zip(partitions, reply["owned"].split("\n"), strict=False)
        owned = {tp: asked[tp] if text == "all" else owned_of(text) for tp, text in held}
        fewer = [tp for tp in owned if owned[tp] is not asked[tp]]
        refused = {tp: not_owned(asked[tp], owned[tp]) if end.by_key else (WHOLE,) for tp in fewer}
        self.calls.fence("a batch", caller, refused)
        ends = parsed_ends(reply["seal"]) if reply["sealed"] else None
        planned, unknown = bool(reply["planned"]), bool(reply["unknown"])
        return Answer(got.seen, Authorized(owned, ends, as_planned=planned, unknown=unknown))

    def seal(self, caller: Caller, digest: str, ends: Ends, failing: Sequence[FailingRecord] = ()) -> Answer[bool]:
        partitions = sorted({record.tp for record in failing})
        return self.calls.ask(
            _SEAL,
            caller,
            digest=digest,
            ends=text_of(ends),
            where=[f"{tp.topic} {tp.partition}" for tp in partitions],
            delay_ms=str(self.calls.delay_ms),
            records=flat({record.field: record.text for record in failing}),
            partitions=partitions,
        )

    @sound
    def seal_of(self, member: str, digest: str) -> Sealed:
        fields = self.calls.hash(self.calls.keys.member(member))
        authorized = fields.get("authorized", "unknown")
        if authorized == digest:
            return Sealed(parsed_ends(fields["seal"]) if "seal" in fields else None)
        return Sealed(unread=authorized != "unknown")

    @sound
    def commit(self, caller: Caller, offset: StreamOffset, facts: Facts, digest: str = "") -> Answer[Moved]:
        got = self.calls.ask(
            _COMMIT,
            caller,
            reset=str(offset.reset),
            digest=digest,
            ids=_ids(offset, facts),
            facts=_fact_texts(facts),
            partitions=facts,
        )
        reply = got.value
        refused = {tp: _facts(text) for tp, text in zip(facts, reply["refused"].split("\n"), strict=False) if text}
        self.calls.fence("a commit", caller, {tp: union(f.hashes for f in of_tp) for tp, of_tp in refused.items()})
        return Answer(got.seen, Moved(refused, exactly=bool(reply["exactly"]), unread=bool(reply["unread"])))

    def claim(self, offset: StreamOffset, facts: Facts) -> None:
        fewer = {tp: coalesced(of_tp) for tp, of_tp in facts.items()}
        self.calls.run(
            _CLAIM,
            Caller(founding=offset.founding),
            reset=str(offset.reset),
            ids=_ids(offset, facts),
            facts=_fact_texts(fewer),
            leader_epochs=[str(offset.leader_epochs.get(tp, "-")) for tp in facts],
            partitions=facts,
        )

    def recreate(
        self, topics: Mapping[str, Topic], positions: Offsets, extents: Mapping[TopicPartition, str] = NO_EXTENTS
    ) -> None:
        places, texts = _places(topics, positions), [extents.get(tp, "") for tp in positions]
        self.calls.run(_RECREATE, places=places, extents=texts, partitions=positions)

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
        whole = {tp: position if isinstance(position, int) else None for tp, position in proven.items()}
        reply = self.calls.run(
            _RECOVER,
            caller,
            nonce=nonce,
            why=why,
            reset=str(reset),
            growths=_growths(growths),
            policies=None if policy is None else flat(policy.fields),
            parts={f"{tp.topic} {tp.partition}": _parts_text(of) for tp, of in proven.items() if isinstance(of, tuple)},
            places=_places(topics, whole),
            partitions=proven,
        )
        return "waits" in reply

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
        k, texts = self.calls.keys, defaultdict[str, dict[str, str]](dict)
        for tp, end in ends.items():
            texts[k.end(tp.topic)][str(tp.partition)] = str(end)
        for tp, text in extents.items():
            texts[k.epoch(tp.topic)][str(tp.partition)] = text
        self.calls.run(_SHOW, texts=[flat(of_key) for of_key in texts.values()], hashes=[*texts])

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
        self.calls.run(_GROW, growths=_growths(growths))


def _wanted(tp: TopicPartition, hashes: Iterable[HashRange], one: Collection[str]) -> str:
    word = "one" if tp.topic in one else ""
    return "".join(f"{h} {word};" for h in hashes)


def _topics(texts: Sequence[str]) -> dict[str, KnownTopic]:
    return {topic: KnownTopic.parse(topic, text) for topic, text in pairs(texts).items()}


def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(Fact.parse(*x.split()) for x in text.split(";") if x)


def _ids(offset: StreamOffset, partitions: Iterable[TopicPartition]) -> dict[str, str]:
    return {tp.topic: offset.topic_ids.get(tp.topic, "-") for tp in partitions}


def _fact_texts(facts: Facts) -> list[str]:
    return [
        "".join(f"{f.hashes} {f.epoch} {f.done};" if f.epoch else f"{f.hashes} {f.done} ;" for f in of_tp)
        for of_tp in facts.values()
    ]


def _growths(growths: Iterable[Growth]) -> list[str]:
    return [text for growth in growths for text in (growth.field, growth.value)]


def _parts_text(facts: Iterable[Fact]) -> str:
    """The positions of some hashes, as scripts read them."""
    return "".join(f"{f.hashes} {f.position};" for f in facts)


def _places(topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int | None]) -> list[dict[str, str]]:
    """The positions as scripts read them; "-" where there is none.

    A topic has the partitions that the caller sees, and those of the positions: others assign these, or saw it grow.
    """
    count = {name: topic.partitions[-1] + 1 for name, topic in topics.items()}
    for tp in positions:
        count[tp.topic] = max(count[tp.topic], tp.partition + 1)
    return [place(tp, topics[tp.topic].id, count[tp.topic], position) for tp, position in positions.items()]
