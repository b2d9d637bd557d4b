"""A Spark task that works on its slices: late, retried, twice at once, or on after its driver's end; it may hang.

It reports the costs of the slices to its driver, as executors do. Some reports are lost. Where its batch allows it,
each attempt ends its slices anywhere, and asks the driver for the ends that count. Without its driver it cannot end.
Some tasks never reach their driver: they read all of their slices, or fail once the driver knows that tasks reach it.
A polite end of the driver stops it: only what it has read may still be written. A task that is cut off reads on.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from greenlet import GreenletExit

from coordinator.errors import CoopKafkaError
from coordinator.member.service import Service
from coordinator.plan.cost.telemetry import KeyAt, KeyCost, SliceCost
from coordinator.progress.ends import Ends
from coordinator.progress.failing import NO_FAILURES, FailingRecord, Failures
from coordinator.progress.slices import Slice
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import HASH_MAX, HashRange
from coordinator.values.record_filter import RecordFilter
from coordinator.values.subscription import TopicPartition
from simulation.failing import ENOUGH, LONGEST_DELAY_MS, Deferring
from simulation.filters import kept
from simulation.kafka import HASHES, Record
from simulation.state import Key
from simulation.wishes import Wishes
from simulation.work import Work, Worker
from simulation.world import World

T = TypeVar("T")
_LOST, _CUT_OFF = 0.03, 0.2
_READ_AHEAD = 3
"""Most records that a task has handed over and Spark has not written."""


class Owner(Worker, Protocol):
    """The driver of a task."""

    name: str
    wishes: Wishes
    filter: RecordFilter
    service: Service

    @property
    def running(self) -> bool:
        """Whether it has not ended."""

    def note(self, what: str, fact: object = None) -> None:
        """Tell the record of the schedule."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task of a batch ends its slices; as `task.partition` of the source."""

    batch: str  # the digest
    task: int
    required: bool
    by_time: bool = True  # else only failing keys end early
    failing: Mapping[Key, FailingRecord] = field(default_factory=dict)
    room: Mapping[TopicPartition, int] = field(default_factory=dict)


