"""The members of a group in Redis: join, lease, assignment, hand-over, leave."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.assignment.assignment_text import Ranges, ranges_of, subscriber
from coordinator.assignment.assignment_text import ranges_text as assignment_text
from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.assignment.policies import policy_of
from coordinator.errors import StateFormatError
from coordinator.progress.growth import parsed
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.replies import LATER, NO_RANGES, Admitted, Answer, Caller, Joining, Leaving, Look
from coordinator.redis.script_texts import flat, pairs, ranges_text
from coordinator.redis.verb import Reply, nothing, number, sound, truth, verb
from coordinator.values.subscription import OffsetByPartition, TopicPartition

if TYPE_CHECKING:
    from coordinator.redis.calls import ScriptCalls


def _look(reply: Reply) -> Look:
    return Look(
        generation=int(reply["generation"]),
        mine=ranges_of(reply["mine"]),
        occasion=reply["occasion"],
        members=tuple(reply["members"]),
        targets=_targets(reply["targets"]),
        protocol=reply["protocol"],
        growths=parsed(pairs(reply["growths"])),
        now_ms=int(reply["now"]),
        policy=policy_of(pairs(reply["policy"])),
        role=reply["role"],
    )


_SEEN = "partitions "  # and the topic: the field of `meta` of `partitions_seen` in prelude.lua

_JOIN = verb(
    "join",
    "meta leases member events batches leaving applications targets working strikes assignment standbys",
    "joined_nonce alone_as targets pinned filter ordering next_nonce alone returns role joined_at shown",
    lambda reply: Admitted(_targets(reply["targets"]), reply["joined_at"]),
)
_HEARTBEAT = verb("heartbeat", "meta leases member batches", "reading", nothing, every="")
_FORGET = verb(
    "forget",
    "meta leases member topics events strikes growth failing",
    "names topics placed",
    lambda reply: frozenset(reply["forgotten"]),
    members="member",
    of_topics="stable end epoch",
    partitions="segments owners ics handed reserved",
)
_LOOK = verb("look", "meta leases member batches leaving topics policy assignment targets growth standbys", "", _look)
_ASSIGN = verb(
    "assign",
    "meta leases member events batches leaving topics policy assignment standbys",
    "occasion protocol failure assignment",
    number("generation"),
)
_FINISH = verb(
    "finish",
    "meta leases member leaving targets strikes failing",
    "targets",
    truth("finished"),
    partitions="segments ics",
)
_RELEASE = verb(
    "release",
    "meta leases member events batches leaving assignment",
    "ranges",
    number("released"),
    partitions="owners",
)
_LEAVE = verb(
    "leave",
    "meta leases member events batches leaving targets standbys working strikes",
    "within_ms writers ranges",
    number("kept"),
    partitions="owners",
)


@dataclass(frozen=True, slots=True)
class RedisMembers:
    """The calls of a member about its group."""

    calls: "ScriptCalls"

    @sound
    def join(self, caller: Caller, joined_nonce: str, joining: Joining) -> Answer[Admitted]:
        """Join with this incarnation. The answer has the targets, raised to those of the other members.

        Raises `Busy` while another member of the same application, or of the same query, lives. Raises `Held` while
        another member works that reads pinned ranges of this one, or that is assigned ranges where this one is pinned.
        Raises `OtherFilter` or `OtherOrdering` while any member of a group with another filter or ordering lives, and
        `Alone` while a working member lives that reads the group alone, or beside which this one would. Raises `Missed`
        if it reads alone, and another application has read since.
        """
        return self.calls.ask(
            _JOIN,
            caller,
            joined_nonce=joined_nonce,
            alone_as=joining.alone_as,
            targets="".join(f"{tp.topic} {tp.partition} {offset};" for tp, offset in joining.targets.items()),
            pinned=assignment_text(joining.pinned) if joining.pinned else "",
            filter=joining.filter,
            ordering=joining.ordering,
            next_nonce=joining.next_nonce,
            alone=joining.alone,
            returns=joining.returns,
            role=joining.role,
            joined_at=joining.joined_at,
            shown=flat(joining.shown),
        )

    @sound
    def heartbeat(self, caller: Caller, *, reading: bool = False) -> Answer[None]:
        """Renew the lease. Push the expiry of all keys of the group, including topics of other members.

        `reading`: a task of an authorised batch may read. The clock of the batch runs just as long (rule: batch-clock).
        """
        return self.calls.ask(_HEARTBEAT, caller, reading=reading, every=self.calls.keys.all(self._placed()))

    @sound
    def forget(self, caller: Caller, topics: Collection[str]) -> Answer[tuple[TopicPartition, ...]]:
        """Delete those of `topics` that no live member has subscribed to for `retention_ms`: their partitions.

        A topic is marked at the first call that finds no subscriber: its time runs from then on (rule: topic-expiry).
        """
        placed = [tp for tp in self._placed() if tp.topic in topics]
        with self.calls.client.reading() as redis:
            live = [name for name, _ in redis.zrange(self.calls.keys.leases, 0, -1, withscores=True)]
        forgotten = self.calls.ask(
            _FORGET,
            caller,
            names=live,
            topics=sorted(topics),
            placed=[tp.topic for tp in placed],
            members=live,
            of_topics=sorted(topics),
            partitions=placed,
        )
        return Answer(forgotten.seen, tuple(tp for tp in placed if tp.topic in forgotten.value))

    @sound
    def look(self, caller: Caller) -> Answer[Look]:
        """The ranges that the member should own, and whether an assignment is due."""
        return self.calls.ask(_LOOK, caller)

    @sound
    def subscribers(self, members: Sequence[str]) -> tuple[Subscriber, ...]:
        """The fields of these members that an assignor may read. Members that have left are missing."""
        found = self.calls.hashes(map(self.calls.keys.member, members))
        return tuple(subscriber(name, fields) for name, fields in zip(members, found, strict=True) if fields)

    @sound
    def assignment(self) -> Assignment:
        """The assignment in force."""
        return {member: ranges_of(text) for member, text in self.calls.hash(self.calls.keys.assignment).items()}

    @sound
    def partition_counts(self) -> dict[str, int]:
        """The group's topics with their partition counts."""
        topics = self.calls.hash(self.calls.keys.topics)
        return {topic: KnownTopic.parse(topic, text).partitions for topic, text in topics.items()}

    @sound
    def partitions_seen(self) -> dict[str, int]:
        """The group's topics with their partition counts, and those of which no leader has answered yet."""
        meta = self.calls.hash(self.calls.keys.meta)
        seen = {field[len(_SEEN) :]: text for field, text in meta.items() if field.startswith(_SEEN)}
        unplaced = {topic: KnownTopic.parse(topic, text).partitions for topic, text in seen.items()}
        return unplaced | self.partition_counts()

    def assign(
        self, caller: Caller, occasion: str, protocol: str, assignment: Assignment, failure: str = ""
    ) -> Answer[int]:
        """Record an assignment. The answer is its generation, or 0 if its occasion has passed.

        `failure` is the error of this protocol's assignor, if another one made the assignment.
        """
        entries = flat({member: assignment_text(ranges) for member, ranges in assignment.items()})
        return self.calls.ask(
            _ASSIGN, caller, occasion=occasion, protocol=protocol, failure=failure, assignment=entries
        )

    def release(self, caller: Caller, ranges: Ranges) -> Answer[int]:
        """Release the parts of `ranges` that are assigned to other working members. The answer is their number.

        A pinned member releases all of them.
        """
        return self.calls.ask(_RELEASE, caller, ranges=[*map(ranges_text, ranges.values())], partitions=ranges)

    def leave(self, caller: Caller, unconfirmed: Ranges, leaving: Leaving = LATER) -> int:
        """Free every range without an unconfirmed slice. The answer is the number of ranges kept.

        `leaving` says how long others wait for these (rule: leave-keeps-unconfirmed).
        """
        return self.calls.run(
            _LEAVE,
            caller,
            within_ms=None if leaving.within_ms is None else str(leaving.within_ms),
            writers=leaving.writers,
            ranges=[*map(ranges_text, unconfirmed.values())],
            partitions=unconfirmed,
        )

    def finish(
        self,
        caller: Caller,
        targets: OffsetByPartition,
        pinned: Ranges = NO_RANGES,
        in_order: Collection[str] = frozenset(),
    ) -> Answer[bool]:
        """AvailableNow: whether every hash of every partition is at its target, or parked at its position.

        Of the partitions in `pinned`, only these hashes count. In the topics `in_order`, no hash is read beyond what is
        parked.
        """
        named = {tp: {"hashes": ranges_text(hashes)} for tp, hashes in pinned.items()}
        of_partitions = [
            {"name": f"{tp.topic} {tp.partition}", "target": str(target)}
            | named.get(tp, {})
            | ({"ordered": "true"} if tp.topic in in_order else {})
            for tp, target in targets.items()
        ]
        return self.calls.ask(_FINISH, caller, targets=of_partitions, partitions=targets)

    def _placed(self) -> list[TopicPartition]:
        """The partitions of all topics that have a stable offset, and so keys of their own."""
        k = self.calls.keys
        with self.calls.client.reading() as redis:
            topics, pipeline = list(redis.hgetall(k.topics)), redis.pipeline(transaction=False)
            for topic in topics:
                pipeline.hgetall(k.stable(topic))
            stable = zip(topics, pipeline.execute(), strict=True)
        return [TopicPartition(topic, int(p)) for topic, offsets in stable for p in offsets]


def _targets(text: str) -> dict[TopicPartition, int]:
    """The targets of "topic partition offset;...". The highest counts if a partition occurs twice."""
    try:
        found = (
            (TopicPartition(t, int(p)), int(o)) for t, p, o in (entry.split() for entry in text.split(";") if entry)
        )
        return dict(sorted(found))
    except ValueError:
        raise StateFormatError(
            f"the targets {text[:80]!r} of AvailableNow are not topics, partitions and offsets",
            "delete the key coop:v1:{group}:targets, and restart the queries with AvailableNow",
        ) from None
