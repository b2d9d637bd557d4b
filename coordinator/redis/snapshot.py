"""Reads what Redis holds of groups, for the CLI and for tests; writes nothing, joins nothing."""

import re
from collections.abc import Iterable, Mapping

from coordinator.assignment.assignment_text import ranges_of
from coordinator.errors import StateFormatError, UnknownGroupError
from coordinator.group_state import SCHEMA, GroupState, KnownTopic, other_schema
from coordinator.progress.growth import parsed
from coordinator.progress.segments import Progress, Rectangle
from coordinator.ranges import OFFSET_MAX, HashRange, OffsetRange
from coordinator.redis.client import RedisClient
from coordinator.redis.errors import sound
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.reports.lane_lines import lines_of
from coordinator.subscription import TopicPartition

_TIMES = ("recovering_until", "computing_until", "session_ms", "longest_ms")
_NUMBERS = ("commit_seq", "reset_epoch", "epochs", "joins", "generation", *_TIMES)
LANE_EPOCH = re.compile(r"[0-9a-f]+\.[0-9]+")
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
        seconds, microseconds = redis.time()
        now_ms = seconds * 1000 + microseconds // 1000
        meta = _seen_now(_meta(group, redis.hgetall(keys.meta)), now_ms)
        leases = _ends(redis.zrange(keys.leases, 0, -1, withscores=True), _latest(meta, "session_ms", now_ms))
        members = {member: _member(redis.hgetall(keys.member(member))) for member in leases}
        topics = {topic: KnownTopic.parse(topic, text) for topic, text in redis.hgetall(keys.topics).items()}
        stable = {tp: o for topic in topics for tp, o in offsets_of(topic, redis.hgetall(keys.stable(topic))).items()}
        ends = {tp: o for topic in topics for tp, o in offsets_of(topic, redis.hgetall(keys.end(topic))).items()}
        hung = _ends(redis.zrange(keys.batches, 0, -1, withscores=True), _latest(meta, "longest_ms", now_ms))
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
        now_ms=now_ms,
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


def _seen_now(meta: Mapping[str, str], now_ms: int) -> Mapping[str, str]:
    """A recovery lasts a session from now at most: the scripts cut what a clock wrote that was ahead (leases.lua)."""
    until = min(int(meta.get("recovering_until", "0")), _latest(meta, "session_ms", now_ms))
    return {**meta, "recovering_until": str(until)} if until else meta


def _latest(meta: Mapping[str, str], length: str, now_ms: int) -> int:
    """The latest time until which anything of this length holds."""
    return now_ms + int(meta[length]) if length in meta else OFFSET_MAX


def _ends(found: Iterable[tuple[str, float]], latest: int) -> dict[str, int]:
    return {member: int(min(at, latest)) for member, at in found}


def _member(fields: Mapping[str, str]) -> Mapping[str, str]:
    if not fields.get("slow_percent", "0").isdecimal():
        raise StateFormatError(f"a member has {fields['slow_percent']!r} percent of its slots taken")
    return fields


def offsets_of(topic: str, text: Mapping[str, str]) -> dict[TopicPartition, int]:
    """The offsets of a hash of partitions, ascending; raises `StateFormatError`."""
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
        if not (LANE_EPOCH.fullmatch(epoch) and member):
            raise StateFormatError(f"{hashes} is recorded as owned by {value!r}, not <lane epoch> <member>")
        owners.append((HashRange.parse(hashes), epoch, member))
    return tuple(sorted(owners))


def _ics(text: Mapping[str, str]) -> tuple[Rectangle, ...]:
    return tuple(
        Rectangle(HashRange.parse(hashes), OffsetRange.parse(r)) for hashes, done in text.items() for r in done.split()
    )
