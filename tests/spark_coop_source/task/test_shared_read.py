"""Tasks that share what they fetch read exactly what each would read alone, and one of them fetches."""

import os
import pickle
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Barrier
from typing import BinaryIO

import pytest

from coordinator.errors import DataLossError
from coordinator.plan import sharing
from coordinator.plan.sharing import shared_stretches
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange, union
from coordinator.values.subscription import TopicPartition
from log_fixtures import compacted_log, end, lane, odd_log, rows, task
from spark_coop_source.cache import folder as cache_folder
from spark_coop_source.cache import leftovers, pieces, shared_fetch
from spark_coop_source.cache.blocks import Block, BlockCache, opened
from spark_coop_source.fetch import consumers, raw_batches
from spark_coop_source.task import readings
from spark_coop_source.task.partition import Sharing, SlicePartition
from spark_coop_source.task.read import read_slices
from spark_coop_source.task.readings import Readings
from topics import Kafka, Record

ROOM = 64 * 1024 * 1024
MANY = 10_000

Rows = list[dict[str, object]]


@pytest.fixture(params=[pieces.FIRST, 500, 7], ids="first piece of {}".format)
def first(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The offsets of a short piece: 7 cuts record batches, and all pieces are as short."""
    offsets: int = request.param
    monkeypatch.setattr(pieces, "FIRST", offsets)
    monkeypatch.setattr(pieces, "LONGEST", offsets)
    return offsets


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(cache_folder, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(leftovers, "_start_sweeper", lambda _: None)  # a process for each of these folders
    monkeypatch.setattr(sharing, "WORTH_IT", 1)
    consumers.close_idle()
    yield tmp_path / f"coop-kafka-{os.getuid()}"
    consumers.close_idle()


@pytest.fixture(scope="module")
def many(kafka: Kafka) -> str:
    topic = kafka.create_topic("many")
    kafka.produce(topic, [Record(b"%d" % i * 20, b"%d" % (i % 997)) for i in range(MANY)], compression="lz4")
    return topic


def together(tasks: Sequence[SlicePartition], most_bytes: int = ROOM) -> list[SlicePartition]:
    """The same tasks as the input partitions of one batch."""
    stretches = shared_stretches([task.slices for task in tasks])
    how = Sharing(uuid.uuid4().hex, most_bytes, stretches)
    return [replace(task, sharing=how) for task in tasks]


def read_at_once(tasks: Sequence[SlicePartition]) -> list[Rows]:
    with ThreadPoolExecutor(len(tasks)) as threads:
        return list(threads.map(rows, tasks))


def lanes(kafka: Kafka, topic: str, n: int, until: int, **how: object) -> list[SlicePartition]:
    """One task a lane, with client settings of its own: `consumers` keeps one consumer for each that fetched."""
    return [
        task(kafka, [lane(topic, hashes, 0, until)], client_id=f"lane-{i}", **how)  # type: ignore[arg-type]
        for i, hashes in enumerate(cuts(n))
    ]


def step_by_step(partition: SlicePartition) -> Iterator[int]:
    """The number of a task's records in each block, before small batches are joined."""
    tp = partition.slices[0].topic_partition
    with Readings(partition, partition.columns, [tp]) as readings:
        yield from (len(read.records) for read in readings.of(tp, partition.slices))


def test_a_task_looks_at_its_clock_though_blocks_hold_no_record_of_it(kafka: Kafka) -> None:
    """All records have one key, which is another task's."""
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(bytes(1_000), b"key")] * 5_000)
    halves = together(lanes(kafka, topic, 2, 5_000, max_poll_records=1_000))
    reads = [list(step_by_step(half)) for half in halves]
    none = reads[not sum(reads[1])]
    assert sum(map(sum, reads)) == 5_000
    assert none == [0] * len(none)
    assert none


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("codec", [None, "zstd"])
@pytest.mark.usefixtures("first")
def test_lanes_of_an_odd_log_read_the_same_together_and_alone(kafka: Kafka, codec: str | None, level: str) -> None:
    topic = odd_log(kafka, codec)
    alone = lanes(kafka, topic, 4, end(kafka, topic), include_headers=True, isolation_level=level)
    read = read_at_once(together(alone))
    assert read == [rows(each) for each in alone]
    assert sum(map(len, read)) > 70


@pytest.mark.usefixtures("first")
def test_lanes_of_a_compacted_log_read_the_same_together_and_alone(kafka: Kafka) -> None:
    topic = compacted_log(kafka)
    alone = lanes(kafka, topic, 3, end(kafka, topic))
    assert read_at_once(together(alone)) == [rows(each) for each in alone]


@pytest.mark.parametrize("first", [pieces.FIRST, 500], indirect=True)
@pytest.mark.usefixtures("first")
def test_lanes_that_begin_at_different_offsets_share_where_they_meet(kafka: Kafka, many: str) -> None:
    quarter = cuts(4)
    parts = [
        [lane(many, quarter[0], 0, MANY)],
        [lane(many, quarter[1], 4_321, MANY), lane(many, quarter[3], 100, 7_000)],
        [lane(many, quarter[2], 8_000, MANY - 1)],
    ]
    alone = [task(kafka, slices) for slices in parts]
    assert read_at_once(together(alone)) == [rows(each) for each in alone]


