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
from collections import defaultdict
from collections.abc import Iterable, Iterator
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
        lock, its_files = f"{stretch}{_READERS}", (f"{stretch}.", f"{stretch}-")
        if not any(name.startswith(its_files) for name in files.names() if name != lock):
            files.remove(lock)
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
    before, names, changed = time.time() - left_s, defaultdict[str, list[str]](list), defaultdict[str, float](float)
    for name, file in files.files():
        if "." in name and name != _LOCK:
            stretch = re.split(r"[.-]", name)[0]
            names[stretch].append(name)
            changed[stretch] = max(changed[stretch], file.st_mtime)
    gone = {stretch for stretch in names if changed[stretch] <= before and _remove(files, stretch, names[stretch])}
    return gone != names.keys()


def _remove(files: Folder, stretch: str, names: Iterable[str]) -> bool:
    """Remove these files of a stretch, unless a task reads it. Whether they are gone."""
    with suppress(OSError):
        fd = files.open(f"{stretch}{_READERS}", os.O_WRONLY | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in (*names, f"{stretch}{_READERS}"):
                files.remove(name)
            return True
        finally:
            os.close(fd)
    return False


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
