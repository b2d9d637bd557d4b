"""Temporary files of child processes: in one folder, which goes with the run."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import temporary


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"], id="Python"),
        pytest.param(["java", "-XshowSettings:properties", "-version"], id="Java"),
    ],
)
def test_a_child_writes_below_a_folder_that_goes_at_the_end(command: list[str]) -> None:
    with temporary.of_children() as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (folder / "artifacts-of-a-killed-driver").mkdir()
    assert str(folder) in done.stdout + done.stderr
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "inside"), [pytest.param("p", True, id="short"), pytest.param("p" * 60, False, id="long")]
)
def test_the_folder_lies_in_another_one_whose_path_is_short(name: str, inside: bool) -> None:
    with tempfile.TemporaryDirectory() as parent:
        (Path(parent) / name).mkdir()
        with temporary.of_children(Path(parent) / name) as folder:
            assert (folder.parent == Path(parent) / name) is inside


def test_spark_leaves_nothing_in_the_hosts_temporary_folder(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.sparkContext._jvm is not None
    folder = Path(spark.sparkContext._jvm.System.getProperty("java.io.tmpdir"))
    assert folder.name.startswith("coop-")
    assert not folder.samefile(tempfile.gettempdir())
    rows = spark.readStream.format("rate").load().writeStream.format("noop")
    rows.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert {"artifacts", "blockmgr", "spark"} <= {path.name.partition("-")[0] for path in folder.iterdir()}
