"""Positions in Redis: first ones, acquisition, commit, assertion, recovery."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.policies import Policy, policy_of
from coordinator.assignment.rebalance import union
from coordinator.progress.ends import Ends, text_of
from coordinator.progress.ends import parsed as parsed_ends
from coordinator.progress.failing import FailingRecord
from coordinator.progress.growth import Growth, Segments, parsed
from coordinator.progress.ownership import Facts, asked_of, coalesced, not_owned
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_texts import offsets_at
from coordinator.redis.position_verbs import (
    ACQUIRE,
    AUTHORIZE,
    CLAIM,
    COMMIT,
    CREATE,
    GROW,
    HAND_OUT,
    RECOVER,
    RECREATE,
    SEAL,
    SHOW,
    STATUS,
    fact_texts,
    facts_of,
    growth_texts,
    known_topics,
    parts_text,
    places_of,
    topic_ids,
    wanted_text,
)
from coordinator.redis.replies import (
    NO_EXTENTS,
    NO_MEMBER,
    NO_PROVEN_EXTENTS,
    Acquired,
    Answer,
    Authorized,
    Caller,
    HandedOut,
    Moved,
    Proof,
    ProvenExtents,
    Sealed,
    Status,
)
from coordinator.redis.script_texts import flat, owned_of, owned_text, pairs
from coordinator.redis.verb import sound
from coordinator.values.ranges import WHOLE, offsets_of
from coordinator.values.subscription import OffsetByPartition, Topic, TopicPartition

if TYPE_CHECKING:
    from coordinator.redis.calls import ScriptCalls


@dataclass(frozen=True, slots=True)
class RedisPositions:
    """The calls about positions, and about the lane epochs that guard them."""

    calls: "ScriptCalls"

    def now_ms(self) -> int:
        """Redis TIME in ms."""
        return self.calls.now_ms()

    @sound
    def status(self) -> Status:
        """Reset epoch and topics of the group. Raises `Absent` if Redis holds nothing of it."""
        return self.calls.run(STATUS)

    @sound
    def create(
        self,
        nonce: str,
        topics: Mapping[str, Topic],
        positions: OffsetByPartition,
        *,
        grace_ms: int = 0,
        founding: str = "",
        joined: Collection[str] = (),
    ) -> Answer[int]:
        """Write first positions where there are none; how many. With a `nonce`, create the group if it is absent.

        Raises `Replaced` if the group has another `founding`, `Recovering` for a caller that names none: it proves
        nothing, and others prove their positions first.
        A topic with more partitions in Kafka than a member has seen has grown. The growth is recorded with its grace,
        whichever of its partitions the caller reads. New partitions of `joined` topics waited for each other: theirs
        may have had several steps.
        """
        placed = self.calls.ask(
            CREATE,
            Caller(founding=founding),
            nonce=nonce,
            grace_ms=str(grace_ms),
            counts={name: f"{topic.id} {topic.count}" for name, topic in topics.items()},
            joined=dict.fromkeys(joined, "1"),
            places=places_of(topics, positions),
            partitions=positions,
        )
        self.calls.list_group()
        return placed

    @sound
    def acquire(self, caller: Caller, wanted: Ranges, one: Collection[str] = ()) -> Answer[Acquired]:
        """Acquire the free or takeable parts of `wanted`. The answer is all owned ranges with their positions.

        Of the topics `one`, each wanted range has one lane epoch if the member owns all of it (rule: partition-order).

        Raises `Lost` if a wanted partition has no positions: `create` has written them at this nonce.
        """
        texts = [wanted_text(tp, hashes, one) for tp, hashes in wanted.items()]
        got = self.calls.ask(ACQUIRE, caller, wanted=texts, partitions=wanted)
        reply = got.value
        ownership, progress, whole = {}, {}, {}
        found = zip(wanted, reply["owned"], reply["segments"], reply["ics"], strict=True)
        for tp, mine, segments, ics in found:
            ownership[tp] = owned_of(mine)
            whole[tp] = Progress.parse(pairs(segments), pairs(ics))
            progress[tp] = Progress(
                tuple(segment for o in ownership[tp] for segment in whole[tp].within(o.hashes).segments)
            )
        ids = {topic: known.id for topic, known in known_topics(reply["topics"]).items()}
        return Answer(got.seen, Acquired(int(reply["reset"]), ids, ownership, progress, whole))

    @sound
    def hand_out(self, caller: Caller, ends: OffsetByPartition, most: int, size: int) -> Answer[HandedOut]:
        """Take the lowest free offsets below `ends`, at most `most`: those of a group without order (rule: hand-out).

        Partitions take turns; each gives at most `size` offsets in a turn. First the caller's own slices become free,
        and those of members whose lease has ended. With 0 as `most` it gets positions only. The same call, sent twice,
        gets the same slices.
        """
        texts = [*map(str, ends.values())]
        got = self.calls.ask(HAND_OUT, caller, most=str(most), size=str(size), ends=texts, partitions=ends)
        reply = got.value
        ids = {topic: known.id for topic, known in known_topics(reply["topics"]).items()}
        positions = {tp: int(text) for tp, text in zip(ends, reply["positions"], strict=True) if text}
        reach = {tp: int(text) for tp, text in zip(ends, reply["reach"], strict=True) if text}
        slices = {tp: offsets_of(text) for tp, text in zip(ends, reply["slices"], strict=True) if text}
        handed = HandedOut(int(reply["reset"]), ids, positions, reach, reply["epoch"], slices)
        return Answer(got.seen, replace(handed, policy=policy_of(pairs(reply["policy"])), now_ms=int(reply["now"])))

    @sound
    def authorize(
        self, caller: Caller, end: StreamOffset, *, replayed: bool = False, as_planned: bool = False
    ) -> Answer[Authorized]:
        """The parts of the lanes of `end` that the member still owns (rule: authorize-every-batch).

        `replayed`: another process planned it, and its tasks may end slices early. `as_planned`: seal it at its planned
        ends, unless an earlier life has authorised it.
        """
        partitions = tuple(end.lanes)
        asked = {tp: asked_of(end, lanes) for tp, lanes in end.rows.items()}
        got = self.calls.ask(
            AUTHORIZE,
            caller,
            reset=str(end.reset),
            digest=end.digest,
            replayed=replayed,
            as_planned=as_planned,
            ids=topic_ids(end, partitions),
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
        """Add true ends of a batch to its seal (rule: seal-before-sink); False if it is not the last batch.

        `failing`: the records at which hashes end. Those of hashes that the member no longer owns are not stored.
        """
        partitions = sorted({record.tp for record in failing})
        return self.calls.ask(
            SEAL,
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
        """The true ends of the batch with this digest, which an earlier life has sealed."""
        fields = self.calls.hash(self.calls.keys.member(member))
        authorized = fields.get("authorized", "unknown")
        if authorized == digest:
            return Sealed(parsed_ends(fields["seal"]) if "seal" in fields else None)
        return Sealed(unread=authorized != "unknown")

    @sound
    def commit(self, caller: Caller, offset: StreamOffset, facts: Facts, digest: str = "") -> Answer[Moved]:
        """Move positions through the fence. With a digest, only if this member authorised that batch."""
        got = self.calls.ask(
            COMMIT,
            caller,
            reset=str(offset.reset),
            digest=digest,
            ids=topic_ids(offset, facts),
            facts=fact_texts(facts),
            partitions=facts,
        )
        reply = got.value
        refused = {tp: facts_of(text) for tp, text in zip(facts, reply["refused"].split("\n"), strict=False) if text}
        self.calls.fence("a commit", caller, {tp: union(f.hashes for f in of_tp) for tp, of_tp in refused.items()})
        return Answer(got.seen, Moved(refused, exactly=bool(reply["exactly"]), unread=bool(reply["unread"])))

    def claim(self, offset: StreamOffset, facts: Facts) -> None:
        """Assert positions without the fence (rule: assert-beginnings).

        Facts of an older reset epoch, of another topic id or of an older leader epoch than the stored one are ignored.
        """
        fewer = {tp: coalesced(of_tp) for tp, of_tp in facts.items()}
        self.calls.run(
            CLAIM,
            Caller(founding=offset.founding),
            reset=str(offset.reset),
            ids=topic_ids(offset, facts),
            facts=fact_texts(fewer),
            leader_epochs=[str(offset.leader_epochs.get(tp, "-")) for tp in facts],
            partitions=facts,
        )

    def recreate(
        self,
        topics: Mapping[str, Topic],
        positions: OffsetByPartition,
        extents: Mapping[TopicPartition, str] = NO_EXTENTS,
    ) -> None:
        """Write new positions for partitions whose log was replaced or cut. Every lane epoch on them is void.

        `extents` are written too: `Extent` texts of logs that were cut. Positions of the same topic never rise.
        """
        places, texts = places_of(topics, positions), [extents.get(tp, "") for tp in positions]
        self.calls.run(RECREATE, places=places, extents=texts, partitions=positions)

    def recover(  # noqa: PLR0913, PLR0917 - a proof each
        self,
        caller: Caller,
        nonce: str,
        why: str,
        reset: int,
        topics: Mapping[str, Topic],
        proven: Mapping[TopicPartition, Proof],
        growths: Sequence[Growth] = (),
        policy: Policy | None = None,
        extents: ProvenExtents = NO_PROVEN_EXTENTS,
    ) -> bool:
        """Recover from a loss of state, at `nonce` (rule: recover-by-proof). Does nothing if that was done already.

        True: nothing was recovered yet, since others may prove the rest of a partition (rule: proofs-add-up).

        `proven` are positions of the reset epoch `reset`. If it is newer than the one in Redis, positions in Redis
        prove nothing. `growths` are recorded if Redis has none of that name. The
        stricter of `policy` and of the policies in Redis holds; without both, policies are unknown. `extents` are
        stored where Redis has none, or no position above the proof of its hashes. Raises
        `StateLostError` if a partition has no position, in Redis or in `proven`.
        """
        whole = {tp: position if isinstance(position, int) else None for tp, position in proven.items()}
        reply = self.calls.run(
            RECOVER,
            caller,
            nonce=nonce,
            why=why,
            reset=str(reset),
            growths=growth_texts(growths),
            policies=None if policy is None else flat(policy.fields),
            parts={f"{tp.topic} {tp.partition}": parts_text(of) for tp, of in proven.items() if isinstance(of, tuple)},
            places=places_of(topics, whole),
            extents=[
                {"text": text, "proven": parts_text(of)} for text, of in (extents.get(tp, ("", ())) for tp in proven)
            ],
            partitions=proven,
        )
        return "waits" in reply

    @sound
    def reset_epoch(self) -> int:
        """The reset epoch in Redis, also before a recovery; 0 if Redis holds nothing."""
        return int(self.calls.hash(self.calls.keys.meta).get("reset_epoch", "0"))

    @sound
    def stable(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """The stable offset of every partition of `topics`."""
        found = zip(topics, self.calls.hashes(map(self.calls.keys.stable, topics)), strict=True)
        return {tp: o for topic, offsets in found for tp, o in offsets_at(topic, offsets).items()}

    @sound
    def extents(self, topics: Sequence[str]) -> dict[TopicPartition, str]:
        """How far the logs of `topics` reached under which leader epoch, as `Extent` texts."""
        found = zip(topics, self.calls.hashes(map(self.calls.keys.epoch, topics)), strict=True)
        return {TopicPartition(t, int(p)): text for t, texts in found for p, text in texts.items()}

    def report_ends(
        self,
        ends: OffsetByPartition,
        extents: Mapping[TopicPartition, str],
        at_ms: int = 0,
        caller: Caller = NO_MEMBER,
    ) -> None:
        """Write the log ends, for people and for commits, and `extents`, which are `Extent` texts.

        `at_ms`: Redis TIME, not after the caller's look at the topics (rule: growth-order); 0: now.
        """
        k, texts = self.calls.keys, defaultdict[str, dict[str, str]](dict)
        for tp, end in ends.items():
            texts[k.end(tp.topic)][str(tp.partition)] = str(end)
        for tp, text in extents.items():
            texts[k.epoch(tp.topic)][str(tp.partition)] = text
        of_keys = [flat(of_key) for of_key in texts.values()]
        self.calls.run(SHOW, caller, texts=of_keys, at_ms=str(at_ms), hashes=[*texts])

    @sound
    def positions(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Segments]:
        """The positions of all hashes of those `partitions` that have positions, of every owner."""
        found = zip(partitions, self.calls.hashes(map(self.calls.keys.segments, partitions)), strict=True)
        segments = {tp: Progress.parse_whole(tp, text).segments for tp, text in found if text}
        return {tp: tuple((s.hashes, s.position) for s in of_tp) for tp, of_tp in segments.items()}

    @sound
    def progress(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Progress]:
        """The positions and individual commits of all hashes of those `partitions` that have positions."""
        k = self.calls.keys
        found = self.calls.hashes(key for tp in partitions for key in (k.ics(tp), k.segments(tp)))
        pairs_of = zip(partitions, found[::2], found[1::2], strict=True)
        return {tp: Progress.parse_whole(tp, positions, ics) for tp, ics, positions in pairs_of if positions}

    @sound
    def growths(self) -> tuple[Growth, ...]:
        """Every recorded growth; none if there is no group."""
        return parsed(self.calls.hash(self.calls.keys.growth))

    def grow(self, growths: Sequence[Growth]) -> None:
        """Record growths that are missing, and ends of growths that have none."""
        self.calls.run(GROW, growths=growth_texts(growths))
