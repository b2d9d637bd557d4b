"""Reads a stretch that several tasks of a batch read: fetched once on a host, by whichever of them comes first.

What a task does at each offset of the stretch, in this order:

1. A block that holds the offset is in the cache: take it.
2. This task publishes: wait for its own publisher, whose errors are the task's.
3. Nobody publishes: become the publisher from here on. The right is a lock, which the kernel takes from the dead.
4. Somebody publishes: wait, but not for ever. A publisher that has shown nothing for a while gets a second one
   beside it, from this offset on; where that shows nothing either,
5. or where there is no room for blocks, or a block is damaged: it fetches the rest alone, as without a cache.

So no task depends on another to go on. Runs in executor workers; knows the cache, and nothing of Kafka.
"""

import logging
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa

from coordinator.plan.sharing import SharedStretch
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition
from spark_coop_source.cache import block_format
from spark_coop_source.cache.blocks import Block, BlockCache, Read
from spark_coop_source.cache.publisher import Fetch, Publisher

log = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""Without a block from a living publisher: it may still be connecting, or its own task may be held up."""

LONGEST_PAUSE_S = 0.02
"""Between two looks into the cache."""

AHEAD = 16
"""A publisher is ahead of its own task by at most one in so many bytes of the cache: what is used again stays small."""


def stretch_name(batch: str, tp: TopicPartition, stretch: OffsetRange) -> str:
    """What the files of a stretch are called; `batch` is unique, so that nothing of another batch is ever taken."""
    return blake2b(f"{batch}/{tp}/{stretch}".encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Found:
    """The records of some offsets, as far as wanted: for each part that has any its number, and a batch."""

    offsets: OffsetRange
    parts: Sequence[tuple[int, pa.RecordBatch]]


@dataclass(slots=True)
class SharedReading:
    """The reading of a shared stretch by one of its readers; `position` is the next offset to read."""

    cache: BlockCache
    name: str
    stretch: SharedStretch
    wanted: Sequence[int]  # numbers of parts of the stretch
    schema: pa.Schema  # of what is fetched
    fetch: Fetch
    position: int = 0
    _publisher: Publisher | None = None
    _alone: bool = False
    _missed: int = -1
    _last_progress: float = 0.0
    _pause_s: float = 0.0

    def read(self) -> Generator[Found, None, None]:
        """What is wanted of the stretch, in offset order, up to `position`: the rest is better fetched alone.

        A batch may hold records of other offsets besides those found. Raises what `fetch` raises.
        """
        self._moved(self.stretch.offsets.start)
        try:
            while self.position < self.stretch.offsets.until and not self._alone:
                yield from self._next()
        finally:
            self._stop_publishing()
            self.cache.forget(self.name)

    def _next(self) -> Iterator[Found]:
        passed = self._publisher is not None and self._publisher.has_passed(self.position)
        block = self.cache.find(self.name, self.position)
        if block:
            yield from self._taken(block)
        elif self._publisher:
            self._await(self._publisher, passed)
        elif not self._publishes():
            self._be_patient()

    def _taken(self, block: Block) -> Iterator[Found]:
        with self.cache.taken(block, self.stretch.readers) as read:
            if read is None:  # it went between two looks: look once more
                self._alone = self._missed == self.position
                self._missed = self.position
                return
            parts = self._unpacked(block, read)
        if parts is None:
            self._go_alone()
            return
        yield Found(OffsetRange(self.position, block.offsets.until), parts)
        if self._publisher:
            self._publisher.read(block.size)
        self._moved(block.offsets.until)

    def _unpacked(self, block: Block, read: Read) -> list[tuple[int, pa.RecordBatch]] | None:
        """What is wanted of a block; None for one that somebody has damaged: the cache fails no task."""
        try:
            return list(block_format.unpacked(read, self.wanted, self.schema)) if block.size else []
        except (OSError, ValueError, EOFError, pa.ArrowException) as error:
            log.warning("a block of the cache cannot be read, so its records are fetched again: %s", error)
            return None

    def _await(self, publisher: Publisher, passed: bool) -> None:
        if passed:  # published and gone already: the cache is too small for all that use it
            self._go_alone()
        elif not publisher.wait(self.position):
            self._alone = publisher.refused
            self._stop_publishing()

    def _publishes(self) -> bool:
        """Whether this task need not wait: it may publish from here on and does, or nobody ever can."""
        names = [self.name]
        if self._waited_s() > PATIENCE_S:
            names.append(f"{self.name}-{self.position}")
        try:
            lock = next(filter(None, map(self.cache.lock, names)), None)
        except OSError:  # nor can anybody else
            self._go_alone()
            return True
        if lock is None:
            return False
        if self.cache.find(self.name, self.position):  # published between our look and the lock
            self.cache.unlock(lock)
            return True
        ahead = max(1, self.cache.most_bytes // AHEAD)  # or it would wait for its own task, and that for it
        left = OffsetRange(self.position, self.stretch.offsets.until)
        self._publisher = Publisher(self.cache, lock, self.name, left, ahead)
        self._publisher.start(self.fetch)
        return True

    def _be_patient(self) -> None:
        if self._waited_s() > 2 * PATIENCE_S:
            self._go_alone()
        else:
            self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2)
            time.sleep(self._pause_s)

    def _go_alone(self) -> None:
        self._stop_publishing()
        self._alone = True

    def _stop_publishing(self) -> None:
        if self._publisher:
            self._publisher.stop()
            self._publisher = None

    def _moved(self, position: int) -> None:
        self.position = position
        self._last_progress = time.monotonic()
        self._pause_s = LONGEST_PAUSE_S / 4

    def _waited_s(self) -> float:
        return time.monotonic() - self._last_progress
