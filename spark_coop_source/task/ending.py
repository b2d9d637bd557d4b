"""Decides where a task ends its slices: once its share of the time budget is used, it stops at the record where it is.

    partition 0   |##########|     read to its planned end
    partition 1   |#####|          its time was over between two keys: hashes whose keys were worked on end here,
                  |###|            the others end where the batch of records begins
    partition 2   |                its time was over before it began, or its leader does not answer

Keys that the function did not get after all are withdrawn: their hashes end before their records. Keys come in the
order of their hashes, so neighbours end together, where their batch begins: the next batch gets few ranges, not one for
each key.
The partitions of a task share its time: when partition i of k begins, i / k of the time may be used. So a slow one
takes no time of the others. The first batch of a task is always read, so each task gets on.
A key on which the function fails may be deferred: its hash ends at that record (rule: defer-is-an-end). A task without
room for another failing key ends there.
Knows slices, hashes and a clock; nothing of Kafka, of the driver or of Spark. Runs in executor workers.
"""

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from coordinator.errors import KafkaUnavailableError
from coordinator.progress.ends import Ends
from coordinator.progress.failing import FailingRecord, Failures
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import HASH_MAX, HashRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.task.reads import RecordsRead

_log = logging.getLogger(__name__)

KeyHash = tuple[TopicPartition, int]
"""A key hash of a partition."""

MOST_FAILING = 2_000
"""Most failing keys of a task: they travel to the driver in one frame (`telemetry.frames.MOST_BYTES`)."""


@dataclass(slots=True)
class _Batch:
    begins: int
    until: int
    got: Counter[int] = field(default_factory=Counter)  # keys that the function got, by their hash
    last: int | None = None  # the last key hash that it got
    ahead: set[int] = field(default_factory=set)  # key hashes that it got before their order


@dataclass(slots=True)
class _Partition:
    over_ms: float  # of the task's clock
    batch: _Batch  # the last one
    before: _Batch  # the one before it
    complete: bool = False  # read to its planned end
    cut: int | None = None  # the first key hash of the last batch, in order, that the function did not get
    withdrawn: dict[int, int] = field(default_factory=dict)  # key hash -> the first offset that it did not get
    whole: set[int] = field(default_factory=set)  # those of which it got nothing of the batch of this offset