def test_one_of_eight_tasks_fetches_and_nothing_is_left_behind(kafka: Kafka, many: str, folder: Path) -> None:
    read = read_at_once(together(lanes(kafka, many, 8, MANY)))
    assert sum(map(len, read)) == MANY
    assert len(consumers._idle.clients) == 1, "a task that does not fetch opens no consumer"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("first", [500], indirect=True)
def test_tasks_that_run_at_once_fetch_different_pieces(
    kafka: Kafka, many: str, folder: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    published, publish = list[OffsetRange](), BlockCache.publish
    both = Barrier(2)

    def seen(cache: BlockCache, block: Block, write: Callable[[BinaryIO], object]) -> bool:
        if len(published) == 1:  # the second piece waits until another one is published too
            both.wait(10)
        published.append(block.offsets)
        return publish(cache, block, write)

    monkeypatch.setattr(BlockCache, "publish", seen)
    alone = lanes(kafka, many, 2, MANY)
    assert read_at_once(together(alone)) == [rows(each) for each in alone]
    assert len(consumers._idle.clients) == 2, "each has fetched some"
    assert union(published) == (OffsetRange(0, MANY),)
    assert sum(map(len, published)) == MANY, "each offset once"
    assert max(map(len, published)) <= first
    assert list(folder.iterdir()) == []


def test_where_no_task_can_publish_each_fetches_at_once(
    kafka: Kafka, many: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "stretch_name", lambda *_: "stretch" * 100)  # no file can be called so
    monkeypatch.setattr(shared_fetch, "PATIENCE_S", inf)
    assert sum(map(len, read_at_once(together(lanes(kafka, many, 2, MANY))))) == MANY
    assert list(folder.iterdir()) == []


def test_blocks_of_another_batch_are_never_used(kafka: Kafka, many: str, folder: Path) -> None:
    first, later = (together(lanes(kafka, many, 2, MANY)) for _ in range(2))
    ended_early = step_by_step(first[0])
    next(ended_early)
    assert list(folder.glob("*.*.*.*")), "blocks of a batch of which one task was killed, and the other never came"
    assert sum(map(len, read_at_once(later))) == MANY
    ended_early.close()  # type: ignore[attr-defined]


def test_one_task_after_another_uses_the_blocks_of_the_first(kafka: Kafka, many: str, folder: Path) -> None:
    first, *later = together(lanes(kafka, many, 3, MANY))
    unreachable = [replace(each, kafka={"bootstrap_servers": "127.0.0.1:9"}) for each in later]
    assert sum(len(rows(each)) for each in [first, *unreachable]) == MANY
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(lambda content: content[: len(content) // 2], id="cut in half"),
        pytest.param(lambda content: b"", id="emptied"),
        pytest.param(lambda content: bytes(len(content)), id="zeros"),
        pytest.param(lambda content: b"\xff" * len(content), id="ones"),
        pytest.param(lambda content: content[:200] + bytes(len(content) - 200), id="zeros behind its beginning"),
    ],
)
def test_a_damaged_block_of_the_cache_is_fetched_again(
    kafka: Kafka, many: str, folder: Path, damaged: Callable[[bytes], bytes]
) -> None:
    alone = lanes(kafka, many, 2, MANY)
    first, later = together(alone)
    assert rows(first) == rows(alone[0])
    blocks = list(folder.glob("*.*.*.*"))
    assert blocks
    for block in blocks:
        block.write_bytes(damaged(block.read_bytes()))
    assert rows(later) == rows(alone[1])


@pytest.mark.parametrize(
    ("most_bytes", "old_format"),
    [
        pytest.param(1_000, False, id="no room for a block"),
        pytest.param(1, False, id="a cache of a byte"),
        pytest.param(1_200_000, False, id="room for a few blocks"),
        pytest.param(ROOM, True, id="records one by one"),
    ],
)
def test_where_blocks_cannot_be_shared_each_fetches_for_itself(
    kafka: Kafka, many: str, monkeypatch: pytest.MonkeyPatch, most_bytes: int, old_format: bool
) -> None:
    if old_format:
        monkeypatch.setattr(raw_batches, "fits", lambda _: False)
    alone = lanes(kafka, many, 3, MANY)
    expected = [rows(each) for each in alone]
    assert read_at_once(together(alone, most_bytes)) == expected
    assert [rows(each) for each in together(alone, most_bytes)] == expected


def test_two_applications_with_room_for_a_few_blocks_read_the_same_as_alone(kafka: Kafka, many: str) -> None:
    alone = lanes(kafka, many, 3, MANY)
    expected = [rows(each) for each in alone]
    assert read_at_once([*together(alone, 1_200_000), *together(alone, 1_200_000)]) == expected * 2


def test_a_worker_keeps_its_consumer_from_one_micro_batch_to_the_next(kafka: Kafka, many: str) -> None:
    kept: list[object] = []
    for start in range(0, 3_000, 1_000):
        some = together([task(kafka, [lane(many, hashes, start, start + 1_000)]) for hashes in cuts(2)])
        assert sum(len(rows(each)) for each in some) == 1_000
        kept += consumers._idle.clients
    assert [each is kept[0] for each in kept] == [True] * 3


def test_a_folder_of_another_user_is_left_alone(kafka: Kafka, many: str, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    assert sum(map(len, read_at_once(together(lanes(kafka, many, 2, MANY))))) == MANY


@pytest.mark.parametrize("first", [pieces.FIRST, 500], indirect=True)
def test_a_task_goes_on_where_a_killed_publisher_stopped(kafka: Kafka, many: str, folder: Path, first: int) -> None:
    tasks = together(lanes(kafka, many, 2, MANY))
    program = f"""
import os, pickle, signal, sys
from pathlib import Path
from spark_coop_source.cache import folder, pieces, shared_fetch
from spark_coop_source.task.readings import Readings
pieces.FIRST = {first}
pieces.LONGEST = {pieces.LONGEST}
folder.SHARED_MEMORY = Path({str(folder.parent)!r})
shared_fetch.AHEAD = {ROOM}
task = pickle.load(sys.stdin.buffer)
tp = task.slices[0].topic_partition
with Readings(task, task.columns, [tp]) as readings:
    reading = readings.of(tp, task.slices)
    for _ in range({1 if first > 500 else 3}):
        next(reading)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(tasks[0]), check=False)
    assert done.returncode == -signal.SIGKILL
    assert any(file.name.endswith(".lock") for file in folder.iterdir())
    assert sum(map(len, read_at_once(tasks))) == MANY


def test_a_task_does_not_wait_for_ever_for_a_publisher_that_lives(
    kafka: Kafka, many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_fetch, "PATIENCE_S", 0.2)
    tasks = together(lanes(kafka, many, 3, MANY))
    assert tasks[0].sharing
    (stretch,) = next(iter(tasks[0].sharing.stretches.values()))
    tp = tasks[0].slices[0].topic_partition
    name = shared_fetch.stretch_name(tasks[0].sharing.batch, tp, stretch.offsets)
    with opened(ROOM) as cache:
        assert cache
        held = [cache.lock(f"{name}-0"), cache.lock(f"{name}-0-again")]
        assert all(held), "both rights are in the hands of somebody who does nothing"
        assert sum(map(len, read_at_once(tasks))) == MANY
        assert len(consumers._idle.clients) == 3
        for lock in filter(None, held):
            cache.unlock(lock)


def test_a_second_publisher_helps_where_the_first_is_held_up(
    kafka: Kafka, many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_fetch, "PATIENCE_S", 1.5)
    tasks = together(lanes(kafka, many, 4, MANY, max_poll_records=5_000))
    monkeypatch.setattr(shared_fetch, "AHEAD", ROOM)  # it publishes a block, and then waits for its own task
    held_up = step_by_step(tasks[0])
    first = next(held_up)
    read = sum(map(len, read_at_once(tasks[1:])))
    assert len(consumers._idle.clients) == 1, "one of the three has fetched for all of them"
    assert first + read + sum(held_up) == MANY


def test_a_task_that_ends_early_ends_its_publisher(kafka: Kafka, many: str) -> None:
    first, second = together(lanes(kafka, many, 2, MANY))
    started = read_slices(first)
    assert len(next(started))
    started.close()  # type: ignore[attr-defined]
    assert len(consumers._idle.clients) == 1, "and returns its consumer"
    assert len(rows(first)) + len(rows(second)) == MANY


def test_a_consumer_that_failed_is_not_kept_where_the_task_ends_well(kafka: Kafka) -> None:
    """As when another task has published what this one's publisher could not fetch."""
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v")] * 10)
    beyond = task(kafka, [lane(topic, WHOLE, 0, 20)], poll_timeout_ms=500)
    tp = beyond.slices[0].topic_partition
    with Readings(beyond, beyond.columns, [tp]) as readings:
        with pytest.raises(DataLossError):
            list(readings.of(tp, beyond.slices))
        again = readings.of(tp, [lane(topic, WHOLE, 0, 10)])
        assert sum(len(read.records) for read in again) == 10, "by another consumer"
        with pytest.raises(DataLossError):
            list(readings.of(tp, beyond.slices))
    assert not consumers._idle.clients


def test_lost_offsets_fail_or_are_skipped_as_without_the_cache(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v", b"%d" % i) for i in range(100)])
    beyond = [Slice(TopicPartition(topic, 0), hashes, OffsetRange(0, 150)) for hashes in cuts(2)]
    strict = together([task(kafka, [each], poll_timeout_ms=500) for each in beyond])
    with pytest.raises(DataLossError, match="100-149 can no longer be read"):
        read_at_once(strict)
    lenient = [task(kafka, [each], poll_timeout_ms=500, fail_on_data_loss=False) for each in beyond]
    assert sum(map(len, read_at_once(together(lenient)))) == 100
