"""Blocks in shared memory, through which the tasks of one host hand each other what one of them has fetched.

    /dev/shm/coop-kafka-<uid>/                   ours alone: 0700, checked at each opening
        <stretch>.lock                           locked: who publishes; the kernel drops it with its process
        <stretch>-<position>.lock                who publishes beside it, from there on
        <stretch>.<start>.<until>.<size>         a block: what was in the log from `start` to before `until`
        <stretch>.free.<inode>                   memory of a block that all have read, for the next one
        <anything>.tmp                           a block that is being written, or whose writer was killed

A block appears whole (rename). At its end is one byte from each task that has read it. Memory is used again, since new
pages cost more than what is written to them: by whoever locks the file for itself, while each reader holds a shared
lock on what it reads.
Everything here may be deleted or cut at any time: whoever misses a block fetches. So an error of the file system means
"not in the cache". Two are raised, and `shared_fetch` fetches alone then: nobody can publish, a block cannot be read to
its end.

Knows files; nothing of Kafka, of chunks or of who reads what.
"""

import fcntl
import logging
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import BinaryIO, Self

from coordinator.ranges import OffsetRange
from spark_coop_source.cache import folder
from spark_coop_source.cache.folder import Folder

log = logging.getLogger(__name__)

KEPT_S = 600.0
"""Age at which what nobody took away goes: of a killed task, of a batch whose tasks ran on several hosts."""

SHARE_OF_DISK = 2
"""Our part of the file system is at most one in so many bytes: containers often have 64 MiB, and others write too."""

SHARE_OF_BLOCK = 4
"""A block takes at most one in so many bytes of the cache, or readers would never find the one they need."""

Read = Callable[[int, int], bytes]
"""So many bytes of a block from this place on, copied."""


