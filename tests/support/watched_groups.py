"""A group in Redis for tests of what people see of it."""

from contextlib import closing

from coordinator.group_state import BATCH_BUDGET, LONGEST_BATCH
from coordinator.ranges import WHOLE
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.store import store_of
from coordinator.replies import Caller, Joining
from coordinator.reports.lane_lines import BatchLine
from coordinator.subscription import Topic, TopicPartition


def live(redis_url: str, group: str, topic: str, host: str = "h1") -> None:
    """A group with one member that owns one partition, at offset 5."""
    tp, fields = TopicPartition(topic, 0), {"host": host, BATCH_BUDGET: "10000", LONGEST_BATCH: "300000"}
    with closing(RedisClient(redis_url)) as client:
        store = store_of(ScriptCalls(client, group, session_ms=60_000, longest_ms=60_000, retention_ms=60_000))
        store.positions.create("aa", {topic: Topic(topic, "id-1", (0,))}, {tp: 5})
        seen = store.members.join(Caller("m-1", "i1"), "", Joining(fields)).seen
        me = Caller("m-1", "i1", seen.nonce, str(seen.seq))
        store.members.assign(me, store.members.look(me).value.occasion, "test 1", {"m-1": {tp: (WHOLE,)}})
        store.positions.acquire(me, {tp: (WHOLE,)})
        store.positions.report_ends({tp: 5}, {})
        store.reports.batch(BatchLine("m-1", 5, None, 2.5, 1, "-"))
