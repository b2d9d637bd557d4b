"""Reads one stretch of offsets of one partition from Kafka, chunk by chunk.

The life of a stretch [start, until):

1. The consumer seeks to `start`. After each poll its *position* is the end of the log that it has read.
2. A stretch ends when the position reaches `until`, with or without a record there. Compaction and transaction markers
   leave holes, also at its end.
3. After a short time without progress, it checks whether the topic still exists. If the log has the next offset, the
   consumer starts again.
   If no leader answers, it waits as long as `patience` allows, then it raises a `KafkaUnavailableError`.
4. After `poll_timeout_ms` without progress, it checks whether the log reaches the end of the stretch. If so, it raises
   a `FetchTimeoutError`.
5. Offsets that Kafka no longer has are a `DataLossError`; those that would take too much memory are a
   `BatchTooLargeError`. Without `failOnDataLoss` it skips and logs both.

Runs in executor workers. Knows Kafka and offsets; nothing of lanes, hashes, Arrow or Spark.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from time import monotonic, sleep

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    UnsupportedCodecError,
)

from coordinator.errors import (
    CoopKafkaError,
    DataLossError,
    EnvironmentMismatchError,
    FetchTimeoutError,
    KafkaUnavailableError,
    LogError,
    UnknownTopicError,
)
from coordinator.kafka import internals
from coordinator.kafka.connection import servers_of
from coordinator.kafka.errors import error_text, explained
from coordinator.progress.data_loss import LOW_MS
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Bounds, TopicPartition
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.record_batch_v2 import RawBatch, decoded
from spark_coop_source.decode.sizes import UNBOUNDED, DecodeLimits, TooLarge, UndividedUnit
from spark_coop_source.fetch.looks import LogLooks
from spark_coop_source.fetch.needed import limit
from spark_coop_source.fetch.older_formats import MessageSetTooLargeError
from spark_coop_source.fetch.patience import Patience
from spark_coop_source.fetch.refusal import refusal
from spark_coop_source.fetch.several import FIRST_POLL, POLL_MS, Begun

log = logging.getLogger(__name__)

STALL_S, LATER_S = 0.5, 5.0
"""After this time without progress, it asks Kafka whether the topic still exists; then at doubling intervals, which
do not become longer than the second."""

BEGIN_AGAIN_S = 5.0
"""After this time without progress, although the log goes on, the consumer drops its state of the partition. Very
rarely kafka-python stops to request it."""

EVERY_BATCH = 100_000
"""Most record batches of a poll: all of an answer. They are in memory, and then kafka-python requests the next one."""

CHUNK_BYTES = 4 * 1024 * 1024
"""About the size of a chunk. Records are larger in memory than on the wire if they were compressed.

The more record batches are decoded together, the less each costs; but a few chunks should fit into a processor's cache.
"""

LOW_S = LOW_MS / 1000
"""How long a log end below the next offset is looked at again before it is a loss: a new leader may not know yet how
far its log is replicated."""

REMEDY = "set failOnDataLoss=false to continue with what is left; to keep records longer, raise the topic's retention"


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How to read: the client's settings, the longest wait for a record, the action on lost records."""

    kafka: Mapping[str, object]
    poll_timeout_ms: int
    fail_on_data_loss: bool
    chunk_bytes: int = CHUNK_BYTES  # at most; a single record may be larger
    sizes: DecodeLimits = UNBOUNDED  # limits of a compressed batch, and of a record in it
    patience: Patience = field(default_factory=Patience)  # with a leader that does not answer
    stall_s: float = STALL_S  # without progress, until the first look for the reason


class StaleConsumerError(Exception):
    """The consumer waits for a broker that does not answer, and another one leads the partition by now.

    kafka-python would find out only when its request times out. A new consumer finds out at once.
    """

    def __init__(self, position: int) -> None:
        """`position` is the next offset to read."""
        super().__init__(position)
        self.position = position


def fetch(
    consumer: KafkaConsumer,
    tp: TopicPartition,
    stretch: OffsetRange,
    settings: FetchSettings,
    stopped: Callable[[], bool] = lambda: False,
    begun: Begun | None = None,
    looks: LogLooks | None = None,
) -> Iterator[Chunk]:
    """The records of `stretch` that Kafka still has, in offset order, without transaction markers.

    Under `isolation_level=read_committed` also without records of aborted transactions. `begun` has the first records
    of the stretch, which are not requested again. For the rest it assigns the consumer to `tp` alone. Ends early once
    `stopped` returns True. `looks` may be shared by the stretches of a task.

    Raises:
        DataLossError: offsets are lost, and `fail_on_data_loss` is set.
        BatchTooLargeError: a batch exceeds `settings.sizes`, and `fail_on_data_loss` is set.
        KafkaUnavailableError: no leader answers for longer than `patience` allows.
        StaleConsumerError: another broker leads the partition by now.
        FetchTimeoutError: no progress for `poll_timeout_ms` (the time between two chunks does not count).
        LogError: Kafka refuses, or a record cannot be decoded; one of its subclasses where it fits.
    """
    with nullcontext(looks) if looks else closing(LogLooks(settings.kafka)) as used:
        yield from _Stretch(consumer, used, tp, stretch, settings).read(stopped, begun)


