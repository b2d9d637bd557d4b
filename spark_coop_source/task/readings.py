"""Reads the records of some slices of a partition: alone, or together with other tasks of the host.

    alone     fetch | the rows in the slices | the filter | those as a batch
    shared    fetch | the rows of each part of the stretch | the filter | a batch of each | the cache
                                                                                             by one task for all
              the cache | the batches of this task's parts | in offset order                 by each task

So a record that the filter drops is copied nowhere, and a shared block holds none. Blocks are of one query.
Adds the key hash as a column where the function's batches are cut by it. `fetch` and `cache` get the records, `select`
chooses the rows, `arrow_output` makes the columns. Runs in executor workers.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import pyarrow as pa
from kafka import KafkaConsumer

from coordinator.errors import KafkaUnavailableError, LogError
from coordinator.plan.sharing import SharedStretch
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HashRange, OffsetRange, union
from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output.record_batch import completed, shared, to_arrow
from spark_coop_source.cache.blocks import BlockCache, opened
from spark_coop_source.cache.publisher import Fetched
from spark_coop_source.cache.shared_fetch import SharedReading, WantedRecords, stretch_name
from spark_coop_source.decode.arrow_columns import numbers
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.sizes import DecodeLimits
from spark_coop_source.fetch.ahead import ahead
from spark_coop_source.fetch.consumers import answer_bytes, borrowed, fetch_limits, record_bytes
from spark_coop_source.fetch.fetch import STALL_S, FetchSettings, StaleConsumerError, fetch
from spark_coop_source.fetch.looks import LogLooks
from spark_coop_source.fetch.patience import Patience
from spark_coop_source.fetch.several import SHORT, Begun, at_once, begun
from spark_coop_source.select.chosen import Chosen, Hashed
from spark_coop_source.select.filtering import Filtering
from spark_coop_source.select.hash_column import HASH, offsets_of, with_hashes
from spark_coop_source.select.lanes import by_part, within
from spark_coop_source.task.acknowledging import Acknowledging
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.reads import RecordsRead

KNOWN_STALL_S = 0.1
"""The first look for the reason of a stall, in a task in which a leader was away before."""

Slices = Mapping[TopicPartition, Sequence[Slice]]


@dataclass(slots=True)
class Readings:
    """The means of one task to read: a consumer, opened at its first use, and the cache of the host."""

    task: SlicePartition
    columns: Collection[str]
    partitions: Iterable[TopicPartition]
    hashed: Collection[TopicPartition] | None = None  # partitions whose batches carry key hashes; None: in no task
    filtered: Counter[TopicPartition] = field(default_factory=Counter)  # records that the filter dropped, counted here
    patience: Patience = field(default_factory=Patience)  # after it, a leader that is away is `KafkaUnavailableError`
    _stack: ExitStack = field(default_factory=ExitStack)
    _borrowing: ExitStack = field(default_factory=ExitStack)
    _consumer: KafkaConsumer | None = None
    _away: KafkaUnavailableError | None = None  # the leader of a partition did not answer
    _unreached: KafkaUnavailableError | None = None  # no broker answered, so there is no consumer
    _begun: dict[TopicPartition, Begun] = field(default_factory=dict)
    _cache: BlockCache | None = None
    _filter: Filtering = field(init=False)
    _looks: LogLooks = field(init=False)

    def __post_init__(self) -> None:
        self._looks = LogLooks(self.task.kafka)
        self._filter = Filtering(self.task.filter)

    def __enter__(self) -> Self:
        self._stack.push(self._borrowing)
        self._stack.callback(self._looks.close)
        if self.task.sharing:
            self._cache = self._stack.enter_context(opened(self.task.sharing.most_bytes))
        return self

    def __exit__(self, *error: object) -> None:
        if self._away:  # the consumer may still wait for that leader
            self._drop(self._away)
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def each(self, slices: Slices) -> Iterator[tuple[TopicPartition, Generator[RecordsRead, None, None]]]:
        """Each partition with its records. Short partitions come first; one request begins several of them."""
        firsts = {tp: _first(of_one) for tp, of_one in slices.items()}
        short = [tp for tp, first in firsts.items() if self._is_short(tp, first)]
        long = slices.keys() - set(short)
        most = self.task.most_unfiltered
        together = at_once(fetch_limits(self.task.kafka, most)["max_partition_fetch_bytes"], answer_bytes(most))
        for group in (short[at : at + together] for at in range(0, len(short), together)):
            begin = partial(self._begin, {tp: firsts[tp] for tp in group})
            yield from ((tp, self._short(tp, slices[tp], begin if tp == group[0] else None)) for tp in group)
        yield from ((tp, self.of(tp, slices[tp])) for tp in sorted(long))

    def _is_short(self, tp: TopicPartition, first: OffsetRange) -> bool:
        shared = self.task.sharing and tp in self.task.sharing.stretches
        return not shared and len(first) <= SHORT

    def _short(
        self, tp: TopicPartition, slices: Sequence[Slice], begin: Callable[[], None] | None
    ) -> Generator[RecordsRead, None, None]:
        if begin:  # here, so that the meter counts this time
            begin()
        yield from self.of(tp, slices)

    def _begin(self, stretches: Mapping[TopicPartition, OffsetRange]) -> None:
        if len(stretches) > 1:
            self._begun = begun(self._opened(), stretches, answer_bytes(self.task.most_unfiltered))

    def of(self, tp: TopicPartition, slices: Sequence[Slice]) -> Generator[RecordsRead, None, None]:
        """The records of this partition that lie in `slices` and that Kafka still has.

        In offset order; raises the errors of `fetch`.
        """
        sharing, stretches = self.task.sharing, union(s.offsets for s in slices)
        acknowledging = Acknowledging(self.task.strips[tp], stretches) if self.task.strips else None
        for read in stretches:
            for offsets, stretch in parted(read, sharing.stretches.get(tp, ()) if sharing else ()):
                if stretch and sharing and self._cache:
                    name = stretch_name(sharing.batch, tp, offsets)
                    yield from self._together(self._cache, name, tp, slices, stretch)
                else:
                    yield from self._alone(tp, slices, offsets, acknowledging)
        if acknowledging:
            yield RecordsRead(pa.RecordBatch.from_pylist([]), stretches[-1].until, acknowledging.holes)

    def _alone(
        self,
        tp: TopicPartition,
        slices: Sequence[Slice],
        offsets: OffsetRange,
        acknowledging: Acknowledging | None = None,
    ) -> Iterator[RecordsRead]:
        def made(stopped: Callable[[], bool]) -> Generator[RecordsRead, None, None]:
            for chunk in self._fetched(tp, offsets, stopped):
                of = Hashed(chunk)
                chosen = self._filter.chosen(of, within(of, slices))
                self.filtered[tp] += chosen.dropped
                records = _batch(tp, chosen, self._columns(tp))
                records = acknowledging.added(records, chosen) if acknowledging else records
                yield RecordsRead(records, int(chunk.offsets[-1]) + 1, acknowledging.holes if acknowledging else None)

        return ahead(made) if len(offsets) > SHORT else made(lambda: False)

    def _columns(self, tp: TopicPartition) -> Collection[str]:
        """The columns of a partition's batches."""
        return [*self.columns, HASH.name] if self.hashed is not None and tp in self.hashed else self.columns

    def _together(
        self, cache: BlockCache, name: str, tp: TopicPartition, slices: Sequence[Slice], stretch: SharedStretch
    ) -> Iterator[RecordsRead]:
        schema, mine = shared(self.columns), _parts_of(slices, stretch)
        if self.hashed is not None:
            schema = schema.append(HASH)

        def fetched(offsets: OffsetRange, stopped: Callable[[], bool]) -> Iterator[Fetched]:
            for chunk in self._fetched(tp, offsets, stopped):
                yield Fetched(int(chunk.offsets[-1]) + 1, self._in_parts(tp, chunk, stretch.parts, schema))

        reading = SharedReading(cache, name, stretch, tuple(mine), schema, fetched)
        with closing(reading.read()) as found:
            for each in found:
                records = completed(tp, _joined(each, mine, schema), self._columns(tp))
                yield RecordsRead(records, each.offsets.until)
        if reading.position < stretch.offsets.until:
            yield from self._alone(tp, slices, OffsetRange(reading.position, stretch.offsets.until))

    def _in_parts(
        self, tp: TopicPartition, chunk: Chunk, parts: Sequence[HashRange], schema: pa.Schema
    ) -> list[pa.RecordBatch] | None:
        """A batch for each part. None if a record cannot be shown; its lane may belong to another task."""
        of = Hashed(chunk)
        rows, bounds = by_part(of.hashes, parts)
        chosen = self._filter.chosen(of, rows)
        bounds = np.concatenate([[0], np.cumsum(chosen.kept[rows])])[bounds]
        try:
            batch = _batch(tp, chosen, schema.names)
        except LogError:
            return None
        self.filtered[tp] += chosen.dropped
        return [batch.slice(start, until - start) for start, until in pairwise(bounds.tolist())]

    def _fetched(self, tp: TopicPartition, offsets: OffsetRange, stopped: Callable[[], bool]) -> Iterator[Chunk]:
        task = self.task
        settings = FetchSettings(
            task.kafka,
            task.poll_timeout_ms,
            task.fail_on_data_loss,
            answer_bytes(task.most_unfiltered),
            DecodeLimits(task.most_uncompressed, record_bytes(task.most_unfiltered)),
            self.patience,
            KNOWN_STALL_S if self._away else STALL_S,
        )
        try:
            yield from fetch(self._opened(), tp, offsets, settings, stopped, self._begun.pop(tp, None), self._looks)
        except StaleConsumerError as stale:
            self.patience.away = True
            self._drop(stale)
            yield from self._fetched(tp, OffsetRange(stale.position, offsets.until), stopped)
        except KafkaUnavailableError as away:  # the consumer can still read from the other leaders
            self._away = away
            raise
        except Exception as error:  # another task may fetch instead
            self._drop(error)
            raise

    def _drop(self, error: Exception) -> None:
        """Close the consumer; the next use opens another."""
        self._consumer = None
        self._borrowing.__exit__(type(error), error, error.__traceback__)

    def _opened(self) -> KafkaConsumer:
        """The consumer. A task that no broker has answered does not wait again for its next partition."""
        if self._consumer is None:
            if self._unreached:
                raise self._unreached
            task = self.task
            borrowing = borrowed(task.kafka, self.partitions, task.most_unfiltered, self.patience)
            try:
                self._consumer = self._borrowing.enter_context(borrowing)
            except KafkaUnavailableError as error:
                self._unreached = error
                raise
        return self._consumer


