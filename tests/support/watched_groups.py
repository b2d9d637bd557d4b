"""Groups in Redis for tests of what people see of them."""

from collections.abc import Mapping
from contextlib import closing

import redis

from coordinator.assignment.assignment_text import Ranges
from coordinator.plan.poison import working_text
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import Slice
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import BATCH_BUDGET, LONGEST_BATCH
from coordinator.redis.keys import GroupKeys
from coordinator.redis.lane_lines import BatchLine, CostKind, LaneLine, lines_text
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import store_of
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition

ORDERS = TopicPartition("orders", 0)
SLOW = HashRange(cuts(8)[2].lo, cuts(8)[2].lo + 2**55)
"""The lane of one slow key, in a group at work."""

END = 9_000
HOSTS = {"m-3f1c": "worker-1", "m-8a20": "worker-2", "m-c4d7": "worker-3"}
OWNED = dict(zip(HOSTS, cuts(3), strict=True))
"""The members of a group at work, with their hosts and ranges."""

_EIGHTHS = dict(zip(cuts(8), (7_400, 7_050, 7_600, 7_200, 6_900, 7_800, 7_300, 7_550), strict=True))
_OTHERS = HashRange(SLOW.hi + 1, cuts(8)[2].hi)
POSITIONS = {h: p for h, p in _EIGHTHS.items() if SLOW.lo not in h} | {SLOW: 3_200, _OTHERS: _EIGHTHS[cuts(8)[2]]}
FAILING = (
    FailingRecord(ORDERS, cuts(8)[5].lo + 2**58, 7_850, 4, 0, True, "ValueError", "amount is 'NaN'"),
    FailingRecord(ORDERS, cuts(8)[0].lo + 2**58, 7_420, 2, 0, False, "TimeoutError", "no answer from the ledger"),
)


def live(redis_url: str, group: str, topic: str, host: str = "h1") -> None:
    """A group with one member that owns one partition, at offset 5."""
    _working(redis_url, group, TopicPartition(topic, 0), {"m-1": (WHOLE,)}, 5, {"m-1": host})


def at_work(redis_url: str, group: str) -> None:
    """A group with three members at work on one partition. One lane is slow, one key is tried again, one is parked."""
    _working(redis_url, group, ORDERS, {member: (hashes,) for member, hashes in OWNED.items()}, END, HOSTS)
    keys = GroupKeys(group)
    with closing(redis.Redis.from_url(redis_url)) as plain:
        plain.delete(keys.segments(ORDERS))
        for hashes, position in POSITIONS.items():
            plain.hset(keys.segments(ORDERS), str(hashes), str(position))
        plain.hset(keys.stable("orders"), "0", str(min(POSITIONS.values())))
        for record in FAILING:
            plain.hset(keys.failing, record.field, record.text)
        for member in OWNED:
            plain.hset(keys.working, member, working_text(begun(member), {}))
            plain.hset(keys.lanes, member, lines_text(lanes(member)))


def lanes(member: str) -> tuple[LaneLine, ...]:
    """The lanes of a member of a group at work."""
    return tuple(_line(h, p) for h, p in sorted(POSITIONS.items()) if h.lo in OWNED[member])


def begun(member: str) -> tuple[Slice, ...]:
    """What the tasks of a member of a group at work are at."""
    return tuple(Slice(ORDERS, x.hashes, OffsetRange(x.position, x.position + 8 * x.quota)) for x in lanes(member)[:2])


def _line(hashes: HashRange, position: int) -> LaneLine:
    slow = hashes == SLOW
    left = END - position
    cost, rate = (150.0, 6.6) if slow else (1.0, 820.0)
    return LaneLine(
        ORDERS,
        hashes,
        position,
        lag=left // (100 if slow else 8),
        lag_s=left // 20,
        lag_at_least=False,
        rate=rate,
        record_ms=cost,
        cost=CostKind.SURE,
        quota=40 if slow else 75,
        why="budget" if slow else "all there is",
    )


def _working(
    redis_url: str,
    group: str,
    tp: TopicPartition,
    owned: Mapping[str, tuple[HashRange, ...]],
    end: int,
    hosts: Mapping[str, str],
) -> None:
    """Members that own these ranges; all of the partition is done up to offset 5."""
    with closing(RedisClient(redis_url)) as client:
        store = store_of(ScriptCalls(client, group, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        store.positions.create("aa", {tp.topic: Topic(tp.topic, "id-1", (0,))}, {tp: 5})
        callers = {}
        for member in owned:
            fields = {"host": hosts[member], BATCH_BUDGET: "10000", LONGEST_BATCH: "300000"}
            seen = store.members.join(Caller(member, "i1"), "", Joining(fields)).seen
            callers[member] = Caller(member, "i1", seen.nonce, str(seen.seq))
        first, *_ = callers.values()
        assigned: dict[str, Ranges] = {member: {tp: ranges} for member, ranges in owned.items()}
        store.members.assign(first, store.members.look(first).value.occasion, "test 1", assigned)
        for member, ranges in owned.items():
            store.positions.acquire(callers[member], {tp: ranges})
            store.reports.batch(BatchLine(member, 5, None, 2.5, 1, "-"))
        store.positions.report_ends({tp: end}, {})
