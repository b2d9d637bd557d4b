"""Checkpoints of Spark's own Kafka source, as Spark writes them. `test_real_moves` imports a real one."""

from pathlib import Path

import pytest

from coordinator.errors import CheckpointMismatchError, CoopKafkaError, InvalidOptionError
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.tools.moving.spark_checkpoint import done
from coordinator.values.subscription import TopicPartition

METADATA = '{"batchWatermarkMs":0}'
ORDERS = '{"orders":{"0":120,"1":7}}'


def checkpoint(folder: Path, *, finished: int | None, offsets: dict[int, list[str]]) -> Path:
    for name in ("commits", "offsets"):
        (folder / name).mkdir()
    for number, lines in offsets.items():
        (folder / "offsets" / str(number)).write_text("\n".join(lines))
        (folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
    for number in range(0 if finished is None else finished + 1):
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def test_the_ends_of_the_last_finished_batch(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, finished=9, offsets={n: ["v1", METADATA, ORDERS] for n in (2, 9)})
    assert done(folder) == (
        [DoneOffsets(TopicPartition("orders", 0), 120), DoneOffsets(TopicPartition("orders", 1), 7)],
        None,
    )


def test_a_batch_that_is_not_finished_is_named(tmp_path: Path) -> None:
    later = '{"orders":{"0":130,"1":9}}'
    folder = checkpoint(tmp_path, finished=0, offsets={0: ["v1", METADATA, ORDERS], 1: ["v1", METADATA, later]})
    assert done(folder) == (
        [DoneOffsets(TopicPartition("orders", 0), 120), DoneOffsets(TopicPartition("orders", 1), 7)],
        1,
    )


def test_several_sources_of_one_query(tmp_path: Path) -> None:
    lines = ["v1", METADATA, ORDERS, "-", '{"payments":{"0":3}}', "17", '{"logOffset":4}']
    found, _ = done(checkpoint(tmp_path, finished=0, offsets={0: lines}))
    assert [str(d.tp) for d in found] == ["orders-0", "orders-1", "payments-0"]


def test_sources_with_names(tmp_path: Path) -> None:
    """The offset log of Spark 4.3 if its sources have names, or with spark.sql.streaming.offsetLog.formatVersion=2."""
    lines = ["v2", METADATA, f"orders_eu:{ORDERS}", "idle:-", '1:{"payments":{"0":3}}', "files:17"]
    found, _ = done(checkpoint(tmp_path, finished=0, offsets={0: lines}))
    assert [(str(d.tp), d.position) for d in found] == [("orders-0", 120), ("orders-1", 7), ("payments-0", 3)]


def test_two_sources_of_one_partition_begin_at_the_lower_offset(tmp_path: Path) -> None:
    for name, first, second in (("a", 3, 5), ("b", 5, 3)):
        (tmp_path / name).mkdir()
        lines = ["v1", METADATA, f'{{"orders":{{"0":{first}}}}}', f'{{"orders":{{"0":{second}}}}}']
        found, _ = done(checkpoint(tmp_path / name, finished=0, offsets={0: lines}))
        assert found == [DoneOffsets(TopicPartition("orders", 0), 3)]


@pytest.mark.parametrize(
    ("finished", "lines", "kind", "words"),
    [
        pytest.param(None, ["v1", METADATA, ORDERS], InvalidOptionError, "no checkpoint with a finished", id="new"),
        pytest.param(0, ["v3", METADATA, ORDERS], CheckpointMismatchError, "version 'v3'", id="a newer one"),
        pytest.param(0, ["v1"], CheckpointMismatchError, "cannot be read", id="cut"),
        pytest.param(0, ["v1", METADATA, "17"], CheckpointMismatchError, "no source", id="no Kafka"),
        pytest.param(0, ["v1", METADATA, "[" * 100_000], CheckpointMismatchError, "no source", id="nested deeply"),
        pytest.param(0, ["v1", METADATA, '{"orders":{"²":7}}'], CheckpointMismatchError, "no source", id="no digit"),
        pytest.param(0, ["v1", METADATA, '{"orders":{"0":-1}}'], CheckpointMismatchError, "no source", id="below 0"),
        pytest.param(0, ["v1", METADATA, '{"orders":{"0":true}}'], CheckpointMismatchError, "no source", id="a truth"),
        pytest.param(0, ["v1", METADATA, '{"#":{}}'], CheckpointMismatchError, "coop-kafka itself", id="ours"),
    ],
)
def test_other_folders_are_refused_by_name(
    tmp_path: Path, finished: int | None, lines: list[str], kind: type[CoopKafkaError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        done(checkpoint(tmp_path, finished=finished, offsets={0: lines}))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="no checkpoint with a finished batch"):
        done(tmp_path / "gone")
