"""Reads what Redis holds of groups, for the CLI and for tests; writes nothing, joins nothing."""

from collections.abc import Mapping

from coordinator.assignment.assignment_text import ranges_of
from coordinator.errors import StateFormatError, UnknownGroupError
from coordinator.group_state import SCHEMA, GroupState, KnownTopic, other_schema
from coordinator.progress.growth import parsed
from coordinator.progress.segments import Progress, Rectangle
from coordinator.ranges import HashRange, OffsetRange
from coordinator.redis.client import RedisClient
from coordinator.redis.errors import sound
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.reports.lane_lines import lines_of
from coordinator.subscription import TopicPartition

_NUMBERS = ("commit_seq", "reset_epoch", "epochs", "joins", "generation", "recovering_until", "computing_until")
_DIGITS = 20  # a number of ours has fewer; see damage.lua


def list_groups(client: RedisClient) -> tuple[str, ...]:
    """The names of the groups that Redis holds, sorted; those that have expired are left out."""
    with client.reading() as redis:
        return tuple(g for g in sorted(redis.smembers(GROUPS)) if redis.exists(GroupKeys(g).meta))


@sound
def read_group(client: RedisClient, group: str) -> GroupState:
    """The state of a group; `UnknownGroupError` if Redis holds none, `StateFormatError` if it is damaged."""
    keys = GroupKeys(group)
    with client.reading() as redis:
        meta = _meta(group, redis.hgetall(keys.meta))
        seconds, microseconds = redis.time()
        leases = {member: int(end) for member, end in redis.zrange(keys.leases, 0, -1, withscores=True)}
        members = {member: _member(redis.hgetall(keys.member(member))) for member in leases}
        topics = {topic: _topic(topic, text) for topic, text in redis.hgetall(keys.topics).items()}
        stable = {tp: o for topic in topics for tp, o in _offsets(topic, redis.hgetall(keys.stable(topic))).items()}
        ends = {tp: o for topic in topics for tp, o in _offsets(topic, redis.hgetall(keys.end(topic))).items()}
        hung = {member: int(at) for member, at in redis.zrange(keys.batches, 0, -1, withscores=True)}
        leaving = redis.smembers(keys.leaving)
        assignment = {member: ranges_of(text) for member, text in redis.hgetall(keys.assignment).items()}
        growths = parsed(redis.hgetall(keys.growth))
        policy = redis.hgetall(keys.policy)
        lanes = {member: lines_of(text) for member, text in redis.hgetall(keys.lanes).items()}
        pipeline = redis.pipeline(transaction=False)
        for tp in stable:
            pipeline.hgetall(keys.segments(tp)).hgetall(keys.owners(tp)).hgetall(keys.ics(tp))
        found = pipeline.execute()
    return GroupState(
        now_ms=seconds * 1000 + microseconds // 1000,
        meta=meta,
        leases_ms=leases,
        members=members,
        topics=topics,
        segments={tp: _segments(tp, text) for tp, text in zip(stable, found[::3], strict=True)},
        owners={tp: _owners(text) for tp, text in zip(stable, found[1::3], strict=True)},
        stable=stable,
        ends=ends,
        ics={tp: _ics(text) for tp, text in zip(stable, found[2::3], strict=True) if text},
        hung_ms=hung,
        leaving=frozenset(leaving),
        assignment=assignment,
        growths=growths,
        policy=policy,
        lanes=lanes,
    )


def _meta(group: str, meta: Mapping[str, str]) -> Mapping[str, str]:
    if not meta:
        raise UnknownGroupError(f"Redis knows no group {group!r}", "look at the list of groups: coop-kafka groups list")
    if (schema := meta.get("schema", "")) != SCHEMA:
        raise other_schema(schema)
    for name in _NUMBERS:
        if not (meta.get(name, "0").isdecimal() and len(meta.get(name, "0")) < _DIGITS):
            raise StateFormatError(f"{name} of group {group!r} is {meta[name]!r}, not a number")
    return meta


def _member(fields: Mapping[str, str]) -> Mapping[str, str]:
    percent = fields.get("slow_percent", "0")
    if not (percent.isdecimal() and len(percent) < _DIGITS):
        raise StateFormatError(f"a member has {percent[:_DIGITS]!r} percent of its slots taken")
    return fields


def _topic(name: str, text: str) -> KnownTopic:
    identity, _, count = text.partition(" ")
    if not (identity and count.isdecimal() and int(count)):
        raise StateFormatError(f"topic {name!r} is recorded as {text!r}, not <topic id> <partition count>")
    return KnownTopic(identity, int(count))


def _offsets(topic: str, text: Mapping[str, str]) -> dict[TopicPartition, int]:
    for partition, offset in text.items():
        if not (partition.isdecimal() and offset.isdecimal()):
            raise StateFormatError(
                f"partition {partition!r} of topic {topic!r} is recorded at {offset!r}, not an offset"
            )
    return {TopicPartition(topic, int(p)): int(o) for p, o in sorted(text.items(), key=lambda item: int(item[0]))}


def _segments(tp: TopicPartition, text: Mapping[str, str]) -> tuple[tuple[HashRange, int], ...]:
    return tuple((s.hashes, s.position) for s in Progress.parse_whole(tp, text).segments)


def _owners(text: Mapping[str, str]) -> tuple[tuple[HashRange, str, str], ...]:
    owners = []
    for hashes, value in text.items():
        epoch, _, member = value.partition(" ")
        if not (epoch and member):
            raise StateFormatError(f"{hashes} is recorded as owned by {value!r}, not <lane epoch> <member>")
        owners.append((HashRange.parse(hashes), epoch, member))
    return tuple(sorted(owners))


def _ics(text: Mapping[str, str]) -> tuple[Rectangle, ...]:
    return tuple(
        Rectangle(HashRange.parse(hashes), OffsetRange.parse(r)) for hashes, done in text.items() for r in done.split()
    )
