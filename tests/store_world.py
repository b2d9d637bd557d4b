"""A group's store on a real Redis with a clock of its own, and short words for offsets; for the tests of its verbs."""

import secrets
import time

import redis

from coordinator.assignment_text import Ranges
from coordinator.keys import GroupKeys
from coordinator.ranges import WHOLE, HashRange, OffsetRange
from coordinator.redis_calls import Caller
from coordinator.redis_client import RedisClient
from coordinator.redis_membership import Joining
from coordinator.redis_store import RedisStore
from coordinator.stream_offset import Lane, StreamOffset
from coordinator.subscription import Topic, TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
TOPICS = {"orders": Topic("orders", "id-1", (0, 1))}
SESSION, LONGEST = 1_000, 5_000
WANTED: Ranges = {TP: (WHOLE,)}
NOBODY = Caller()
BIG = 2**53 + 1  # a double cannot tell this from 2^53


class World:
    """A store of one group with a clock that stands still until it is moved."""

    def __init__(self, url: str) -> None:
        self.group = f"store {secrets.token_hex(4)}"
        self.client = RedisClient(url)
        self.redis = redis.Redis.from_url(url, decode_responses=True)  # does what the store never does
        self.now = time.time_ns() // 1_000_000
        self.store = RedisStore(
            self.client, self.group, session_ms=SESSION, longest_ms=LONGEST, retention_ms=60_000, now=lambda: self.now
        )

    def found(self, **positions: int) -> None:
        tps = {"p0": TP, "p1": OTHER}
        self.store.found(NOBODY, "aa", TOPICS, {tps[n]: p for n, p in positions.items()} or {TP: 0})

    def join(self, member: str = "m-1", incarnation: str = "i1", before: str = "", application: str = "") -> Caller:
        answer = self.store.join(
            Caller(member, incarnation),
            before,
            Joining({"host": "h", "topics": "orders", "capacity": "1"}, application),
        )
        return Caller(member, incarnation, answer.seen.nonce, str(answer.seen.seq))

    def positions(self, tp: TopicPartition = TP) -> dict[str, str]:
        with self.client.reading() as reading:
            return reading.hgetall(GroupKeys(self.group).segments(tp))

    def restart(self) -> None:
        """What a restarted server looks like to the scripts: another run id."""
        self.redis.hset(GroupKeys(self.group).meta, "run_id", "0")

    def close(self) -> None:
        self.client.close()
        self.redis.close()


def offset(*lanes: Lane, reset: int = 0, topic_id: str = "id-1") -> StreamOffset:
    return StreamOffset("g", "m-1", reset, {"orders": topic_id}, {TP: lanes})


def lane(epoch: str, start: int, until: int, hashes: HashRange = WHOLE) -> Lane:
    return Lane(hashes, epoch, start, (OffsetRange(start, until),))
