"""The members of a group in Redis: join, lease, assignment, hand-over, leave. `ports.Members` describes each verb."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from coordinator.assignment.assignment_text import Ranges, ranges_of, subscriber
from coordinator.assignment.assignment_text import ranges_text as assignment_text
from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.assignment.policies import Policy, policy_of
from coordinator.errors import StateFormatError
from coordinator.progress.growth import parsed
from coordinator.redis.calls import ScriptCalls, answer, flat, pairs, ranges_text
from coordinator.redis.errors import sound
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.policies import RedisPolicies
from coordinator.redis.ports import NO_RANGES, Offsets
from coordinator.redis.replies import LATER, Admitted, Answer, Caller, Joining, Leaving, Look
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class RedisMembers:
    """The calls of a member about its group."""

    calls: ScriptCalls

    @sound
    def join(self, caller: Caller, joined_nonce: str, joining: Joining) -> Answer[Admitted]:
        k = self.calls.keys
        keys = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving, k.applications, k.targets]
        keys += [k.working, k.strikes, k.assignment, k.standbys]
        targets = "".join(f"{tp.topic} {tp.partition} {offset};" for tp, offset in joining.targets.items())
        pinned = assignment_text(joining.pinned) if joining.pinned else ""
        policies = joining.filter, joining.ordering, joining.next_nonce, joining.role, joining.joined_at
        args = joined_nonce, joining.alone_as, targets, pinned, *policies, *flat(joining.shown)
        reply = self.calls.run("join", keys, *args, caller=caller)
        return answer(reply, Admitted(_targets(reply["targets"]), reply["joined_at"]))

    @sound
    def heartbeat(self, caller: Caller, *, reading: bool = False) -> Answer[None]:
        k = self.calls.keys
        own = (k.meta, k.leases, k.member(caller.member), k.batches)
        keys = [*own, *(x for x in k.all(self._placed()) if x not in own)]
        return answer(self.calls.run("heartbeat", keys, "1" if reading else "", caller=caller), None)

    @sound
    def forget(self, caller: Caller, topics: Collection[str]) -> Answer[tuple[TopicPartition, ...]]:
        k, placed = self.calls.keys, [tp for tp in self._placed() if tp.topic in topics]
        of_topics = {topic: k.of_topic(topic, [tp for tp in placed if tp.topic == topic]) for topic in sorted(topics)}
        with self.calls.client.reading() as redis:
            members = [name for name, _ in redis.zrange(k.leases, 0, -1, withscores=True)]
        keys = [k.meta, k.leases, k.member(caller.member), k.topics, k.events, k.strikes, k.growth, k.failing]
        keys += [*map(k.member, members), *(name for names in of_topics.values() for name in names)]
        texts = (f"{topic} {len(names)}" for topic, names in of_topics.items())
        reply = self.calls.run("forget", keys, " ".join(members), *texts, caller=caller)
        return answer(reply, tuple(tp for tp in placed if tp.topic in reply["forgotten"]))

    @sound
    def look(self, caller: Caller) -> Answer[Look]:
        k = self.calls.keys
        keys = [k.meta, k.leases, k.member(caller.member), k.batches, k.leaving, k.topics, k.policy, k.assignment]
        reply = self.calls.run("look", [*keys, k.targets, k.growth, k.standbys], caller=caller)
        look = Look(
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
        return answer(reply, look)

    @sound
    def subscribers(self, members: Sequence[str]) -> tuple[Subscriber, ...]:
        found = self.calls.hashes(map(self.calls.keys.member, members))
        return tuple(subscriber(name, fields) for name, fields in zip(members, found, strict=True) if fields)

    @sound
    def assignment(self) -> Assignment:
        return {member: ranges_of(text) for member, text in self.calls.hash(self.calls.keys.assignment).items()}

    @sound
    def partition_counts(self) -> dict[str, int]:
        topics = self.calls.hash(self.calls.keys.topics)
        return {topic: KnownTopic.parse(topic, text).partitions for topic, text in topics.items()}

    def policy(self) -> Policy:
        return RedisPolicies(self.calls).policy()

    @sound
    def copy_policies(self, version: str, policy: Policy) -> None:
        RedisPolicies(self.calls).copy(version, policy)

    def assign(
        self, caller: Caller, occasion: str, protocol: str, assignment: Assignment, failure: str = ""
    ) -> Answer[int]:
        k = self.calls.keys
        fixed = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving]
        entries = flat({member: assignment_text(ranges) for member, ranges in assignment.items()})
        keys, made_by = [*fixed, k.topics, k.policy, k.assignment, k.standbys], (occasion, protocol, failure)
        reply = self.calls.run("assign", keys, *made_by, *entries, caller=caller)
        return answer(reply, int(reply["generation"]))

    def release(self, caller: Caller, ranges: Ranges) -> Answer[int]:
        k = self.calls.keys
        fixed = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving, k.assignment]
        keys = [*fixed, *map(k.owners, ranges)]
        reply = self.calls.run("release", keys, *map(ranges_text, ranges.values()), caller=caller)
        return answer(reply, int(reply["released"]))

    def leave(self, caller: Caller, unconfirmed: Ranges, leaving: Leaving = LATER) -> int:
        k = self.calls.keys
        fixed = [k.meta, k.leases, k.member(caller.member), k.events, k.batches, k.leaving, k.targets, k.standbys]
        keys = [*fixed, k.working, *map(k.owners, unconfirmed)]
        wait = "" if leaving.within_ms is None else str(leaving.within_ms)
        texts = map(ranges_text, unconfirmed.values())
        return int(self.calls.run("leave", keys, wait, leaving.writers, *texts, caller=caller)["kept"])

    def finish(self, caller: Caller, targets: Offsets, pinned: Ranges = NO_RANGES) -> Answer[bool]:
        k = self.calls.keys
        progress = (x for tp in targets for x in (k.segments(tp), k.ics(tp)))
        keys = [k.meta, k.leases, k.member(caller.member), k.leaving, k.strikes, k.failing, *progress]
        named = {tp: f" {ranges_text(hashes)}" for tp, hashes in pinned.items()}
        texts = (f"{tp.topic} {tp.partition} {target}{named.get(tp, '')}" for tp, target in targets.items())
        reply = self.calls.run("finish", keys, *texts, caller=caller)
        return answer(reply, bool(reply["finished"]))

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
        found = ((TopicPartition(t, int(p)), int(o)) for t, p, o in (x.split() for x in text.split(";") if x))
        return dict(sorted(found))
    except ValueError:
        raise StateFormatError(
            f"the targets {text[:80]!r} of AvailableNow are not topics, partitions and offsets",
            "delete the key coop:v1:{group}:targets, and restart the queries with AvailableNow",
        ) from None
