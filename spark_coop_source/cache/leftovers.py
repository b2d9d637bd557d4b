"""Removes blocks that no task of this host will read: their batch ran on several hosts, failed, or was the last one.

Each task holds a shared lock on `<stretch>.readers` while it reads a stretch. A stretch without such a lock is left
over `LEFT_S` after the last change of its files. Python workers cannot remove it: Spark ends them at any time, without
a signal that they could handle. So another process does, the sweeper: `python -m spark_coop_source.cache.leftovers`.
The first task of a host starts it. It imports the standard library only, and ends a minute after the last block.

    <stretch>.readers    locked by the tasks that read the stretch
    sweeper.lock         locked by the sweeper, so there is one in a folder
"""

import fcntl
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spark_coop_source.cache import folder
from spark_coop_source.cache.folder import Folder

LEFT_S = 20.0
"""Time without a reader after which a stretch is left over: tasks that wait for a slot may still begin before."""

_EVERY_S, _PATIENCE_S = 5.0, 60.0
_LOCK, _READERS = "sweeper.lock", ".readers"
_SILENT = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]


@contextmanager
def reading(stretch: str) -> Iterator[None]:
    """Keep the blocks of a stretch as long as this context lasts. Runs in executor workers."""
    fd = None
    with suppress(OSError), folder.opened(folder.SHARED_MEMORY) as files:  # without it, blocks may vanish earlier
        fd = files.open(f"{stretch}{_READERS}", os.O_WRONLY | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_SH)
        _start_sweeper(files)
    try:
        yield
    finally:
        if fd is not None:
            _end(fd, stretch)


def _end(fd: int, stretch: str) -> None:
    """End a reading. The usual last reader leaves no blocks, and removes the file of the lock."""
    with suppress(OSError), folder.opened(folder.SHARED_MEMORY) as files:
        os.utime(fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _files_of(files, stretch) == [f"{stretch}{_READERS}"]:
            files.remove(f"{stretch}{_READERS}")
    os.close(fd)


def _start_sweeper(files: Folder) -> None:
    """Start a sweeper unless one lives. It inherits the lock, so there is no moment without an owner."""
    lock = files.open(_LOCK, os.O_WRONLY | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.set_inheritable(lock, True)
        command = [sys.executable, "-m", __name__, str(folder.SHARED_MEMORY)]
        os.posix_spawn(sys.executable, command, os.environ, file_actions=_SILENT)
    finally:
        os.close(lock)


def sweep(files: Folder, left_s: float = LEFT_S) -> bool:
    """Remove the stretches that are left over. Whether others are there."""
    stretches = {re.split(r"[.-]", name)[0] for name in files.names() if "." in name and name != _LOCK}
    for stretch in stretches:
        with suppress(OSError):
            _remove(files, stretch, time.time() - left_s)
    return any(_files_of(files, stretch) for stretch in stretches)


def _remove(files: Folder, stretch: str, before: float) -> None:
    fd = _lock_of(files, stretch)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        names = _files_of(files, stretch)
        if all(file.st_mtime <= before for name, file in files.files() if name in names):
            for name in names:
                files.remove(name)
    finally:
        os.close(fd)


def _lock_of(files: Folder, stretch: str) -> int:
    try:
        return files.open(f"{stretch}{_READERS}", os.O_WRONLY)
    except FileNotFoundError:
        fd = files.open(f"{stretch}{_READERS}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.utime(fd, (0, 0))  # no task has read
        return fd


def _files_of(files: Folder, stretch: str) -> list[str]:
    return [name for name in files.names() if name.startswith((f"{stretch}.", f"{stretch}-"))]


def main(within: Path) -> None:
    """Sweep until there was no stretch for a minute, or the folder is gone."""
    empty_since = time.monotonic()
    with suppress(OSError), folder.opened(within) as files:
        while time.monotonic() - empty_since < _PATIENCE_S and within.exists():
            if sweep(files):
                empty_since = time.monotonic()
            time.sleep(_EVERY_S)
        files.remove(_LOCK)
        folder.path(within).rmdir()


if __name__ == "__main__":
    os.setsid()  # the signals to Python workers do not end it
    os.chdir("/")
    main(Path(sys.argv[1]))
