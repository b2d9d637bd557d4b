"""Reads one stretch of offsets of one partition from Kafka, chunk by chunk.

The life of a stretch [start, until):

1. The consumer seeks to `start`; after each poll its *position* says how far the log has been read.
2. A stretch ends when the position reaches `until`, whether or not a record was there: compaction
   and transaction markers leave holes, also at its end.
3. No progress for a while: does the topic still exist? If the log holds what is waited for, the consumer
   begins again. For `poll_timeout_ms`: is the log as long as the stretch says? If so, it is a `FetchTimeoutError`.
4. Offsets that Kafka no longer has are a `DataLossError`, those that would take too much memory a
   `BatchTooLargeError`; without `failOnDataLoss` both are skipped and logged.

Runs in executor workers. Knows Kafka and offsets; nothing of lanes, hashes, Arrow or Spark.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, takewhile
from time import monotonic

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
from coordinator.kafka.connection import servers_of
from coordinator.kafka.errors import explained, said
from coordinator.kafka.log import KafkaLog
from coordinator.ranges import OffsetRange
from coordinator.subscription import Bounds, TopicPartition, Topics
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.record_batch_v2 import RawBatch, decoded
from spark_coop_source.decode.sizes import UNBOUNDED, Sizes, TooLarge, Whole
from spark_coop_source.fetch.older_formats import MessageSetTooLargeError
from spark_coop_source.fetch.refusal import refusal
from spark_coop_source.fetch.several import FIRST_POLL, POLL_MS, Begun

log = logging.getLogger(__name__)

STALL_S = 1.0
"""Without progress for so long, Kafka is asked whether the topic is still there; then at doubling intervals."""

BEGIN_AGAIN_S = 5.0
"""Without progress for so long, though the log goes on, the consumer forgets what it knows of the partition: very
rarely kafka-python does not ask for it any more."""

EVERY_BATCH = 100_000
"""Record batches of a poll: all that came with an answer, for they are in memory, so that the next is asked for."""

CHUNK_BYTES = 4 * 1024 * 1024
"""About what a chunk may hold; records are larger in memory than on the wire when they were compressed.

The more record batches are decoded together, the less each costs; but a few chunks should fit into a processor's cache.
"""

REMEDY = "set failOnDataLoss=false to go on with what is left; to keep records longer, raise the topic's retention"


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How to read: the client's settings, how long to wait for a record, what to do when records are gone."""

    kafka: Mapping[str, object]
    poll_timeout_ms: int
    fail_on_data_loss: bool
    chunk_bytes: int = CHUNK_BYTES  # at most; a single record may be larger
    sizes: Sizes = UNBOUNDED  # of a batch that was compressed, and of a record in it


def fetch(
    consumer: KafkaConsumer,
    tp: TopicPartition,
    stretch: OffsetRange,
    settings: FetchSettings,
    stopped: Callable[[], bool] = lambda: False,
    begun: Begun | None = None,
) -> Iterator[Chunk]:
    """The records of `stretch` that Kafka still has, in offset order; transaction markers are no records.

    Under `isolation_level=read_committed` records of aborted transactions are none either. What has `begun` of the
    stretch is not asked for again; for the rest the consumer is assigned to `tp`, whatever it was assigned to before.
    Ends early once `stopped`.

    Raises:
        DataLossError: offsets are gone and `fail_on_data_loss` says that this matters.
        BatchTooLargeError: a batch exceeds `settings.sizes`, and `fail_on_data_loss` says that this matters.
        FetchTimeoutError: nothing came for `poll_timeout_ms` (the time between two chunks does not count).
        LogError: Kafka refuses, or a record cannot be decoded; one of its subclasses where it fits.
    """
    return _Stretch(consumer, tp, stretch, settings).read(stopped, begun)


