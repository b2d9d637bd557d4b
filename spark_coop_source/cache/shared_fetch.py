"""Reads a stretch that several tasks of a batch need. Each piece of it is fetched by one task of a host, for all.

At each offset of the stretch, a task does the first of these that applies:

1. The cache has a block with the offset: read the block.
2. This task publishes the piece: wait for its own publisher. An error of the publisher is an error of the task.
3. No task publishes the piece: publish it from here on. The right is a file lock, so it ends with its process.
4. Another task publishes it: wait a bounded time. If no block comes, become a second publisher, from this offset on.
5. No block comes from that either, there is no room for blocks, or a block is damaged: fetch the rest alone.

A task without a publisher publishes the next piece that nobody has begun, so all tasks decode at once:

    task 1   | publishes piece 1 |      | piece 3 |    ...     and reads its lanes in all blocks, in offset order
    task 2             | publishes piece 2 |  | piece 4 | ...

So no task needs another one to make progress. Runs in executor workers; knows the cache, and nothing of Kafka.
"""

import logging
import os
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice

import pyarrow as pa

from coordinator.plan.sharing import SharedStretch
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.cache import block_format, leftovers
from spark_coop_source.cache.blocks import Block, BlockCache, BlockReader
from spark_coop_source.cache.pieces import SharedPieces
from spark_coop_source.cache.publisher import Fetch, Publisher

log = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""Longest wait for a block of a living publisher: it may still be connecting, or wait for its own task."""

LONGEST_PAUSE_S = 0.02
"""Pause between two looks into the cache."""

AHEAD = 16
"""A publisher is at most 1 / this of the cache ahead of its own task, so that little memory is used again and again.

A piece is about as large.
"""

MOST_PIECES = min(AHEAD // 2, os.cpu_count() or 1)
"""A task publishes one of so many next pieces: as many as cores decode, and as fit into the cache."""


def stretch_name(batch: str, tp: TopicPartition, stretch: OffsetRange) -> str:
    """The name of a stretch's files. `batch` is unique, so no task reads a block of another batch."""
    return blake2b(f"{batch}/{tp}/{stretch}".encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class WantedRecords:
    """The wanted records of some offsets: the number of each part that has any, with its batch."""

    offsets: OffsetRange
    parts: Sequence[tuple[int, pa.RecordBatch]]


@dataclass(slots=True)
class SharedReading:
    """One task's reading of a shared stretch; `position` is the next offset to read."""

    cache: BlockCache
    name: str
    stretch: SharedStretch
    wanted: Sequence[int]  # numbers of parts of the stretch
    schema: pa.Schema  # of the fetched batches
    fetch: Fetch
    position: int = 0
    _pieces: SharedPieces = field(init=False)
    _publisher: Publisher | None = None
    _alone: bool = False
    _only_here: bool = False  # work ahead has failed; the task will meet the reason when it arrives
    _missed: int = -1
    _last_progress: float = 0.0
    _pause_s: float = 0.0

    def __post_init__(self) -> None:
        self._pieces = SharedPieces(self.stretch.offsets)

    def read(self) -> Generator[WantedRecords, None, None]:
        """The wanted records in offset order, up to `position`. The caller fetches the rest alone.

        A batch may also contain records outside the offsets of `WantedRecords`. Raises the errors of `fetch`.
        """
        self._moved(self.stretch.offsets.start)
        with leftovers.reading(self.name):
            try:
                while self.position < self.stretch.offsets.until and not self._alone:
                    yield from self._next()
            finally:
                self._stop_publishing()
                self.cache.forget(self.name)

    def _next(self) -> Iterator[WantedRecords]:
        publisher = self._publisher
        passed = publisher is not None and publisher.has_passed(self.position)
        block = self.cache.find(self.name, self.position)
        if block:
            yield from self._taken(block)
        elif publisher and publisher.covers(self.position):
            self._await(publisher, passed)
        elif not self._publishes(self.position):
            self._be_patient()
        self._work_ahead()

    def _work_ahead(self) -> None:
        """Publish the next piece that no task has begun, if this task publishes none."""
        if self._publisher and self._publisher.is_over(self.position):
            self._only_here |= self._publisher.failed
            self._stop_publishing()
        for start in islice(self._pieces.behind(self.position), min(self.stretch.readers, MOST_PIECES)):
            if self._publisher or self._alone or self._only_here:
                return
            if not self.cache.find(self.name, start):
                self._publishes(start)

    def _taken(self, block: Block) -> Iterator[WantedRecords]:
        with self.cache.taken(block, self.stretch.readers) as read:
            if read is None:  # it was removed between two looks: look again
                self._alone = self._missed == self.position
                self._missed = self.position
                return
            parts = self._unpacked(block, read)
        if parts is None:
            self._go_alone()
            return
        yield WantedRecords(OffsetRange(self.position, block.offsets.until), parts)
        self._pieces = self._pieces.learned(block, self._ahead)
        if self._publisher and self._publisher.covers(self.position):
            self._publisher.credit(block.size)
        self._moved(block.offsets.until)

    def _unpacked(self, block: Block, read: BlockReader) -> list[tuple[int, pa.RecordBatch]] | None:
        """The wanted batches of a block; None for a damaged block, because the cache never fails a task."""
        try:
            return list(block_format.unpacked(read, self.wanted, self.schema)) if block.size else []
        except (OSError, ValueError, EOFError, pa.ArrowException) as error:
            log.warning("a block of the cache cannot be read, so its records are fetched again: %s", error)
            return None

    def _await(self, publisher: Publisher, passed: bool) -> None:
        if passed:  # published and already removed: the cache is too small for its users
            self._go_alone()
        elif not publisher.wait(self.position):
            self._alone = publisher.refused
            self._stop_publishing()

    def _publishes(self, position: int) -> bool:
        """Whether this task publishes the piece of `position` from there on, or need not wait: no task can."""
        piece = self._pieces.at(position)
        names = [f"{self.name}-{piece.start}"]
        if position == self.position and self._waited_s() > PATIENCE_S:
            names.append(f"{self.name}-{position}-again")
        try:
            lock = next(filter(None, map(self.cache.lock, names)), None)
        except OSError:  # no other task can either
            self._only_here = True
            if position == self.position:
                self._go_alone()
            return True
        if lock is None:
            return False
        if self.cache.find(self.name, position):  # published between our look and the lock
            self.cache.unlock(lock)
            return True
        self._stop_publishing()
        self._publisher = Publisher(self.cache, lock, self.name, OffsetRange(position, piece.until), self._ahead)
        self._publisher.start(self.fetch)
        return True

    @property
    def _ahead(self) -> int:
        return self.cache.most_bytes // AHEAD

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
