"""Folders of Parquet files as Spark and others write them, and folders that are no sink. No Spark here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from coordinator.errors import InvalidOptionError, SinkError
from coordinator.tools.audit.parquet_sink import ParquetSink

TOPIC = "orders"


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)


def rows(folder: Path, names: Mapping[str, str] | None = None) -> dict[int, list[tuple[str, int]]]:
    """Partition -> batch and offset of each row, in order."""
    found = ParquetSink(f"parquet:{folder}", names or {}).columns(TOPIC)
    return {n: [(of.label(row), int(of.offsets[row])) for row in range(len(of))] for n, of in found.items()}


def test_columns_in_the_files(tmp_path: Path) -> None:
    write(tmp_path / "part-00001-x.parquet", partition=[0, 1], offset=[4, 5], batch=[1, 0], topic=[TOPIC, TOPIC])
    write(tmp_path / "part-00000-x.parquet", partition=[0, 0], offset=[6, 7], batch=[1, 1], topic=[TOPIC, "other"])
    assert rows(tmp_path) == {0: [("1", 6), ("1", 4)], 1: [("0", 5)]}


def test_columns_in_the_names_of_folders(tmp_path: Path) -> None:
    write(tmp_path / "query=b%2F1" / "batch=10" / "part-00000-x.parquet", partition=[0], offset=[3])
    write(tmp_path / "query=a" / "batch=9" / "part-00000-x.parquet", partition=[0], offset=[2])
    assert rows(tmp_path) == {0: [("a/9", 2), ("b/1/10", 3)]}


def test_partition_and_topic_in_the_names_of_folders(tmp_path: Path) -> None:
    for topic in (TOPIC, "other"):
        write(tmp_path / f"topic={topic}" / "partition=3" / "a.parquet", offset=pa.array([1, 2], pa.int32()))
    assert rows(tmp_path) == {3: [("?", 1), ("?", 2)]}


def test_columns_with_other_names(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", kafka_partition=["0"], kafka_offset=["12"], run=pa.array([4], pa.int16()))
    names = {"partition": "kafka_partition", "offset": "kafka_offset", "batch": "run"}
    assert rows(tmp_path, names) == {0: [("4", 12)]}


def test_hidden_and_other_files_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", partition=[0], offset=[1])
    for hidden in ("_temporary/0/b.parquet", ".c.parquet", "_d.parquet"):
        write(tmp_path / hidden, partition=[0], offset=[2])
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").write_text("none")
    assert rows(tmp_path) == {0: [("?", 1)]}


def test_the_log_of_sparks_file_sink_names_files_and_batches(tmp_path: Path) -> None:
    names = [f"part-0000{n % 2}-{n}-c000.snappy.parquet" for n in range(4)]
    for n, name in enumerate(names):
        write(tmp_path / name, partition=[0], offset=[n])
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for batch, files in enumerate(([names[2], names[1]], [names[0]])):  # the last file was never committed
        entries = [json.dumps({"path": f"file://{tmp_path}/{name}", "action": "add"}) for name in files]
        (log / str(batch)).write_text("\n".join(["v1", *entries]))
    assert rows(tmp_path) == {0: [("0", 2), ("0", 1), ("1", 0)]}


def test_an_empty_folder_is_an_empty_sink(tmp_path: Path) -> None:
    assert rows(tmp_path) == {}


def test_a_uri(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", partition=[0], offset=[1])
    assert ParquetSink(f"parquet:file://{tmp_path}", {}).columns(TOPIC)[0].offsets.tolist() == [1]


@pytest.mark.parametrize(
    ("sink", "names", "words"),
    [
        pytest.param("/tmp/out", {}, "--sink '/tmp/out' is not parquet:PATH", id="no format"),
        pytest.param("parquet:", {}, "is not parquet:PATH", id="no path"),
        pytest.param("parquet:/tmp", {"key": "k"}, "--column 'key' is not a column of an audit", id="no such column"),
    ],
)
def test_wrong_arguments(sink: str, names: Mapping[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        ParquetSink(sink, names)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="cannot be read"):
        rows(tmp_path / "nowhere")


def test_a_scheme_that_nobody_knows() -> None:
    with pytest.raises(SinkError, match="cannot be read"):
        ParquetSink("parquet:gopher://host/x", {}).columns(TOPIC)


def test_a_uri_with_a_password_is_shown_without_it() -> None:
    for sink in ("parquet:gopher://ann:pa55@host/x", "gopher://ann:pa55@host/x"):
        with pytest.raises((SinkError, InvalidOptionError)) as error:
            ParquetSink(sink, {}).columns(TOPIC)
        assert "gopher://host/x" in str(error.value)
        assert "pa55" not in str(error.value)


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR0")
    with pytest.raises(SinkError, match=r"the file .*a\.parquet' cannot be read"):
        rows(tmp_path)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        pytest.param({}, "has no column 'offset'; it has partition, value", id="a required column"),
        pytest.param({"offset": "value", "batch": "b"}, "has no column 'b'", id="a column that was named"),
    ],
)
def test_a_column_that_is_missing(tmp_path: Path, names: Mapping[str, str], words: str) -> None:
    write(tmp_path / "a.parquet", partition=[0], value=[1])
    with pytest.raises(SinkError, match=words):
        rows(tmp_path, names)
