"""The verbs of membership: join, lease, assignment, hand-over, leave. One method a verb, one script a method.

Every method may raise a `verdicts.Verdict`. An error of Redis itself is a `StoreError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.assignment.assignment_text import Ranges, ranges_of, ranges_text, subscriber
from coordinator.assignors.assignor import Assignment, Subscriber
from coordinator.errors import StateFormatError
from coordinator.group_state import KnownTopic
from coordinator.progress.growth import Growth, parsed
from coordinator.ranges import HashRange
from coordinator.redis.calls import NOBODY, Answer, Caller, ScriptCalls, answer, pairs
from coordinator.redis.errors import sound
from coordinator.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Joining:
    """The fields that a member reports when it joins."""

    fields: Mapping[str, str]  # for people, and for assignors
    application: str = ""  # may have one live member; empty: any number
    targets: Mapping[TopicPartition, int] = field(default_factory=dict)  # targets of its AvailableNow

    @property
    def alone_as(self) -> str:
        """The names that may have one live member (rule: one-member-per-application), a line each."""
        return "\n".join(filter(None, (self.application, self.fields.get("query"))))

    @property
    def shown(self) -> dict[str, str]:
        """The fields, with the application: by name, or by host and driver if it may have several members."""
        host_and_driver = "/".join(self.fields[name] for name in ("host", "driver_pid") if name in self.fields)
        application = self.application or host_and_driver
        return ({"application": application} if application else {}) | dict(self.fields)


@dataclass(frozen=True, slots=True)
class Look:
    """The assignment as one member sees it."""

    generation: int
    mine: Ranges
    occasion: str  # of the assignment that this member should compute; empty if there is none
    members: tuple[str, ...]  # the members to assign ranges to
    targets: Mapping[TopicPartition, int] = field(default_factory=dict)  # of AvailableNow: the highest of all members
    protocol: str = ""  # of the assignment in force; empty if another assignment is due
    growths: tuple[Growth, ...] = ()  # of all topics of the group
    now_ms: int = field(default=0, compare=False)  # of Redis TIME


class MembershipVerbs(ScriptCalls):
    """The calls of a member about its group."""

    @sound
    def join(self, caller: Caller, joined_nonce: str, joining: Joining) -> Answer[dict[TopicPartition, int]]:
        """Join with this incarnation. The answer is the targets, raised to those of the other members.

        Raises `Busy` while another member of the same application, or of the same query, lives.
        """
        k = self._keys
        keys = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving, k.applications, k.targets]
        keys += [k.working, k.strikes]
        flat = [x for field in joining.shown.items() for x in field]
        targets = "".join(f"{tp.topic} {tp.partition} {offset};" for tp, offset in joining.targets.items())
        reply = self._run("join", caller, keys, joined_nonce, joining.alone_as, targets, *flat)
        return answer(reply, _targets(reply[3]))

    @sound
    def heartbeat(self, caller: Caller) -> Answer[None]:
        """Renew the lease. Push the expiry of all keys of the group, including topics of other members."""
        k = self._keys
        partitions = self._placed()
        own = (k.meta, k.leases, k.member(caller.member))
        keys = [*own, *(x for x in k.all((), partitions) if x not in own)]
        return answer(self._run("heartbeat", caller, keys, str(self._retention_ms)), None)

    @sound
    def look(self, caller: Caller) -> Answer[Look]:
        """The ranges that the member should own, and whether an assignment is due."""
        k = self._keys
        keys = [k.meta, k.leases, k.member(caller.member), k.batches, k.leaving, k.topics, k.policy, k.assignment]
        reply = self._run("look", caller, [*keys, k.targets, k.growth])
        growths = parsed(pairs(reply[9]))
        look = Look(
            int(reply[3]),
            ranges_of(reply[5]),
            reply[6],
            tuple(reply[7]),
            _targets(reply[8]),
            protocol=reply[4],
            growths=growths,
            now_ms=int(reply[2]) - self._session_ms,
        )
        return answer(reply, look)

    @sound
    def subscribers(self, members: Iterable[str]) -> tuple[Subscriber, ...]:
        """The fields of these members that an assignor may read. Members that have left are missing."""
        names = tuple(members)
        with self._client.reading() as redis:
            pipeline = redis.pipeline(transaction=False)
            for name in names:
                pipeline.hgetall(self._keys.member(name))
            found = pipeline.execute()
        return tuple(subscriber(name, fields) for name, fields in zip(names, found, strict=True) if fields)

    @sound
    def assignment(self) -> Assignment:
        """The assignment in force."""
        with self._client.reading() as redis:
            return {member: ranges_of(text) for member, text in redis.hgetall(self._keys.assignment).items()}

    @sound
    def heirs(self, ranges: Ranges) -> dict[TopicPartition, tuple[tuple[HashRange, str], ...]]:
        """The parts of `ranges` that are assigned to other members. Partitions without such parts are missing."""
        texts = (f"{tp.topic} {tp.partition} " + "".join(f"{h} ;" for h in hashes) for tp, hashes in ranges.items())
        reply = self._run("heirs", NOBODY, [self._keys.meta, self._keys.assignment], *texts)
        found = zip(ranges, (tuple(_heir(x) for x in text.split(";") if x) for text in reply[2]), strict=True)
        return {tp: heirs for tp, heirs in found if heirs}

    @sound
    def partition_counts(self) -> dict[str, int]:
        """The group's topics with their partition counts."""
        with self._client.reading() as redis:
            topics = redis.hgetall(self._keys.topics)
        return {topic: KnownTopic.parse(topic, text).partitions for topic, text in topics.items()}

    def _placed(self) -> list[TopicPartition]:
        """The partitions of all topics that have a stable offset, and so keys of their own."""
        k = self._keys
        with self._client.reading() as redis:
            stable = {topic: redis.hgetall(k.stable(topic)) for topic in redis.hgetall(k.topics)}
        return [TopicPartition(topic, int(p)) for topic, offsets in stable.items() for p in offsets]

    def assign(
        self, caller: Caller, occasion: str, protocol: str, assignment: Assignment, failure: str = ""
    ) -> Answer[int]:
        """Record an assignment. The answer is its generation, or 0 if its occasion has passed.

        `failure` is the error of this protocol's assignor, if another one made the assignment.
        """
        k = self._keys
        fixed = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving]
        entries = (x for member, ranges in assignment.items() for x in (member, ranges_text(ranges)))
        made_by = (occasion, protocol, failure)
        reply = self._run("assign", caller, [*fixed, k.topics, k.policy, k.assignment], *made_by, *entries)
        return answer(reply, int(reply[2]))

    def release(self, caller: Caller, ranges: Mapping[TopicPartition, Sequence[tuple[HashRange, str]]]) -> Answer[int]:
        """Release ranges, each to its assigned member. The answer is the number of released ranges."""
        k = self._keys
        keys = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving, *map(k.owners, ranges)]
        texts = ("".join(f"{hashes} {member};" for hashes, member in pieces) for pieces in ranges.values())
        reply = self._run("release", caller, keys, *texts)
        return answer(reply, int(reply[2]))

    def leave(self, caller: Caller, unconfirmed: Mapping[TopicPartition, Sequence[HashRange]]) -> int:
        """Free every range without an unconfirmed slice. The answer is the number of ranges kept."""
        k = self._keys
        fixed = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving, k.targets]
        keys = [*fixed, *map(k.owners, unconfirmed)]
        ranges = ("".join(f"{h} ;" for h in hashes) for hashes in unconfirmed.values())
        return int(self._run("leave", caller, keys, *ranges)[2])

    def finish(self, caller: Caller, targets: Mapping[TopicPartition, int]) -> Answer[bool]:
        """AvailableNow: whether every hash of every partition is at its target, or parked at its position."""
        k = self._keys
        progress = (x for tp in targets for x in (k.segments(tp), k.ics(tp)))
        keys = [k.meta, k.leases, k.member(caller.member), k.leaving, k.strikes, *progress]
        texts = (f"{tp.topic} {tp.partition} {target}" for tp, target in targets.items())
        reply = self._run("finish", caller, keys, *texts)
        return answer(reply, bool(reply[2]))


def _heir(text: str) -> tuple[HashRange, str]:
    hashes, member = text.split()
    return HashRange.parse(hashes), member


def _targets(text: str) -> dict[TopicPartition, int]:
    """The targets of "topic partition offset;...". The highest counts if a partition occurs twice."""
    try:
        found = ((TopicPartition(t, int(p)), int(o)) for t, p, o in (x.split() for x in text.split(";") if x))
        return dict(sorted(found))
    except ValueError:
        raise StateFormatError(
            f"the targets {text[:80]!r} of AvailableNow are not topics, partitions and offsets",
            "delete the key coop:v1:{group}:targets, and restart the queries with AvailableNow",
        ) from None
