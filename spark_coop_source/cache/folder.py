"""A folder in shared memory that is ours alone, and operations on its files.

All operations use its descriptor, so that no other process can put another folder in its place. Knows files; nothing of
blocks.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  ours within it is checked: owner, mode, no link


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder. A missing file is an error only if the method's docstring names it."""

    fd: int

    def open(self, name: str, flags: int) -> int:
        """Open a file of the folder, as `os.open`; never follows a link."""
        return os.open(name, flags | os.O_NOFOLLOW, 0o600, dir_fd=self.fd)

    def rename(self, name: str, to: str) -> None:
        """As `os.rename`."""
        os.rename(name, to, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists and can be removed."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.fd)

    def is_at(self, name: str, fd: int) -> bool:
        """Whether the open file is still the file of this name; raises `FileNotFoundError` if there is none."""
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_ino == os.fstat(fd).st_ino

    def names(self) -> list[str]:
        """All files. Uses a descriptor of its own: two threads that list by the same descriptor each get a part."""
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.fd)
        try:
            return os.listdir(listing)  # noqa: PTH208  a descriptor, not a path
        finally:
            os.close(listing)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """All files with their `stat`."""
        for name in self.names():
            with suppress(FileNotFoundError):
                yield name, os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def sweep(self, kept_s: float) -> None:
        """Remove the files that were last written longer ago than this and are not locked."""
        with suppress(OSError):
            oldest = time.time() - kept_s
            for name, file in self.files():
                if file.st_mtime < oldest:
                    self._remove_unlocked(name)

    def _remove_unlocked(self, name: str) -> None:
        with suppress(OSError):
            fd = self.open(name, os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.remove(name)
            finally:
                os.close(fd)

    def disk_bytes(self) -> int:
        """The size of its file system."""
        disk = os.fstatvfs(self.fd)
        return disk.f_frsize * disk.f_blocks


def path(within: Path) -> Path:
    """The path of our folder."""
    return within / f"coop-kafka-{os.getuid()}"


@contextmanager
def opened(within: Path) -> Iterator[Folder]:
    """Our folder; raises `OSError` if it belongs to another user, is a link, or is open to others."""
    with suppress(FileExistsError):
        path(within).mkdir(mode=0o700)
    fd = os.open(path(within), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{path(within)} is not ours alone")
        yield Folder(fd)
    finally:
        os.close(fd)