@dataclass(slots=True)
class TaskEnds:
    """The ends of one attempt of a task."""

    share_ms: float  # of the time budget
    clock_ms: Callable[[], float]  # 0 when the task began
    known: Iterable[FailingRecord] = ()  # of earlier batches
    room: Mapping[TopicPartition, int] = field(default_factory=dict)  # more keys that it may defer
    retries_ms: float = inf  # no attempt on a failing record begins later in this task
    skipped: int = 0  # records that the function failed on and that the task left out
    dead_lettered: int = 0  # records that it wrote to the dead-letter topic
    _known: dict[KeyHash, FailingRecord] = field(init=False)
    _room: dict[TopicPartition, int] = field(init=False)
    _failing: dict[KeyHash, FailingRecord] = field(default_factory=dict)
    _partitions: dict[TopicPartition, _Partition] = field(default_factory=dict)
    _number: int = 0  # of partitions that were begun
    _begun: bool = False  # a batch was read

    def __post_init__(self) -> None:
        self._known = {(record.tp, record.key_hash): record for record in self.known}
        self._room = dict(self.room)

    def begin(self, starts: Mapping[TopicPartition, int]) -> None:
        """The partitions of the task, each with the first offset of its slices."""
        self._partitions = {
            tp: _Partition(self.share_ms, _Batch(start, start), _Batch(start, start)) for tp, start in starts.items()
        }

    def reading(self, tp: TopicPartition, reads: Iterator[RecordsRead]) -> Iterator[RecordsRead]:
        """The records of one partition, as long as its time is not over."""
        partition = self._partitions[tp]
        self._number += 1
        partition.over_ms = self.share_ms * self._number / len(self._partitions)
        while partition.cut is None and not self._over(partition):
            try:
                read = next(reads, None)
            except KafkaUnavailableError as error:
                if not self.by_time:
                    raise
                _log.warning("%s: %s; its records wait for a later batch", tp, error.what)
                return
            if read is None:
                partition.complete = True
                return
            self._begun = True
            partition.before, partition.batch = partition.batch, _Batch(partition.batch.until, read.until)
            yield read

    def before_key(self, tp: TopicPartition, key_hash: int, *, ahead: bool) -> bool:
        """Whether the function may still get the records of a key, which are of the last batch of a partition.

        Key hashes come in ascending order; first come a few that are taken `ahead` of their order.
        """
        partition = self._partitions[tp]
        batch = partition.batch
        if self._over(partition) and batch.last is not None and key_hash != batch.last:
            partition.cut = 0 if ahead else key_hash
            return False
        batch.last = key_hash
        batch.got[key_hash] += 1
        if ahead:
            batch.ahead.add(key_hash)
        return True

    @property
    def by_time(self) -> bool:
        """Whether slices may end early without a failing key: by the clock, or because a leader is away."""
        return self.share_ms < inf

    @property
    def over(self) -> bool:
        """Whether the time of the task is over."""
        return self._begun and self.clock_ms() >= self.share_ms

    def withdraw(self, tp: TopicPartition, key_hash: int, offset: int, *, whole: bool = False) -> None:
        """The function did not get the records of a key from this offset on, though it was to get them.

        `whole`: it got no record of the key from the batch of this offset.
        """
        partition = self._partitions[tp]
        before = partition.withdrawn.get(key_hash, offset)
        partition.withdrawn[key_hash] = min(offset, before)
        if whole and before == offset:
            partition.whole.add(key_hash)
        elif offset <= before:
            partition.whole.discard(key_hash)

    def attempts(self, tp: TopicPartition, key_hash: int, offset: int) -> int:
        """The attempts at this record of a key in earlier batches."""
        known = self._known.get((tp, key_hash))
        return known.attempts if known and known.offset == offset else 0

    def defer(self, record: FailingRecord) -> None:
        """The key gets nothing from this record on in this batch; the next batches know when to try it again.

        Without room, or with too many failing keys in this task, the record is not stored, and the task ends.
        """
        self.withdraw(record.tp, record.key_hash, record.offset)
        key, more = (record.tp, record.key_hash), len(self._failing) < MOST_FAILING
        if key in self._failing or (more and (key in self._known or self._takes_room(record.tp))):
            self._failing[key] = record
        else:
            self.share_ms = 0.0

    def _takes_room(self, tp: TopicPartition) -> bool:
        left = self._room.get(tp)
        if left:
            self._room[tp] = left - 1
        return left != 0

    @property
    def failures(self) -> Failures:
        """The failing records and the counts so far."""
        return Failures(tuple(self._failing.values()), self.skipped, self.dead_lettered)

    @property
    def left_ms(self) -> float:
        """The rest of the time of the task for further attempts. A replay has no other end by the clock."""
        return max(0.0, min(self.share_ms, self.retries_ms) - self.clock_ms())

    @property
    def ends(self) -> Ends:
        """The early ends so far."""
        return {tp: _ends(p) for tp, p in sorted(self._partitions.items()) if p.withdrawn or not p.complete}

    def _over(self, partition: _Partition) -> bool:
        return self._begun and self.clock_ms() >= min(partition.over_ms, self.share_ms)


def _ends(partition: _Partition) -> HashMap[int]:
    """`until` of the last batch below the cut and for hashes that were taken ahead, `begins` for the others.

    A withdrawn hash ends where its batch begins, and with it all hashes up to the next key. Or it ends at its own
    offset, if the function may have got other records of the hash from this batch.
    """
    batch, cut = partition.batch, HASH_MAX + 1 if partition.cut is None else partition.cut

    def base(key_hash: int) -> int:
        return batch.until if key_hash < cut or key_hash in batch.ahead else batch.begins

    left = _left(partition)
    own = {key_hash: min(offset, base(key_hash)) for key_hash, offset in partition.withdrawn.items()}
    keys = sorted(batch.got.keys() | partition.before.got.keys() | own.keys())
    ends = {0: base(0)}
    for key_hash in keys:
        ends[key_hash] = left.get(key_hash, own.get(key_hash, base(key_hash)))
        ends[key_hash + 1] = left.get(key_hash, base(key_hash + 1))
    below = bisect_left(keys, cut) - 1
    ends.setdefault(cut, left.get(keys[below], base(cut)) if below >= 0 else base(cut))
    starts = pairwise([*sorted(lo for lo in ends if lo <= HASH_MAX), HASH_MAX + 1])
    return HashMap((HashRange(lo, until - 1), ends[lo]) for lo, until in starts).coalesced()


def _left(partition: _Partition) -> dict[int, int]:
    """The beginning of the batch for each withdrawn hash of which the function got nothing from this batch."""
    batch, before = partition.batch, partition.before
    found = dict[int, int]()
    for key_hash in partition.whole:
        offset = partition.withdrawn[key_hash]
        of = batch if offset >= batch.begins else before
        if offset >= of.begins and of.got[key_hash] == 1:  # no other key has this hash
            found[key_hash] = of.begins
    return found