def _batch(tp: TopicPartition, chosen: Chosen, columns: Collection[str]) -> pa.RecordBatch:
    """The chosen records in these columns, one of which may be the key hash."""
    batch = to_arrow(tp, chosen.of.chunk, chosen.rows, columns)
    return with_hashes(batch, chosen.of.hashes[chosen.rows]) if HASH.name in columns else batch


def _first(slices: Iterable[Slice]) -> OffsetRange:
    return union(s.offsets for s in slices)[0]


_Mine = dict[int, list[OffsetRange]]
"""Numbers of parts, and for each the offsets of this task."""


def _parts_of(slices: Iterable[Slice], stretch: SharedStretch) -> _Mine:
    mine: _Mine = {}
    firsts = [part.lo for part in stretch.parts]
    for s in filter(None, (s.within(stretch.offsets) for s in slices)):
        for number in range(bisect_left(firsts, s.hashes.lo), bisect_right(firsts, s.hashes.hi)):
            mine.setdefault(number, []).append(s.offsets)
    return mine


def _joined(found: WantedRecords, mine: _Mine, schema: pa.Schema) -> pa.RecordBatch:
    """The task's records in offset order. There may be none: the task looks at its clock all the same."""
    batches = [
        some for number, batch in found.parts for offsets in mine[number] if len(some := _of(batch, offsets, found))
    ]
    if len(batches) < 2:
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
    joined = pa.concat_batches(batches)
    return joined.take(numbers(np.argsort(offsets_of(joined), kind="stable")))


def _of(batch: pa.RecordBatch, offsets: OffsetRange, found: WantedRecords) -> pa.RecordBatch:
    """The records of the batch that lie in `found` and in `offsets`."""
    bounds = max(offsets.start, found.offsets.start), min(offsets.until, found.offsets.until)
    first, end = np.searchsorted(offsets_of(batch), bounds).tolist()
    return batch.slice(first, max(0, end - first))


def parted(stretch: OffsetRange, others: Iterable[SharedStretch]) -> Iterator[tuple[OffsetRange, SharedStretch | None]]:
    """`stretch` cut at the shared stretches in `others` that lie within it. Parts that are not shared have None.

    stretch     |=======================|
    others          |----|  |----|          |----|
    parts       |===|====|==|====|======|
    """
    at = stretch.start
    for each in others:
        if stretch.start <= each.offsets.start and each.offsets.until <= stretch.until:
            if at < each.offsets.start:
                yield OffsetRange(at, each.offsets.start), None
            yield each.offsets, each
            at = each.offsets.until
    if at < stretch.until:
        yield OffsetRange(at, stretch.until), None
