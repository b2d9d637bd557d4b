"""Blocks in shared memory: found whole or not at all, bounded, ours alone; nothing there can fail a task."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache import blocks as block_cache
from spark_coop_source.cache import folder as cache_folder
from spark_coop_source.cache.blocks import Block, BlockCache, opened

CONTENT = b"records" * 100
ROOM = 10_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache_folder, "SHARED_MEMORY", tmp_path)
    return tmp_path / f"coop-kafka-{os.getuid()}"


@pytest.fixture
def cache(folder: Path) -> Iterator[BlockCache]:
    with opened(ROOM) as found:
        assert found is not None
        yield found


def block(start: int, until: int, content: bytes = CONTENT) -> Block:
    return Block("stretch", OffsetRange(start, until), len(content))


def take(cache: BlockCache, wanted: Block, readers: int = 2) -> bytes | None:
    with cache.taken(wanted, readers) as read:
        return None if read is None else read(0, wanted.size)


def publish(cache: BlockCache, start: int, until: int, content: bytes = CONTENT) -> bool:
    return cache.publish(block(start, until, content), lambda file: file.write(content))


def test_a_block_is_found_by_any_of_its_offsets(cache: BlockCache) -> None:
    assert publish(cache, 10, 20)
    assert [cache.find("stretch", at) for at in (9, 10, 15, 19, 20)] == [None, *[block(10, 20)] * 3, None]
    assert cache.find("other", 15) is None
    assert take(cache, block(10, 20)) == CONTENT


def test_a_block_goes_when_all_its_readers_have_taken_it(cache: BlockCache, folder: Path) -> None:
    publish(cache, 0, 5)
    assert [take(cache, block(0, 5), readers=3) for _ in range(4)] == [CONTENT, CONTENT, CONTENT, None]
    assert cache.find("stretch", 0) is None
    cache.forget("stretch")
    assert list(folder.iterdir()) == []


def test_memory_that_all_have_read_is_used_again(cache: BlockCache, folder: Path) -> None:
    publish(cache, 0, 5)
    memory = (folder / block(0, 5).name).stat().st_ino
    assert take(cache, block(0, 5), readers=1) == CONTENT
    publish(cache, 5, 9, b"short")
    assert (folder / block(5, 9, b"short").name).stat().st_ino == memory
    taken = [take(cache, block(5, 9, b"short")) for _ in range(3)]
    assert taken == [b"short", b"short", None], "nothing is left of what was in it, nor of who had read that"


def test_memory_with_a_reader_is_not_used_again(cache: BlockCache) -> None:
    """As when a task runs twice and counts for two: the last reader is then not the last."""
    publish(cache, 0, 5)
    with cache.taken(block(0, 5), 2) as read:
        assert [take(cache, block(0, 5)) for _ in range(2)] == [CONTENT, CONTENT]
        publish(cache, 5, 9, bytes(len(CONTENT)))
        assert read is not None
        assert read(0, len(CONTENT)) == CONTENT


def test_a_reader_that_ends_early_does_not_count(cache: BlockCache) -> None:
    publish(cache, 0, 5)
    with pytest.raises(KeyError), cache.taken(block(0, 5), 1):
        raise KeyError
    assert take(cache, block(0, 5), readers=1) == CONTENT


def test_a_block_without_records_is_stored(cache: BlockCache) -> None:
    assert publish(cache, 0, 5, b"")
    assert take(cache, block(0, 5, b"")) == b""


def test_the_oldest_blocks_make_room(cache: BlockCache) -> None:
    content = bytes(ROOM // 5)
    for at in range(7):
        assert publish(cache, at, at + 1, content)
    assert [cache.find("stretch", at) is not None for at in range(7)] == [False, False, *[True] * 5]


def test_memory_that_is_used_again_makes_room_as_new_memory_does(cache: BlockCache, folder: Path) -> None:
    stretches = [f"stretch{i}" for i in range(6)]
    for content in (b"small", bytes(ROOM // 4)):
        for stretch in stretches:
            each = Block(stretch, OffsetRange(len(content), len(content) + 1), len(content))
            assert cache.publish(each, lambda file, content=content: file.write(content))  # type: ignore[misc]
            assert take(cache, each, readers=1) == content
    assert sum(file.stat().st_size for file in folder.iterdir()) <= ROOM


def test_a_file_of_a_killed_writer_does_not_hide_a_block(cache: BlockCache, folder: Path) -> None:
    publish(cache, 0, 5)
    (folder / f"{block(3, 9).name}-0a1b2c3d.tmp").touch()
    assert cache.find("stretch", 3) == block(0, 5)


def test_a_block_that_would_leave_no_room_for_others_is_refused(cache: BlockCache, folder: Path) -> None:
    assert not publish(cache, 0, 5, bytes(ROOM // 4 + 1))
    assert list(folder.iterdir()) == []


def test_a_block_of_another_size_than_it_says_is_not_shared(cache: BlockCache, folder: Path) -> None:
    """In memory that is used again, bytes of the block before would follow."""
    assert not cache.publish(block(0, 5), lambda file: file.write(CONTENT[:-1]))
    assert not cache.publish(block(0, 5), lambda file: file.write(CONTENT + b"."))
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_no_error_and_leaves_nothing(cache: BlockCache, folder: Path) -> None:
    def writes(_: object) -> None:
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(CONTENT)  # the system's own ENOSPC

    assert not cache.publish(block(0, 5), writes)
    assert list(folder.iterdir()) == []


def test_one_task_has_the_right_to_publish_until_it_returns_it(cache: BlockCache, folder: Path) -> None:
    first = cache.lock("stretch")
    assert first is not None
    assert cache.lock("stretch") is None
    cache.unlock(first)
    second = cache.lock("stretch")
    assert second is not None
    cache.unlock(second)
    assert list(folder.iterdir()) == []


def test_a_right_that_no_task_can_have_is_an_error_at_once(cache: BlockCache) -> None:
    with pytest.raises(OSError, match="File name too long"):  # as it would be without a free inode
        cache.lock("stretch" * 100)


def test_the_right_of_a_killed_writer_is_free_and_its_half_block_is_never_seen(cache: BlockCache, folder: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache import blocks as block_cache, folder
folder.SHARED_MEMORY = Path({str(folder.parent)!r})
def killed(file):
    file.write(b"half"); file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
with block_cache.opened({ROOM}) as cache:
    assert cache.lock("stretch")
    cache.publish(block_cache.Block("stretch", OffsetRange(0, 5), 700), killed)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert any(file.name.endswith(".tmp") for file in folder.iterdir())
    assert cache.find("stretch", 0) is None
    assert cache.lock("stretch") is not None
    assert publish(cache, 0, 5)


def test_old_files_are_deleted_at_the_next_use(cache: BlockCache, folder: Path) -> None:
    publish(cache, 0, 5)
    publish(cache, 5, 9)
    (folder / "killed.tmp").touch()
    long_ago = time.time() - block_cache.KEPT_S - 1
    for name in (block(0, 5).name, "killed.tmp"):
        os.utime(folder / name, (long_ago, long_ago))
    with opened(ROOM):
        assert [file.name for file in folder.iterdir()] == [block(5, 9).name]


def test_a_right_that_is_held_does_not_go_with_its_age(cache: BlockCache, folder: Path) -> None:
    held = cache.lock("stretch")
    assert held is not None
    (folder / "killed.lock").touch()
    long_ago = time.time() - block_cache.KEPT_S - 1
    for file in folder.iterdir():
        os.utime(file, (long_ago, long_ago))
    with opened(ROOM) as another:
        assert [file.name for file in folder.iterdir()] == ["stretch.lock"]
        assert another is not None
        assert another.lock("stretch") is None
    cache.unlock(held)
    assert list(folder.iterdir()) == []


def test_a_right_is_returned_only_by_its_owner(cache: BlockCache, folder: Path) -> None:
    first = cache.lock("stretch")
    (folder / "stretch.lock").unlink()
    second = cache.lock("stretch")
    assert first is not None
    assert second is not None, "everything here may be deleted at any time"
    cache.unlock(first)
    assert cache.lock("stretch") is None
    cache.unlock(second)
    assert list(folder.iterdir()) == []


def test_only_the_owner_may_look_in(cache: BlockCache, folder: Path) -> None:
    publish(cache, 0, 5)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the owner of a folder")
def test_a_folder_of_another_user_is_not_used_and_stays(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(mode=0o700)
    (folder / "theirs").touch()
    os.chown(folder, os.getuid() + 1, -1)
    for _ in range(3):
        with opened(ROOM) as cache:
            assert cache is None
    assert len([message for message in caplog.messages if "is not ours alone" in message]) == 1, "logged once"
    assert [file.name for file in folder.iterdir()] == ["theirs"]


@pytest.mark.parametrize("trap", ["open to others", "a link", "a file"])
def test_a_folder_that_is_not_ours_alone_is_not_used(folder: Path, trap: str, caplog: pytest.LogCaptureFixture) -> None:
    if trap == "open to others":
        folder.mkdir()
        folder.chmod(0o755)
    elif trap == "a link":
        (folder.parent / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(folder.parent / "elsewhere")
    else:
        folder.touch()
    with opened(ROOM) as cache:
        assert cache is None
    assert "do not share fetched records" in caplog.text


def test_a_link_in_place_of_a_block_is_not_followed(cache: BlockCache, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(CONTENT)
    (folder / block(0, 5).name).symlink_to(tmp_path / "secret")
    assert take(cache, block(0, 5)) is None
    assert (tmp_path / "secret").read_bytes() == CONTENT


def test_a_small_disk_is_never_filled_by_us_and_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = os.statvfs(folder.parent)
    for _ in range(3):
        with opened(2**60) as cache:
            assert cache is not None
            assert cache.most_bytes == disk.f_frsize * disk.f_blocks // block_cache.SHARE_OF_DISK
    assert len([message for message in caplog.messages if "give a container more shared memory" in message]) == 1
