"""Decides where keys end and what follows a failed call.

    the call failed on one record of a key
        fail_on names its error, or there is no OnError     the task fails
        attempts are left, and retry_on names its error
            the next one fits into the task's time          the key waits for it, while the task has other work
            it does not, or the task has been idle          deferred: the key ends here, a later batch goes on
        otherwise `then`
            fail          the task fails
            park          the key ends here, until an operator releases it
            dead_letter   the record goes to a topic, the key goes on
            skip          the key goes on

Where a task may not end early, all attempts are made in it. Runs in executor workers, on the task's own thread.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random
from time import time
from typing import Protocol

import pyarrow as pa

from coordinator.errors import FunctionFailedError
from coordinator.errors.quoting import quoted
from coordinator.progress.failing import FailingRecord
from coordinator.values.dead_letter import MESSAGE_CHARACTERS
from coordinator.values.subscription import TopicPartition
from spark_coop_source.function.call import FunctionCall
from spark_coop_source.function.keyed_work import Again, NextRecord
from spark_coop_source.function.matching import ErrorMatching
from spark_coop_source.function.slice_batches import SliceBatch

log = logging.getLogger(__name__)

IDLE_S = 1.0
"""The longest that a task with nothing else to do waits for attempts: about the time that another batch takes."""


class CallEnding(Protocol):
    """Ends the calls of the function when the time of the task is over, and keys that fail before."""

    skipped: int
    """Records that the task has left out."""

    dead_lettered: int
    """Records that the task has written to the dead-letter topic."""

    @property
    def over(self) -> bool:
        """Whether the time of the task is over."""

    @property
    def left_ms(self) -> float:
        """The rest of the time of the task for further attempts."""

    def before_key(self, tp: TopicPartition, key_hash: int, *, ahead: bool) -> bool:
        """Whether the function may still get the records of a key, in the order of `by_key`."""

    def withdraw(self, tp: TopicPartition, key_hash: int, offset: int, *, whole: bool) -> None:
        """The function did not get the records of a key from this offset on; `whole`: nor others of their batch."""

    def attempts(self, tp: TopicPartition, key_hash: int, offset: int) -> int:
        """The attempts on a record in earlier batches."""

    def defer(self, record: FailingRecord) -> None:
        """The function gets no records of a key hash from this one on."""


class DeadLetterWriter(Protocol):
    """Writes records to the dead-letter topic."""

    def send(self, row: pa.RecordBatch, error: str, message: str, attempts: int) -> None:
        """Write the one record of `row` soon."""


@dataclass(slots=True)
class Decisions:
    """See the module, and `keyed_work.Deciding`."""

    call: FunctionCall
    ending: CallEnding | None = None  # None: the task must read all of its slices
    dead_letters: DeadLetterWriter | None = None
    now_ms: Callable[[], int] = lambda: int(time() * 1000)
    chance: Callable[[], float] = random
    skipped: int = 0
    _idle_s: float = 0.0
    _first: FailingRecord | None = None  # that was skipped
    _errors: ErrorMatching | None = None

    def __post_init__(self) -> None:
        policy = self.call.policy
        self._errors = ErrorMatching.of(policy) if policy else None

    @property
    def over(self) -> bool:
        """Whether the time of the task is over."""
        return self.ending is not None and self.ending.over

    def waits(self, seconds: float) -> bool:
        """Whether the task waits so long for the next attempt, though it has nothing else to do."""
        self._idle_s += seconds
        return self.ending is None or self._idle_s <= IDLE_S

    def after(self, failed: SliceBatch, error: BaseException, earlier: FailingRecord | None) -> Again | NextRecord:
        """What follows. Raises `FunctionFailedError` if the task fails, and the errors of dead letters."""
        policy, errors = self.call.policy, self._errors
        if policy is None or errors is None or errors.fails(error):
            raise self.call.failure(error, failed) from None  # the message already shows the frames
        record = self._failing(failed, error, earlier)
        if record.attempts < policy.attempts and errors.retries(error):
            return self._again(record, policy.delay_ms(record.attempts, self.chance()))
        match policy.then:
            case "park":
                return self._park(record, failed, error)
            case "dead_letter":
                return self._dead_letter(record, failed)
            case "skip":
                return self._skip(record)
        raise self.call.failure(error, failed, _after(record)) from None

    def defer(self, record: FailingRecord) -> None:
        """The time of the task is over before the record's next attempt."""
        if self.ending:
            self.ending.defer(record)

    def withdraw(self, batch: SliceBatch) -> None:
        """The task ends before these records of one key."""
        if self.ending and batch.key_hash is not None:
            self.ending.withdraw(batch.of.topic_partition, batch.key_hash, batch.first, whole=batch.whole)

    def _failing(self, failed: SliceBatch, error: BaseException, earlier: FailingRecord | None) -> FailingRecord:
        tp, key_hash, offset = failed.of.topic_partition, failed.key_hash or 0, failed.first
        before = earlier.attempts if earlier else 0
        if earlier is None and self.ending:
            before = self.ending.attempts(tp, key_hash, offset)
        name, message = type(error).__qualname__, _message(error)[:MESSAGE_CHARACTERS]
        return FailingRecord(tp, key_hash, offset, before + 1, self.now_ms(), False, name, message)

    def _again(self, record: FailingRecord, delay_ms: int) -> Again | NextRecord:
        later = replace(record, next_ms=record.next_ms + delay_ms)
        if self.ending is None or delay_ms < self.ending.left_ms:
            return Again(delay_ms / 1000, later)
        self.ending.defer(later)
        return NextRecord.ENDED

    def _park(self, record: FailingRecord, failed: SliceBatch, error: BaseException) -> NextRecord:
        if self.ending is None:
            why = f"{_after(record)}; its key cannot be parked in a task that may not end early"
            raise self.call.failure(error, failed, why) from None
        self.ending.defer(replace(record, parked=True))
        return NextRecord.ENDED

    def _dead_letter(self, record: FailingRecord, failed: SliceBatch) -> NextRecord:
        if self.dead_letters is None:
            raise FunctionFailedError("a record cannot be written to the dead-letter topic: the task has no producer")
        self.dead_letters.send(failed.records, record.error, record.message, record.attempts)
        if self.ending:
            self.ending.dead_lettered += 1
        return NextRecord.GO_ON

    def _skip(self, record: FailingRecord) -> NextRecord:
        self._first = self._first or record
        self.skipped += 1
        if self.ending:
            self.ending.skipped += 1
        return NextRecord.GO_ON

    def close(self) -> None:
        """Log once how many records were skipped."""
        if record := self._first:
            where = f"{record.tp} offset {record.offset}"
            cause = quoted(f"{record.error}: {record.message}")
            log.warning("%d records skipped: the function fails on them; first %s, %s", self.skipped, where, cause)


def _after(record: FailingRecord) -> str:
    return f" at attempt {record.attempts}" if record.attempts > 1 else ""


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as own:  # noqa: BLE001  the user's own exception class
        return f"its text cannot be made ({type(own).__name__})"