class _Stretch:
    """One reading of one stretch. `_position` is the next offset to read; it only grows."""

    def __init__(
        self,
        consumer: KafkaConsumer,
        looks: LogLooks,
        tp: TopicPartition,
        stretch: OffsetRange,
        settings: FetchSettings,
    ) -> None:
        self._consumer = consumer
        self._looks = looks
        self._tp = tp
        self._at = KafkaTopicPartition(*tp)
        self._position = stretch.start
        self._until = stretch.until
        self._settings = settings
        self._most = int(consumer.config["max_poll_records"])
        self._next_poll = min(FIRST_POLL, self._most)
        self._low_s = min(LOW_S, settings.poll_timeout_ms / 1000)
        self._last_progress = self._next_look = 0.0

    def read(self, stopped: Callable[[], bool], begun: Begun | None = None) -> Iterator[Chunk]:
        self._moved()
        if begun:
            yield from self._wanted(begun.records)
            self._position = begun.position
        if self._position < self._until:
            self._begin()
        while self._position < self._until and not stopped():
            yield from self._poll()

    def _begin(self) -> None:
        self._consumer.assign([self._at])
        self._consumer.seek(self._at, self._position)
        self._needed = limit(self._consumer, {self._at: self._until})

    def _poll(self) -> Iterator[Chunk]:
        """The next records within the stretch, if any came; the position moves also without them."""
        try:
            records = self._polled()
            position = self._consumer.position(self._at)
        except OffsetOutOfRangeError:
            try:
                bounds = self._bounds()
            except KafkaUnavailableError as error:
                self._wait_for_kafka(error)
                return
            self._go_on_with_what_is_left(bounds)
            if bounds and bounds.end <= self._position < self._until:
                sleep(STALL_S)
            self._stalled()
            return
        except MessageSetTooLargeError as error:
            before = self._position
            self._pass_over(TooLarge(self._position, error.last_offset + 1, str(error), UndividedUnit.MESSAGE_SET))
            self._consumer.seek(self._at, self._position)
            if self._position <= before:
                self._stalled()
            return
        except LogTruncationError as error:
            self._report_loss(f"{self._tp}: the log was truncated before offset {self._position} ({error_text(error)})")
            self._consumer.seek(self._at, self._position)  # a new poll returns the records that came with the error
            return
        except Exception as error:
            failure = self._explained(error)
            if not isinstance(failure, KafkaUnavailableError | UnknownTopicError):
                raise failure from error
            sleep(POLL_MS / 1000)
            position = self._position
        if position <= self._position:
            self._stalled()
            return
        self._moved()
        yield from self._wanted(records)
        self._position = position

    def _polled(self) -> list[ConsumerRecord]:
        """The records of a poll. It also requests the next records of the stretch, which then come during decoding.

        kafka-python requests ahead only if a poll returns records at once, and not if the poll has to wait.
        """
        records: list[ConsumerRecord] = self._consumer.poll(POLL_MS, self._next_poll).get(self._at, [])
        position = self._consumer.position(self._at)
        if position > self._position:
            self._needed.saw(self._at, records)
        if records and position < self._until:
            try:
                records += self._consumer.poll(0, self._next_poll).get(self._at, [])
            except MessageSetTooLargeError:  # the next poll raises it again, with nothing before it
                self._consumer.seek(self._at, records[-1].offset + 1)
        return records

    def _wanted(self, records: Sequence[ConsumerRecord]) -> Iterator[Chunk]:
        """The chunks of a poll within the stretch; the position moves chunk by chunk."""
        try:
            for polled in self._columns(records):
                for chunk in polled.between(self._position, self._until).split(self._most):
                    if len(chunk):
                        yield chunk
                        self._position = int(chunk.offsets[-1]) + 1
                        self._moved()
                if self._position >= self._until:  # the rest of a large batch is not decompressed
                    return
        except CoopKafkaError:
            raise
        except Exception as error:
            raise self._explained(error) from error

    def _columns(self, records: Sequence[ConsumerRecord]) -> Iterator[Chunk]:
        """Decodes the record batches of a poll on demand. From records it computes the size of the next poll."""
        for raw, same in groupby(records, lambda record: isinstance(record.value, RawBatch)):
            if raw:
                batches = (record.value for record in same)
                size = min(CHUNK_BYTES, self._settings.chunk_bytes)
                within = takewhile(self._begins_within, batches)
                yield from decoded(within, self._most, size, self._settings.sizes, self._pass_over)
                self._next_poll = EVERY_BATCH
            else:
                chunk = Chunk.of(list(same))
                self._next_poll = max(1, min(self._most, CHUNK_BYTES * len(chunk) // max(1, chunk.payload)))
                yield chunk

    def _begins_within(self, batch: RawBatch) -> bool:
        return batch.base_offset < self._until

    def _moved(self) -> None:
        self._last_progress = monotonic()
        self._next_look = self._last_progress + min(self._settings.stall_s, self._settings.poll_timeout_ms / 1000)

    def _stalled(self) -> None:
        """Nothing new: look for the reason, or stop with an error."""
        now = monotonic()
        if now < self._next_look:
            return
        waited, limit = now - self._last_progress, self._settings.poll_timeout_ms / 1000
        self._next_look = now + min(waited, LATER_S, limit - waited if waited < limit else LATER_S)
        try:
            bounds = self._bounds()
        except KafkaUnavailableError as error:
            self._wait_for_kafka(error)
            return
        if waited >= limit:
            self._give_up(bounds)
        elif bounds and bounds.beginning <= self._position < bounds.end:
            if internals.leader_of(self._consumer, self._at) != self._looks.leader(self._tp):
                raise StaleConsumerError(self._position)
            if waited >= BEGIN_AGAIN_S:
                self._consumer.unsubscribe()
                self._begin()

    def _wait_for_kafka(self, error: KafkaUnavailableError) -> None:
        """No leader answers: it may come back, or another broker may lead."""
        self._settings.patience.wait(error, self._last_progress, f"the records of {self._tp}")

    def _give_up(self, bounds: Bounds | None) -> None:
        self._go_on_with_what_is_left(bounds)
        if bounds is not None and bounds.beginning <= self._position < min(bounds.end, self._until):
            raise FetchTimeoutError(
                f"{self._tp}: no progress at offset {self._position} for {self._settings.poll_timeout_ms} ms,"
                f" although the log holds {OffsetRange(bounds.beginning, bounds.end)}",
                "check whether brokers are overloaded or throttle this client; or raise kafkaConsumer.pollTimeoutMs",
            )

    def _bounds(self) -> Bounds | None:
        """The log now, up to its high watermark: open transactions are not lost.

        If the partition is gone, None, and the stretch is over. Raises `KafkaUnavailableError` without an answer.
        """
        try:
            return self._looks.bounds(self._tp)
        except UnknownTopicError as gone:
            self._lost(self._until, gone.what)
            return None

    def _go_on_with_what_is_left(self, bounds: Bounds | None) -> None:
        # stretch      |=============|
        # log             |---------------      goes on at its beginning
        # log   ------|                         nothing is left, if it still looks so after `LOW_S`
        # log      -----------                  it came back meanwhile: goes on at the same position
        if bounds is None:
            return
        if self._position < bounds.beginning:
            self._lost(min(bounds.beginning, self._until), f"the log begins at {bounds.beginning}")
        elif self._position >= bounds.end and monotonic() - self._last_progress >= self._low_s:
            self._lost(self._until, f"the log ends at {bounds.end}")
        if self._position < self._until:
            self._consumer.seek(self._at, self._position)

    def _pass_over(self, too_large: TooLarge) -> None:
        """Offsets that are too large and within the stretch: an error, or a skip."""
        start, until = max(self._position, too_large.start), min(too_large.until, self._until)
        if start >= until:
            return
        error = refusal(self._tp, OffsetRange(start, until), too_large)
        if self._settings.fail_on_data_loss:
            raise error
        count = until - start
        log.warning("%s: %s; skipped %d offsets, because failOnDataLoss=false", error.name, error.what, count)
        self._position = until
        self._moved()

    def _lost(self, until: int, why: str) -> None:
        self._report_loss(f"{self._tp}: offsets {OffsetRange(self._position, until)} can no longer be read ({why})")
        self._position = until
        self._moved()

    def _report_loss(self, what: str) -> None:
        if self._settings.fail_on_data_loss:
            raise DataLossError(what, REMEDY)
        log.warning("%s: %s; skipped, because failOnDataLoss=false", DataLossError.name, what)

    def _explained(self, error: Exception) -> CoopKafkaError:
        if isinstance(error, MemoryError):  # says nothing of the records
            raise error
        what = f"the records of {self._tp} from offset {self._position}"
        if isinstance(error, UnsupportedCodecError):
            return EnvironmentMismatchError(
                f"{what} have a compression that this Python cannot read ({error_text(error)})",
                "install coop-kafka with its dependencies where executors run",
            )
        if isinstance(error, KafkaError | OSError) and not isinstance(error, CorruptRecordError):
            return explained(error, what, servers_of(self._settings.kafka))
        return LogError(
            f"{what} cannot be decoded ({error_text(error)})",
            "check with Kafka's console consumer whether the log is damaged there, or start after these records",
        )
