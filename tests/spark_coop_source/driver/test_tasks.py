"""A task that begins when its key ranges may be another member's by now reads nothing (rule: task-deadline)."""

import time
from math import inf

from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.driver.tasks import deadline, input_partitions
from spark_coop_source.options.options import validate
from spark_coop_source.task.partition import SlicePartition, TaskEnding
from spark_coop_source.task.read import read_slices

MINUTE = 60_000
GROUP = {
    "subscribe": "orders",
    "kafka.bootstrap.servers": "localhost:1",
    "group": "g",
    "redisUrl": "redis://localhost:1",
    "longestBatch": "120000",
    "sessionTimeout": "60000",
}
EMPTY = SlicePartition((), {}, columns=(), poll_timeout_ms=1_000, fail_on_data_loss=True)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_batch_query_has_no_deadline() -> None:
    assert list(read_slices(EMPTY)) == []


def test_the_deadline_is_the_longest_batch_and_a_session_from_now() -> None:
    options = validate(GROUP, streaming=True)
    wanted = deadline(options)
    assert wanted is not None
    assert abs(wanted - now_ms() - 3 * MINUTE) < MINUTE / 2
    assert [p.deadline_ms for p in input_partitions(options, [()], deadline_ms=wanted)] == [wanted]


def test_tasks_that_make_acknowledgements_fetch_alone_and_have_strips_of_their_own_slices() -> None:
    tp = TopicPartition("orders", 0)
    lanes = tuple(Lane(h, "aa.1", 5, (OffsetRange(5, 100),)) for h in cuts(2))
    end = StreamOffset("g", "m-1", 0, {"orders": "id-1"}, {tp: lanes})
    tasks = [(s,) for s in end.slices]
    plain = input_partitions(validate(GROUP, streaming=True), tasks, end=end)
    assert [(p.sharing is None, p.strips) for p in plain] == [(False, None)] * 2
    making = input_partitions(validate({**GROUP, "columns": "offset,acknowledgement"}, streaming=True), tasks, end=end)
    assert [p.sharing for p in making] == [None, None]
    for p, mine in zip(making, tasks, strict=True):
        assert p.strips is not None
        assert [strip.area for strip in p.strips[tp]] == list(mine)


def test_tasks_of_a_replay_wait_for_further_attempts_no_longer_than_others() -> None:
    options = validate({**GROUP, "batchTimeBudget": "10s"}, streaming=True)
    for by_time, share_ms in ((True, 9_000.0), (False, inf)):
        (task,) = input_partitions(options, [()], ending=TaskEnding("digest", by_time=by_time), beside_ms=1_000.0)
        assert task.ending is not None
        assert (task.ending.share_ms, task.ending.retries_ms) == (share_ms, 9_000.0)


def test_a_query_without_a_group_has_no_deadline() -> None:
    alone = {k: v for k, v in GROUP.items() if k not in ("subscribe", "group", "redisUrl")}
    assert deadline(validate({**alone, "assign": '{"orders":[0]}'}, streaming=True)) is None
