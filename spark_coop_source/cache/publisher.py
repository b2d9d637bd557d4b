"""Fetches a piece of a stretch in its own thread and publishes it block by block.

If the later work of its task is slow, the publisher still goes on for the others, up to a bound: it publishes at most
`ahead` bytes more than its own task has read. Knows the cache; not where the records come from.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from coordinator.values.ranges import OffsetRange
from spark_coop_source.cache.block_format import Packed
from spark_coop_source.cache.blocks import Block, BlockCache, Lock


@dataclass(frozen=True, slots=True)
class Fetched:
    """The records up to an offset, one batch for each part of the stretch. None: this process cannot share them."""

    until: int
    parts: Sequence[pa.RecordBatch] | None


Fetch = Callable[[OffsetRange, Callable[[], bool]], Iterator[Fetched]]
"""Fetches the records of some offsets, until the function returns True."""


class Publisher:
    """Publishes a piece, until it is complete, there is no room, or another task publishes it."""

    def __init__(self, cache: BlockCache, lock: Lock, name: str, piece: OffsetRange, ahead: int) -> None:
        self._cache = cache
        self._lock = lock
        self._name = name
        self.piece = piece
        self._position = piece.start
        self._left = ahead
        self._changed = threading.Condition()
        self._stopped = False
        self._refused = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self, fetch: Fetch) -> None:
        """Start the thread. `fetch` and the values it yields are used in this thread only."""
        thread = threading.Thread(target=self._run, args=(fetch,), name="coop-kafka-publisher", daemon=True)
        thread.start()
        self._thread = thread

    def stop(self) -> None:
        """Stop the thread, and wait for it. It releases the right to publish at its end."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread:
            self._thread.join()
        else:
            self._cache.unlock(self._lock)

    def has_passed(self, position: int) -> bool:
        """Whether it has published this offset."""
        with self._changed:
            return self.piece.start <= position < self._position

    def covers(self, position: int) -> bool:
        """Whether this offset is in its piece."""
        return self.piece.start <= position < self.piece.until

    def is_over(self, position: int) -> bool:
        """Whether a task at this position needs it no more. Its error will be met again by a task that arrives."""
        return position >= self.piece.until or (position < self.piece.start and self._stopped)

    @property
    def failed(self) -> bool:
        """Whether it stopped because of an error, or because it could not publish a block."""
        return self._refused or self._error is not None

    def wait(self, position: int) -> bool:
        """Wait until it has published this offset (True), or stopped before it (False).

        Raises the thread's error, if this is the first offset that it could not publish.
        """
        with self._changed:
            self._left = max(self._left, 1)  # its task has read all before, perhaps from blocks of another task
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._position > position or self._stopped)
            if self._position == position and self._error:
                raise self._error
            return self._position > position

    @property
    def refused(self) -> bool:
        """Whether it stopped because it could not publish a block."""
        return self._refused

    def credit(self, size: int) -> None:
        """Its own task has read so many bytes: it may publish as many more."""
        with self._changed:
            self._left += size
            self._changed.notify_all()

    def _run(self, fetch: Fetch) -> None:
        try:
            for fetched in fetch(OffsetRange(self._position, self.piece.until), lambda: self._stopped):
                self._publish(fetched)
            if self._position < self.piece.until:  # no record remains there
                self._publish(Fetched(self.piece.until, ()))
        except Exception as error:  # noqa: BLE001  `wait` raises it again
            self._error = error
        finally:
            self._cache.unlock(self._lock)
            with self._changed:
                self._stopped = True
                self._changed.notify_all()

    def _publish(self, fetched: Fetched) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._left > 0 or self._stopped)
            if self._stopped:
                return
        if self._cache.find(self._name, self._position):  # a task that waited too long for us has published this
            with self._changed:
                self._stopped = True
            return
        size = self._published(fetched)
        with self._changed:
            self._left -= size or 0
            self._refused = size is None
            self._stopped |= self._refused
            self._position = self._position if self._refused else fetched.until
            self._changed.notify_all()

    def _published(self, fetched: Fetched) -> int | None:
        """The bytes of the block; None if it could not be published."""
        if fetched.parts is None:
            return None
        packed = Packed.of(fetched.parts)
        block = Block(self._name, OffsetRange(self._position, fetched.until), packed.size)
        return block.size if self._cache.publish(block, packed.write) else None