@dataclass(frozen=True, slots=True)
class Block:
    """A file of the cache: the offsets it answers for, and the bytes of its content."""

    stretch: str
    offsets: OffsetRange
    size: int

    @property
    def name(self) -> str:
        """Its file."""
        return f"{self.stretch}.{self.offsets.start}.{self.offsets.until}.{self.size}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """The block of a file name; None for other files."""
        stretch, *numbers = name.split(".")
        if len(numbers) != 3 or not all(n.isascii() and n.isdecimal() for n in numbers):
            return None
        start, until, size = map(int, numbers)
        return cls(stretch, OffsetRange(start, until), size) if start < until else None


@dataclass(frozen=True, slots=True)
class Lock:
    """A right that is held until it is given back, or its process ends."""

    name: str
    fd: int


class BlockCache:
    """The cache of this host and user. Usable from several threads and processes at once."""

    def __init__(self, files: Folder, most_bytes: int) -> None:
        self._files = files
        self._most = most_bytes

    @property
    def most_bytes(self) -> int:
        """Bytes that all blocks together may take: of all queries of this user on this host."""
        return self._most

    def find(self, stretch: str, position: int) -> Block | None:
        """A block that holds this offset."""
        with suppress(OSError):
            names = self._files.names()
            begins_there = [name for name in names if name.startswith(f"{stretch}.{position}.")]
            for some in (begins_there, (name for name in names if name.startswith(f"{stretch}."))):
                for block in filter(None, map(Block.parse, some)):
                    if block.offsets.start <= position < block.offsets.until:
                        return block
        return None

    @contextmanager
    def taken(self, block: Block, readers: int) -> Iterator[Read | None]:
        """How to read the content, until the end of this context and no longer. None if it is gone.

        Reading raises `OSError` for a block that was cut. Each of `readers` tasks takes a block once, to the end; after
        the last of them its memory is free.
        """
        fd = self._held(block)
        if fd is None:
            yield None
            return
        try:
            yield partial(_read, fd)
            with suppress(OSError):  # no room for the byte: it goes with its age
                os.write(fd, b".")
            found = os.fstat(fd)
        finally:
            os.close(fd)
        if found.st_size >= block.size + readers:
            with suppress(OSError):
                self._files.rename(block.name, f"{block.stretch}.free.{found.st_ino}")

    def _held(self, block: Block) -> int | None:
        """The file of a block, which nobody uses for another one until it is closed; None if somebody does."""
        with suppress(OSError):
            fd = self._files.open(block.name, os.O_RDWR | os.O_APPEND)
            with _closed_on_error(fd):
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if self._files.is_at(block.name, fd):
                    return fd
                raise FileNotFoundError(block.name)
        return None

    def publish(self, block: Block, write: Callable[[BinaryIO], object]) -> bool:
        """Let others find the block whose content `write` writes; False if there is no room for it."""
        if block.size * SHARE_OF_BLOCK > self._most:
            return False
        temporary = f"{block.name}-{secrets.token_hex(4)}.tmp"  # a process id is another's in another container
        try:
            self._make_room(block.size)
            fd = self._freed(block.stretch, temporary)
            if fd is None:
                fd = self._files.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(fd, "wb") as file:
                write(file)
                file.flush()
                os.ftruncate(fd, block.size)
            self._files.rename(temporary, block.name)
        except OSError as error:
            log.info("a block of %d bytes is not shared: %s", block.size, error)
            self._files.remove(temporary)
            return False
        return True

    def _freed(self, stretch: str, name: str) -> int | None:
        """A file of this stretch that all have read, ours alone until it is closed, and renamed to `name`."""
        for free in [each for each in self._files.names() if each.startswith(f"{stretch}.free.")]:
            with suppress(OSError):  # somebody else was quicker
                fd = self._files.open(free, os.O_WRONLY)
                with _closed_on_error(fd):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._files.rename(free, name)
                return fd
        return None

    def forget(self, stretch: str) -> None:
        """Give free memory back: nothing more of this stretch is published."""
        with suppress(OSError):
            for name in self._files.names():
                if name.startswith(f"{stretch}.free."):
                    self._files.remove(name)

    def lock(self, name: str) -> Lock | None:
        """The right to publish under this name; None while a living process has it.

        Raises `OSError` where nobody can have it, as on a file system that is full or may not be written to.
        """
        try:
            fd = self._files.open(f"{name}.lock", os.O_WRONLY | os.O_CREAT)
            with _closed_on_error(fd):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self._files.is_at(f"{name}.lock", fd):  # given back between the two
                    raise FileNotFoundError(name)
        except (BlockingIOError, FileNotFoundError):
            return None
        return Lock(name, fd)

    def unlock(self, lock: Lock) -> None:
        """Give a right back. Its file goes, unless somebody has deleted it and it is another's by now."""
        try:
            with suppress(OSError):
                if self._files.is_at(f"{lock.name}.lock", lock.fd):
                    self._files.remove(f"{lock.name}.lock")
        finally:
            os.close(lock.fd)

    def _make_room(self, size: int) -> None:
        blocks = [(f.st_mtime_ns, name, f.st_size) for name, f in self._files.files() if not name.endswith(".lock")]
        total = size + sum(size for *_, size in blocks)
        for _, name, freed in sorted(blocks):
            if total <= self._most:
                return
            self._files.remove(name)
            total -= freed


def _read(fd: int, at: int, size: int) -> bytes:
    content = os.pread(fd, size, at)
    if len(content) < size:
        raise OSError(f"a block ends {size - len(content)} bytes before it should")
    return content


@contextmanager
def opened(most_bytes: int) -> Iterator[BlockCache | None]:
    """The cache of this host; None where it cannot be used safely, which is logged once."""
    with ExitStack() as stack:
        try:
            files = stack.enter_context(folder.opened(folder.SHARED_MEMORY))
            room = files.disk_bytes() // SHARE_OF_DISK
        except OSError as error:
            _tell(f"tasks on this host do not share what they fetch: {error}")
            yield None
            return
        files.sweep(KEPT_S)
        yield BlockCache(files, min(most_bytes, room))


@cache
def _tell(what: str) -> None:
    """Once in a process, not in each of its tasks."""
    log.warning(what)


@contextmanager
def _closed_on_error(fd: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(fd)
        raise
