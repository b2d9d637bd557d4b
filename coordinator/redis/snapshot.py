"""Reads groups from Redis, for the CLI and for tests. Writes nothing, joins nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from coordinator.errors import RedisNotReadyError, StateFormatError, StoreError, UnknownGroupError
from coordinator.errors.quoting import quoted
from coordinator.redis.client import RedisClient, TextRedis
from coordinator.redis.group_state import BACKLOG_MS, BATCH_BUDGET, LOAD_PERCENT, LONGEST_BATCH, GroupState
from coordinator.redis.group_texts import RedisHashes, checked_meta, key, partitions_of, read, state_of
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.redis.verb import sound
from coordinator.values.ranges import OFFSET_MAX, is_number

_OF_GROUP = ("meta", "topics", "policy", "growth", "assignment", "lanes", "working")
_OF_PARTITION = ("segments", "owners", "ics", "handed")


def list_groups(client: RedisClient) -> tuple[str, ...]:
    """The names of the groups in Redis, sorted. Expired groups are left out."""
    with client.reading() as redis:
        return tuple(g for g in sorted(redis.smembers(GROUPS)) if redis.exists(GroupKeys(g).meta))


@sound
def read_group(client: RedisClient, group: str) -> GroupState:
    """The state of a group. Raises `UnknownGroupError` if there is none, `StateFormatError` if it is damaged."""
    keys = GroupKeys(group)
    with client.reading() as redis:
        hashes = {name: redis.hgetall(str(getattr(keys, name))) for name in _OF_GROUP}
        if not hashes["meta"]:
            raise UnknownGroupError(f"Redis has no group {group!r}")
        seconds, microseconds = redis.time()
        now_ms = seconds * 1000 + microseconds // 1000
        meta = _seen_now(read(hashes, "meta", checked_meta), now_ms)
        leases = _ends(redis.zrange(keys.leases, 0, -1, withscores=True), _latest(meta, "session_ms", now_ms))
        members = {member: _member(redis.hgetall(keys.member(member))) for member in leases}
        for topic in hashes["topics"]:
            hashes |= {f"stable:{topic}": redis.hgetall(keys.stable(topic))}
            hashes |= {f"end:{topic}": redis.hgetall(keys.end(topic))}
        hung = _ends(redis.zrange(keys.batches, 0, -1, withscores=True), _latest(meta, "longest_ms", now_ms))
        leaving, standbys = redis.smembers(keys.leaving), redis.hgetall(keys.standbys)
        hashes |= _of_partitions(redis, keys, hashes)
    return replace(
        state_of(hashes),
        now_ms=now_ms,
        meta=meta,
        leases_ms=leases,
        members=members,
        hung_ms=hung,
        leaving=frozenset(leaving),
        standbys=standbys,
    )


def refusal(client: RedisClient, group: str) -> RedisNotReadyError | None:
    """Why the Redis of a group takes no writes now, though it answers reads; None if it takes them.

    Asks for a write that changes nothing. None also if the user may not write.
    """
    try:
        client.try_to_write(GroupKeys(group).leases)
    except RedisNotReadyError as error:
        return error
    return None


def of_one_group(error: StoreError) -> bool:
    """Whether an error of a read is about the keys of that group. Otherwise no group can be read."""
    return type(error) in (StoreError, StateFormatError)


def _of_partitions(redis: TextRedis, keys: GroupKeys, hashes: RedisHashes) -> dict[str, dict[str, str]]:
    tps = [tp for topic in hashes["topics"] for tp in read(hashes, f"stable:{topic}", partial(partitions_of, topic))]
    pipeline = redis.pipeline(transaction=False)
    for tp in tps:
        pipeline.hgetall(keys.segments(tp)).hgetall(keys.owners(tp)).hgetall(keys.ics(tp)).hgetall(keys.handed(tp))
    names = [f"{kind}:{key(tp)}" for tp in tps for kind in _OF_PARTITION]
    return dict(zip(names, pipeline.execute(), strict=True))


def _seen_now(meta: Mapping[str, str], now_ms: int) -> Mapping[str, str]:
    """The fields of `meta`, with a recovery of one session from now at most (rule: clock-ahead)."""
    until = min(int(meta.get("recovering_until", "0")), _latest(meta, "session_ms", now_ms))
    return {**meta, "recovering_until": str(until)} if until else meta


def _latest(meta: Mapping[str, str], length: str, now_ms: int) -> int:
    """The latest possible end of anything of this length."""
    return now_ms + int(meta[length]) if length in meta else OFFSET_MAX


def _ends(found: Iterable[tuple[str, float]], latest: int) -> dict[str, int]:
    return {member: int(min(at, latest)) for member, at in found}


def _member(fields: Mapping[str, str]) -> Mapping[str, str]:
    percent = fields.get("slow_percent", "0")
    if not (is_number(percent) and len(percent) <= 3):
        raise StateFormatError(f"a member reports {quoted(percent)} as its percentage of busy slots, not 0 to 100")
    for name in (LOAD_PERCENT, LONGEST_BATCH, BATCH_BUDGET, BACKLOG_MS, LOAD_PERCENT):
        if not is_number(text := fields.get(name, "0")):
            raise StateFormatError(f"a member reports {quoted(text)} as {name}, not a number")
    return fields
