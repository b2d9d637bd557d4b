"""Blocks that no task of this host will read are removed; those of a task that reads stay. Real processes and locks."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache import folder as cache_folder
from spark_coop_source.cache import leftovers
from spark_coop_source.cache.blocks import Block, opened
from spark_coop_source.cache.leftovers import reading, sweep
from streams import eventually

PROGRAM = """
import time
from pathlib import Path
from spark_coop_source.cache import folder, leftovers
folder.SHARED_MEMORY = Path({place!r})
with leftovers.reading("stretch"):
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of blocks. Its sweeper ends with the test."""
    monkeypatch.setattr(cache_folder, "SHARED_MEMORY", tmp_path)
    yield cache_folder.path(tmp_path)
    for sweeper in sweepers(tmp_path):
        sweeper.kill()


@pytest.fixture
def published(folder: Path) -> set[str]:
    """The files of a block of `stretch`, and of another stretch."""
    with opened(1_000) as cache:
        assert cache is not None
        for stretch in ("stretch", "other"):
            block = Block(stretch, OffsetRange(0, 5), 3)
            assert cache.publish(block, lambda file: file.write(b"abc"))
    (folder / "stretch-3.lock").touch()
    return {"stretch.0.5.3", "stretch-3.lock", "other.0.5.3"}


@pytest.fixture
def reader(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Another worker of the host, in the middle of the stretch."""
    worker = subprocess.Popen([sys.executable, "-c", PROGRAM.format(place=str(folder.parent))], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    yield worker
    worker.kill()
    worker.communicate()


def sweepers(within: Path) -> list[psutil.Process]:
    """The sweepers of a folder that live. A process that ends meanwhile has no command (`None`)."""
    command = ["-m", leftovers.__name__, str(within)]
    return [p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[1:] == command]


def names(folder: Path) -> set[str]:
    """The files, without the sweeper's lock."""
    return {each.name for each in folder.iterdir()} - {"sweeper.lock"}


def swept(within: Path, left_s: float) -> bool:
    """One sweep; whether stretches are left."""
    with cache_folder.opened(within) as files:
        return sweep(files, left_s)


def test_a_stretch_without_a_reader_is_removed_after_a_while(
    tmp_path: Path, folder: Path, published: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_start_sweeper", lambda _: None)  # it would lock the stretches meanwhile
    with reading("stretch"):
        assert swept(tmp_path, 0)
        assert names(folder) == {"stretch.0.5.3", "stretch-3.lock", "stretch.readers"}, "and the other one is gone"
    assert swept(tmp_path, leftovers.LEFT_S), "a task that waits for a slot may still begin"
    assert names(folder) == {"stretch.0.5.3", "stretch-3.lock", "stretch.readers"}
    assert not swept(tmp_path, 0)
    assert names(folder) == set()


def test_a_stretch_that_all_have_read_leaves_nothing_at_once(folder: Path) -> None:
    with reading("stretch"), reading("stretch"):
        assert names(folder) == {"stretch.readers"}
    assert names(folder) == set()


def test_the_blocks_of_a_killed_worker_are_left_over(
    tmp_path: Path, folder: Path, published: set[str], reader: "subprocess.Popen[bytes]"
) -> None:
    assert swept(tmp_path, 0)
    assert "stretch.0.5.3" in names(folder), "it lives"
    reader.send_signal(signal.SIGKILL)
    reader.wait()
    eventually(lambda: not swept(tmp_path, 0), "nothing is left")  # the sweeper may have the lock for a moment
    assert names(folder) == set()


def test_one_sweeper_of_a_folder_outlives_the_worker_that_started_it(
    tmp_path: Path, folder: Path, reader: "subprocess.Popen[bytes]"
) -> None:
    (first,) = sweepers(tmp_path)
    with reading("stretch"):
        assert sweepers(tmp_path) == [first]
    reader.kill()
    reader.wait()
    assert first.is_running()
    first.kill()
    eventually(lambda: sweepers(tmp_path) == [], "it is gone")

    def started() -> bool:
        """Whether a task has started another one. The kernel may release the lock of the first one a moment later."""
        with reading("stretch"):
            return len(sweepers(tmp_path)) == 1

    eventually(started, "a later task starts another one")


def test_the_sweeper_removes_blocks_and_ends(
    tmp_path: Path, folder: Path, published: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_EVERY_S", 0.01)
    monkeypatch.setattr(leftovers, "_PATIENCE_S", 0.5)
    for name in published:
        os.utime(folder / name, (0, 0))
    leftovers.main(tmp_path)
    assert not folder.exists()


def test_a_sweeper_without_its_folder_ends(tmp_path: Path) -> None:
    leftovers.main(tmp_path / "absent")


def test_a_folder_that_cannot_be_used_fails_no_task(tmp_path: Path, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with reading("stretch"):
        pass
    assert names(folder) == set()
    assert sweepers(tmp_path) == []