class Task:
    """Writes its records slice by slice, in order; done once any attempt is.

    `ending`: how tasks of its batch end, if they may end slices early. Else `number`, after the digest of the batch: it
    only reports that it has ended (rule: batch-clock).
    """

    def __init__(
        self,
        world: World,
        work: Work,
        driver: Owner,
        slices: Sequence[tuple[Slice, list[Record]]],
        ending: Ending | None = None,
        number: tuple[str, int] | None = None,
    ) -> None:
        self._work, self._ending, self._number = work, ending, number
        self._reaches = not world.chance(driver.wishes.unreached)
        self._world, self._driver, self._slices, self.done = world, driver, slices, False
        self.refused = False  # by its driver: the query fails
        self.asking = 0  # its driver: so many attempts wait for the answer
        self._more: int | None = None  # its driver has left: so many records that it has read may still be written
        self.deferred = False  # it ended before the records of some keys
        self.slices = [s for s, _ in slices]
        self.ends: Ends = {}  # those of the attempt that has ended; empty if it ended as planned
        self._reported = False  # whether its driver knows them
        self.records = [r for _, records in slices for r in records]
        attempts = 2 if world.chance(0.05) else 1  # speculation
        self.actors = [world.spawn_writer(f"{driver.name}'s task", self._write) for _ in range(attempts)]

    @property
    def runs(self) -> bool:
        """Whether an attempt has not ended."""
        return any(actor.alive for actor in self.actors)

    def stop(self) -> bool:
        """Its driver ends the connection; whether it stops. Else it is cut off, and reads on."""
        if self.runs:
            if self._world.chance(_CUT_OFF):
                return False
            self._more = self._world.random.randint(0, _READ_AHEAD)
        return True

    def _write(self) -> None:
        attempt = self._attempt_to_an_end if self._ending else self._attempt
        while not attempt():
            pass  # it failed, and Spark runs it again
        if not self.done:
            self._driver.note("a task ended" if self._reported else "a silent task ended", (self.slices, self.ends))
        self._world.sink.end_task(kept(self._driver.filter, self.records))
        if self._number and self._reaches and self._driver.running:
            with suppress(KeyError):  # a late attempt: its batch is over
                self._driver.service.end_task(*self._number, {})
        self.done = True

    def _attempt(self) -> bool:
        return all(self._work_on(s, records) for s, records in self._slices)

    def _attempt_to_an_end(self) -> bool:
        """One attempt that may end its slices early; False if it failed."""
        ending, service = self._ending, self._driver.service
        if ending is None or not (self._reaches or ending.required):
            self._world.server.seen["unreached"] += 1
            return self._attempt()
        if not self._reaches:
            self._reaches = True  # Spark repeats it on another host
            return False
        agreed = self._asks(lambda: service.agreed_ends(ending.batch, ending.task))
        ends, mine = agreed or {}, None
        if agreed is None:
            ends = self._ends_somewhere() if ending.by_time else {}
            mine = Deferring(ending.failing, dict(ending.room)) if self._world.on_error else None
        read = [(s, [r for r in records if not _beyond(r, ends)]) for s, records in self._slices]
        if not all(self._work_on(s, records, mine) for s, records in read):
            return False
        failures = mine.failures if mine else NO_FAILURES
        if mine:
            ends = mine.ends(ends, {s.topic_partition: s.offsets.until for s, _ in sorted(self._slices, key=_until)})
        if self._asks(lambda: self._tell(ending, ends, failures)) != ends:
            return False  # another attempt has ended elsewhere
        self.ends, self._reported = ends, True
        self.records = [r for _, records in read for r in records if not _beyond(r, ends)]
        self.deferred |= bool(mine and mine.stopped)
        return True

    def _tell(self, ending: Ending, ends: Ends, failures: Failures) -> Ends:
        self._driver.note("a task ends", (self.slices, ends))
        return self._driver.service.end_task(ending.batch, ending.task, ends, failures)

    def _done(self, record: Record, mine: Deferring | None) -> bool:
        """Whether the function does a record in the end. A task that may not defer it writes it as a dead letter."""
        attempts, seen = mine.attempts(record) if mine else 0, self._world.server.seen
        while self._work.fails(record):
            attempts += 1
            enough = attempts >= ENOUGH
            if mine and ((enough and self._world.then == "park") or (not enough and self._world.chance(0.7))):
                next_ms = self._host_ms + self._world.random.choice((0, 500, 3_000, LONGEST_DELAY_MS))
                mine.defer(record, attempts, next_ms, parked=enough)
                seen["key parked" if enough else "key deferred"] += 1
                return False
            if enough:
                seen["dead letter"] += 1
                return True
        return True

    @property
    def _host_ms(self) -> int:
        """The time by the clock of its host."""
        return self._world.scheduler.now_ms + self._world.host_ahead_ms

    def _ends_somewhere(self) -> Ends:
        """Ends that the clock might dictate: the keys that were worked on last are further than the others.

        At the quiet end a task without records has nothing to do: many batches would search offsets without records.
        """
        if self._world.chance(0.4) or (self._work.calm and not self.records):
            return {}
        ends: dict[TopicPartition, HashMap[int]] = {}
        for tp in sorted({s.topic_partition for s, _ in self._slices}):
            until = max(s.offsets.until for s, _ in self._slices if s.topic_partition == tp)
            low, high = sorted(self._world.random.randint(0, until) for _ in range(2))
            cut = self._world.random.choice(HASHES)
            ends[tp] = HashMap(((HashRange(0, cut), high), (HashRange(cut + 1, HASH_MAX), low)))
        return ends

    def _asks(self, ask: Callable[[], T]) -> T:
        """The answer of the driver. A task whose driver has ended, or refuses, ends without a result."""
        self.asking += 1
        try:
            if self._driver.running and self._more is None:
                answer = ask()
                if self._driver.running and self._more is None:
                    return answer
        except (CoopKafkaError, KeyError):
            self.refused = not self.done
        finally:
            self.asking -= 1
        raise GreenletExit

    def _work_on(self, s: Slice, records: Sequence[Record], mine: Deferring | None = None) -> bool:
        """One slice to its end; False if the task failed in it."""
        world, keys = self._world, Counter[int]()
        dropped, records = len(records), kept(self._driver.filter, records)
        self._report(SliceCost.nothing(s))
        by_key = self._driver.wishes.in_read and world.chance(0.5)  # the function gets single records
        for record in records:
            if mine and mine.stops(record):
                continue
            if self._more is not None:
                if self._more == 0:
                    raise GreenletExit
                self._more -= 1
            at = (KeyAt(record.hash, record.offset, record.offset + 1),) if by_key else ()
            alive = partial(self._report, replace(SliceCost.nothing(s), at=at))
            if by_key:
                alive()
            keys[record.hash] += self._work.do(self._driver, record, alive)
            if self._done(record, mine):
                world.sink.write(record)
            if world.chance(0.02):
                return False
        cost = self._cost(s, Counter(record.hash for record in records), keys)
        self._report(replace(cost, filtered=dropped - len(records)))
        return True

    def _cost(self, s: Slice, rows: Counter[int], keys: Counter[int]) -> SliceCost:
        """Exact where the function runs in `read`; else only a report that the slice was read."""
        exact = self._driver.wishes.in_read
        costs = tuple(KeyCost(h, float(ms), rows[h]) for h, ms in keys.most_common(8)) if exact else ()
        return SliceCost(
            s.topic_partition,
            s.hashes,
            s.offsets,
            rows.total(),
            0,
            0.0,
            float(sum(keys.values()) * exact),
            costs,
            finished=True,
        )

    def _report(self, cost: SliceCost) -> None:
        if not self._world.chance(_LOST):
            self._driver.service.receive([cost])


def _until(of_slice: tuple[Slice, list[Record]]) -> int:
    return of_slice[0].offsets.until


def _beyond(record: Record, ends: Ends) -> bool:
    return any(record.hash in hashes and record.offset >= end for hashes, end in ends.get(record.tp, ()))