class _Stretch:
    """One reading of one stretch. `_position` is the next offset to read; it only grows."""

    def __init__(
        self, consumer: KafkaConsumer, tp: TopicPartition, stretch: OffsetRange, settings: FetchSettings
    ) -> None:
        self._consumer = consumer
        self._tp = tp
        self._at = KafkaTopicPartition(*tp)
        self._position = stretch.start
        self._until = stretch.until
        self._settings = settings
        self._most = int(consumer.config["max_poll_records"])
        self._next_poll = min(FIRST_POLL, self._most)
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

    def _poll(self) -> Iterator[Chunk]:
        """The next records within the stretch, if any came; the position moves also without them."""
        try:
            records = self._polled()
            position = self._consumer.position(self._at)
        except OffsetOutOfRangeError:
            self._go_on_with_what_is_left(self._bounds())
            self._stalled()
            return
        except MessageSetTooLargeError as error:
            before = self._position
            self._pass_over(TooLarge(self._position, error.last_offset + 1, str(error), Whole.MESSAGE_SET))
            self._consumer.seek(self._at, self._position)
            if self._position <= before:
                self._stalled()
            return
        except LogTruncationError as error:
            self._report_loss(f"{self._tp}: the log was cut before offset {self._position} ({said(error)})")
            self._consumer.seek(self._at, self._position)  # records polled with the error are polled again
            return
        except Exception as error:
            raise self._explained(error) from error
        if position <= self._position:
            self._stalled()
            return
        self._moved()
        yield from self._wanted(records)
        self._position = position

    def _polled(self) -> list[ConsumerRecord]:
        """What has come; what follows within the stretch is asked for, so that it comes while this is decoded.

        kafka-python asks ahead only if a poll finds what it gives, and not if it has to wait for it.
        """
        records: list[ConsumerRecord] = self._consumer.poll(POLL_MS, self._next_poll).get(self._at, [])
        if records and self._consumer.position(self._at) < self._until:
            try:
                records += self._consumer.poll(0, self._next_poll).get(self._at, [])
            except MessageSetTooLargeError:  # met again, with nothing before it
                self._consumer.seek(self._at, records[-1].offset + 1)
        return records

    def _wanted(self, records: Sequence[ConsumerRecord]) -> Iterator[Chunk]:
        """What of a poll lies within the stretch; the position moves chunk by chunk."""
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
        """A poll's record batches are decoded as they are asked for; records it learns from, how many to poll next."""
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
        self._next_look = self._last_progress + STALL_S

    def _stalled(self) -> None:
        """Nothing new: time to look why, or to give up."""
        now = monotonic()
        waited = now - self._last_progress
        if waited * 1000 >= self._settings.poll_timeout_ms:
            self._give_up()
        elif now >= self._next_look:
            self._next_look = now + waited
            with suppress(KafkaUnavailableError):  # it may come back within the time limit
                bounds = self._bounds()
                if bounds and waited >= BEGIN_AGAIN_S and bounds.beginning <= self._position < bounds.end:
                    self._consumer.unsubscribe()
                    self._begin()

    def _give_up(self) -> None:
        bounds = self._bounds()
        self._go_on_with_what_is_left(bounds)
        if bounds is not None and bounds.beginning <= self._position < min(bounds.end, self._until):
            raise FetchTimeoutError(
                f"{self._tp}: no progress at offset {self._position} for {self._settings.poll_timeout_ms} ms,"
                f" although the log holds {OffsetRange(bounds.beginning, bounds.end)}",
                "check whether brokers are overloaded or throttle this client; or raise kafkaConsumer.pollTimeoutMs",
            )

    def _bounds(self) -> Bounds | None:
        """What the log holds now; None, and nothing of the stretch is left, if the partition is gone."""
        kafka_log = KafkaLog(self._settings.kafka, retries=2, retry_interval_ms=500)
        try:
            kafka_log.topics(Topics((self._tp.topic,)))
            return kafka_log.bounds([self._tp])[self._tp]
        except UnknownTopicError as gone:
            self._lost(self._until, gone.what)
            return None
        finally:
            kafka_log.close()

    def _go_on_with_what_is_left(self, bounds: Bounds | None) -> None:
        # stretch      |=============|
        # log             |---------------      goes on at its beginning
        # log   ------|                         nothing is left
        # log      -----------                  it came back meanwhile: goes on where it was
        if bounds is None:
            return
        if self._position < bounds.beginning:
            self._lost(min(bounds.beginning, self._until), f"the log begins at {bounds.beginning}")
        elif self._position >= bounds.end:
            self._lost(self._until, f"the log ends at {bounds.end}")
        if self._position < self._until:
            self._consumer.seek(self._at, self._position)

    def _pass_over(self, too_large: TooLarge) -> None:
        """What is too large and lies within the stretch is an error, or skipped."""
        start, until = max(self._position, too_large.start), min(too_large.until, self._until)
        if start >= until:
            return
        error = refusal(self._tp, OffsetRange(start, until), too_large)
        if self._settings.fail_on_data_loss:
            raise error
        count = until - start
        log.warning("%s: %s; skipped %d offsets, as failOnDataLoss=false says", error.name, error.what, count)
        self._position = until
        self._moved()

    def _lost(self, until: int, why: str) -> None:
        self._report_loss(f"{self._tp}: offsets {OffsetRange(self._position, until)} can no longer be read ({why})")
        self._position = until
        self._moved()

    def _report_loss(self, what: str) -> None:
        if self._settings.fail_on_data_loss:
            raise DataLossError(what, REMEDY)
        log.warning("%s: %s; skipped, as failOnDataLoss=false says", DataLossError.name, what)

    def _explained(self, error: Exception) -> CoopKafkaError:
        what = f"the records of {self._tp} from offset {self._position}"
        if isinstance(error, UnsupportedCodecError):
            return EnvironmentMismatchError(
                f"{what} have a compression that this Python cannot read ({said(error)})",
                "install coop-kafka with its dependencies where executors run",
            )
        if isinstance(error, KafkaError | OSError) and not isinstance(error, CorruptRecordError):
            return explained(error, what, servers_of(self._settings.kafka))
        return LogError(
            f"{what} cannot be decoded ({said(error)})",
            "check with Kafka's console consumer whether the log is damaged there, or start after these records",
        )
