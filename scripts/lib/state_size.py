"""The command `scripts/state-size`: the memory in Redis for a partition with one stuck key.

    lane 0  |#|                       the stuck key's lane: its first record is never done
    lanes   |#####################|   seven others, far ahead

Ours is one position for each lane, committed by the real scripts. The draft KIP stores the same as offset ranges: one
for each run of records of the other lanes. Both are in a real Valkey, sized by MEMORY USAGE.
"""

import argparse
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, cast

import redis

import processes
import servers
from coordinator.assignment.settings import GroupSettings
from coordinator.progress.ownership import completed
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import store_of
from coordinator.values.key_hash import cuts, hash_key
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition

LANES, KEYS, MOST_BYTES = 8, 4_043, 4_096
TP = TopicPartition("orders", 0)
STEPS = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Size:
    """The state once this many records are ahead of the stuck key's first."""

    records: int
    positions: int
    ours: int  # bytes of all keys of the partition and its topic in Redis
    ranges: int
    plain: int  # bytes of the same as offset ranges in Redis


def sizes(url: str, steps: tuple[int, ...] = STEPS) -> Iterator[Size]:
    """The size after each number of records in `steps`, ascending; leaves nothing behind in that Redis."""
    with closing(redis.Redis.from_url(url, decode_responses=True)) as plain, closing(RedisClient(url)) as client:
        partition, runs = _Partition(client, plain), _Ranges(plain)
        try:
            for records in steps:
                yield Size(records, *partition.after(records), *runs.after(records))
        finally:
            partition.forget()
            runs.forget()


class _Partition:
    """Ours: a member that owns the partition. All its lanes but one go on."""

    def __init__(self, client: RedisClient, plain: redis.Redis) -> None:
        self._redis, self._group = plain, f"state-size-{secrets.token_hex(4)}"
        self._store = store_of(ScriptCalls.of(client, GroupSettings(self._group)))
        self._topics = {TP.topic: Topic(TP.topic, "id", (TP.partition,))}
        self._store.positions.create("aa", self._topics, {TP: 0})
        seen = self._store.members.join(Caller("m", "i"), "", Joining({"topics": TP.topic, "capacity": "1"})).seen
        self._me = Caller("m", "i", seen.nonce, str(seen.seq))
        self._epoch = self._store.positions.acquire(self._me, {TP: (WHOLE,)}).value.ownership[TP][0].epoch

    def after(self, records: int) -> tuple[int, int]:
        """Positions, and their bytes, once every lane but the first is about this many records ahead."""
        stuck, *others = cuts(LANES)
        moved = (Lane(h, self._epoch, 0, (OffsetRange(0, records - i),)) for i, h in enumerate(others))
        end = StreamOffset(self._group, "m", 0, {TP.topic: "id"}, {TP: (Lane(stuck, self._epoch, 0), *moved)})
        self._store.positions.commit(self._me, end, completed(end))
        self._store.positions.report_ends({TP: records}, {TP: f"3 {records} 0 id"})
        prefix = f"coop:v1:{{{self._group}}}"
        keys = [*self._redis.scan_iter(f"{prefix}:*:{TP.topic}"), *self._redis.scan_iter(f"{prefix}:*:{TP.topic}:*")]
        positions = self._redis.hlen(f"{prefix}:segments:{TP.topic}:{TP.partition}")
        return positions, sum(_bytes(self._redis, key) for key in keys)

    def forget(self) -> None:
        self._redis.delete(*self._redis.scan_iter(f"coop:v1:{{{self._group}}}:*"))
        self._redis.srem("coop:v1:groups", self._group)


class _Ranges:
    """The form of the draft KIP: a range for each run of records of the other lanes."""

    def __init__(self, plain: redis.Redis) -> None:
        self._redis, self._key = plain, f"state-size-{secrets.token_hex(4)}"
        self._records = _in_first_lane()
        self._offset, self._start, self._held = 0, 0, 0

    def after(self, records: int) -> tuple[int, int]:
        """Ranges, and their bytes."""
        found: dict[str, str] = {}
        for stuck in islice(self._records, records - self._offset):
            if stuck:
                if self._start < self._offset:
                    found[f"{self._start}-{self._offset - 1}"] = ""
                self._start = self._offset + 1
            self._offset += 1
        names = list(found)
        for i in range(0, len(names), 1_000):
            self._redis.hset(self._key, mapping=cast(Any, dict.fromkeys(names[i : i + 1000], "")))
        self._held += len(found)
        return self._held, _bytes(self._redis, self._key)

    def forget(self) -> None:
        self._redis.delete(self._key)


def _in_first_lane() -> Iterator[bool]:
    """For every record of an endless log with random keys: whether it is in the stuck key's lane."""
    stuck = cuts(LANES)[0]
    lanes = [hash_key(b"key-%d" % i) in stuck for i in range(KEYS)]
    random = Random(0)  # noqa: S311 - the same log each time
    while True:
        yield from random.choices(lanes, k=10_000)


def _bytes(plain: redis.Redis, key: str) -> int:
    return plain.memory_usage(key, samples=0) or 0


def main() -> int:
    """Print the table; 0 if our size stays below its limit, else 1."""
    argparse.ArgumentParser(prog="scripts/state-size", description=__doc__.splitlines()[0]).parse_args()
    with tempfile.TemporaryDirectory(prefix="coop-kafka-state-") as folder, processes.ending_politely():
        server = servers.valkey(Path(folder))
        try:
            found = list(sizes(server.address))
        finally:
            server.stop()
    print(f"{'records ahead':>13} {'positions':>10} {'bytes':>7} {'offset ranges':>14} {'bytes':>11}")
    for s in found:
        print(f"{s.records:>13,} {s.positions:>10} {s.ours:>7,} {s.ranges:>14,} {s.plain:>11,}")
    return 0 if max(s.ours for s in found) <= MOST_BYTES else 1


if __name__ == "__main__":
    raise SystemExit(main())
