"""Small file systems, so that a disk can be full. They need Linux, root and `unshare`."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def with_own_mounts() -> list[str]:
    """What starts a command with mounts that nobody else sees; empty where that is not allowed."""
    unshare = shutil.which("unshare")
    if not unshare or os.geteuid() or subprocess.run([unshare, "--mount", "true"], check=False).returncode:
        return []
    return [unshare, "--mount", "--"]


@contextmanager
def own_disk(folder: Path) -> Iterator[None]:
    """A small file system at a new folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", folder], check=True)  # noqa: S607
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)  # noqa: S607
    folder.rmdir()


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """It has no room within the block."""
    rest = folder / "rest"
    try:
        with rest.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4_096))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    yield
    rest.unlink()


def copy(folder: Path, other: Path) -> None:
    """Its files, without their holes: Kafka allocates 10 MB for each index."""
    subprocess.run(["cp", "-a", "--sparse=always", f"{folder}/.", other], check=True)  # noqa: S607
