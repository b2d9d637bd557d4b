"""Blocks in shared memory: one task of a host fetches records, the other tasks read them from there.

    /dev/shm/coop-kafka-<uid>/                   ours alone: mode 0700, checked at each opening
        <stretch>-<start>.lock                   lock of a piece's publisher; the kernel drops it with its process
        <stretch>-<position>-again.lock          lock of a second publisher, from that position on
        <stretch>.readers                        lock of each task that reads the stretch; see `leftovers`
        <stretch>.<start>.<until>.<size>         a block: the log from `start` to before `until`
        <stretch>.free.<inode>                   memory of a block that all have read, free for the next block
        <anything>.tmp                           a block in writing, or left by a killed writer

A block appears whole (rename). It ends with one byte from each task that has read it. Memory is used again, because new
pages cost more than the write to them. A reader has a shared lock on its block; a publisher that uses the memory again
needs an exclusive lock.

Any process may delete or cut these files at any time; a task that misses a block fetches. So an error of the file
system means "not in the cache". Two errors are raised, and `shared_fetch` then fetches alone: no process can publish,
or a block cannot be read to its end.

Knows files; nothing of Kafka, of chunks, or of the tasks' slices.
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

from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache import folder
from spark_coop_source.cache.folder import Folder

log = logging.getLogger(__name__)

KEPT_S = 600.0
"""Age at which unused files are removed if no sweeper has done so."""

SHARE_OF_DISK = 2
"""Our share of the file system is at most 1 / this: containers often have 64 MiB, and other programs write too."""

SHARE_OF_BLOCK = 4
"""A block takes at most 1 / this of the cache. With larger blocks, readers would rarely find theirs."""

_NO_BLOCKS = (".lock", ".readers")

BlockReader = Callable[[int, int], bytes]
"""Copies so many bytes of a block, from this place on."""


@dataclass(frozen=True, slots=True)
class Block:
    """A file of the cache: the offsets that it covers, and the bytes of its content."""

    stretch: str
    offsets: OffsetRange
    size: int

    @property
    def name(self) -> str:
        """Its file name."""
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
    """A lock on a file. It lasts until `unlock`, or until its process ends."""

    name: str
    fd: int


class BlockCache:
    """The cache of this host and user. Several threads and processes may use it at once."""

    def __init__(self, files: Folder, most_bytes: int) -> None:
        self._files = files
        self._most = most_bytes

    @property
    def most_bytes(self) -> int:
        """Bytes that all blocks together may take, over all queries of this user on this host."""
        return self._most

    def find(self, stretch: str, position: int) -> Block | None:
        """A block that contains this offset."""
        with suppress(OSError):
            names = self._files.names()
            begins_there = [name for name in names if name.startswith(f"{stretch}.{position}.")]
            for some in (begins_there, (name for name in names if name.startswith(f"{stretch}."))):
                for block in filter(None, map(Block.parse, some)):
                    if block.offsets.start <= position < block.offsets.until:
                        return block
        return None

    @contextmanager
    def taken(self, block: Block, readers: int) -> Iterator[BlockReader | None]:
        """A function that reads the content, valid until this context ends. None if the block is gone.

        It raises `OSError` for a block that was cut. Each of `readers` tasks takes a block once and reads it to the
        end. After the last of them, the memory of the block is free.
        """
        fd = self._held(block)
        if fd is None:
            yield None
            return
        try:
            yield partial(_read, fd)
            with suppress(OSError):  # no room for the byte: the block is removed by age
                os.write(fd, b".")
            found = os.fstat(fd)
        finally:
            os.close(fd)
        if found.st_size >= block.size + readers:
            with suppress(OSError):
                self._files.rename(block.name, f"{block.stretch}.free.{found.st_ino}")

    def _held(self, block: Block) -> int | None:
        """The descriptor of a block, locked against reuse until it is closed; None if its memory is in use again."""
        with suppress(OSError):
            fd = self._files.open(block.name, os.O_RDWR | os.O_APPEND)
            with _closed_on_error(fd):
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if self._files.is_at(block.name, fd):
                    return fd
                raise FileNotFoundError(block.name)
        return None

    def publish(self, block: Block, write: Callable[[BinaryIO], object]) -> bool:
        """Write a block with `write` and make it visible to other tasks; False if there is no room."""
        if block.size * SHARE_OF_BLOCK > self._most:
            return False
        temporary = f"{block.name}-{secrets.token_hex(4)}.tmp"  # containers may share process ids
        try:
            self._make_room(block.size)
            fd = self._freed(block.stretch, temporary)
            if fd is None:
                fd = self._files.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(fd, "wb") as file:
                write(file)
                if file.tell() != block.size:
                    raise OSError(f"{file.tell()} bytes were written")
                file.flush()
                os.ftruncate(fd, block.size)
            self._files.rename(temporary, block.name)
        except OSError as error:
            log.info("a block of %d bytes is not shared: %s", block.size, error)
            self._files.remove(temporary)
            return False
        return True

    def _freed(self, stretch: str, name: str) -> int | None:
        """A free file of this stretch, locked for us until it is closed, and renamed to `name`."""
        for free in [each for each in self._files.names() if each.startswith(f"{stretch}.free.")]:
            with suppress(OSError):  # another process was quicker
                fd = self._files.open(free, os.O_WRONLY)
                with _closed_on_error(fd):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._files.rename(free, name)
                return fd
        return None

    def forget(self, stretch: str) -> None:
        """Remove the free memory of this stretch. A task that still publishes some of it takes new memory."""
        with suppress(OSError):
            for name in self._files.names():
                if name.startswith(f"{stretch}.free."):
                    self._files.remove(name)

    def lock(self, name: str) -> Lock | None:
        """The right to publish under this name; None while a living process has it.

        Raises `OSError` where no process can get it: the file system is full or read-only.
        """
        try:
            fd = self._files.open(f"{name}.lock", os.O_WRONLY | os.O_CREAT)
            with _closed_on_error(fd):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self._files.is_at(f"{name}.lock", fd):  # its owner released it between the two calls
                    raise FileNotFoundError(name)
        except (BlockingIOError, FileNotFoundError):
            return None
        return Lock(name, fd)

    def unlock(self, lock: Lock) -> None:
        """Release a right, and remove its file. If another process made a new file of that name, it stays."""
        try:
            with suppress(OSError):
                if self._files.is_at(f"{lock.name}.lock", lock.fd):
                    self._files.remove(f"{lock.name}.lock")
        finally:
            os.close(lock.fd)

    def _make_room(self, size: int) -> None:
        blocks = [(f.st_mtime_ns, name, f.st_size) for name, f in self._files.files() if not name.endswith(_NO_BLOCKS)]
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
    """The cache of this host; None where it is not safe to use, with one log line."""
    with ExitStack() as stack:
        try:
            files = stack.enter_context(folder.opened(folder.SHARED_MEMORY))
            room = files.disk_bytes() // SHARE_OF_DISK
        except OSError as error:
            _log_once(f"tasks on this host do not share fetched records: {error}")
            yield None
            return
        if room < most_bytes:
            _log_once(
                f"the cache of this host gets {room >> 20} MiB, half of {folder.SHARED_MEMORY}, and not the "
                f"{most_bytes >> 20} MiB of sharedCache: tasks may fetch records again. Remedy: give a "
                "container more shared memory (docker run --shm-size, Kubernetes an emptyDir with medium: Memory), or "
                "lower the option"
            )
        files.sweep(KEPT_S)
        yield BlockCache(files, min(most_bytes, room))


@cache
def _log_once(what: str) -> None:
    """Log once in a process, not in each of its tasks."""
    log.warning(what)


@contextmanager
def _closed_on_error(fd: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(fd)
        raise
