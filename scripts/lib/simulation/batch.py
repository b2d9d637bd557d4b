"""One batch of a driver, from its authorization to its end in the sink: partitions -> tasks write -> sink complete."""

from coordinator.errors import DataLossError
from coordinator.plan.packing import Task as Packed
from coordinator.progress.ownership import narrowed
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_state import STANDBY
from simulation import acknowledging, filters, promises
from simulation.kafka import Record
from simulation.ordering import Ordering
from simulation.process import Process
from simulation.promises import Attempt
from simulation.sink import Violation
from simulation.tasks import Ending, Task
from simulation.work import Work
from simulation.world import World

_FORGETS = ("empty_redis", "restore_redis", "deleted", "operator_deletes", "damaged", "entry_lost", "replaced")
"""After these, Redis may not know any more who has read."""


class Batch:
    """The batch of number `n`, which ends at `end`."""

    def __init__(self, driver: Process, work: Work, world: World, n: int, end: StreamOffset) -> None:
        self._driver, self._work, self._end = driver, work, end
        self._world, self._checkpoint = world, driver.checkpoint
        self._id = (driver.checkpoint.name, n)
        self._attempt = driver.checkpoint.attempts.setdefault(n, Attempt())
        self._attempt.lives = self._attempt.lives or dict(world.kafka.lives)

    def run(self) -> bool:
        """Run it; whether it is in the sink. Else the driver has ended."""
        driver, world, end = self._driver, self._world, self._end
        asked_at = len(world.invariants.states) - 1
        readable, packed = self._authorize()
        if driver.wishes.initial_calls > 1 and driver.query.tasks(end) != packed:
            raise Violation(f"PARTITIONS: two answers for batch {self._id[1]}")
        driver.note("tasks", packed)
        read = [[(s, self._read(s)) for s in slices] for slices in packed]
        self._check_read(readable, [r for slices in read for _, of_slice in slices for r in of_slice], asked_at)
        ordering = Ordering(world, driver.line, readable, self._id)
        if driver.wishes.orders:
            ordering.reserve()
        early = self._may_end
        driver.tasks = [
            Task(
                *(world, self._work, driver, slices),
                ending=self._ending(number, packed) if early else None,
                number=None if early else (end.digest, number),
            )
            for number, slices in enumerate(read)
        ]
        if not self._written(readable, packed):
            return False
        driver.hangs_since = None
        records = [r for task in driver.tasks for r in task.records]
        ordering.commit(records)
        kept = filters.kept(driver.filter, records)
        self._check_replay(readable, kept)
        self._count_ends(early=len(records) < sum(len(r) for of_task in read for _, r in of_task))
        self._complete(kept, [r for r in records if r not in kept])
        return True

    def _authorize(self) -> tuple[StreamOffset, tuple[Packed, ...]]:
        driver, end = self._driver, self._end
        if self._world.modelled == "Batch" and end.slices and self._world.chance(0.05):
            self._strike(self._world.random.choice(end.slices))
        before = self._world.invariants.state
        with driver.jvm.calling():
            packed = tuple(driver.query.tasks(end))
        batch = driver.service.state.batch
        readable = narrowed(end, (batch and batch.readable) or {})
        if not (self._world.alone and self._world.standbys.role(driver.member) == STANDBY):  # rule: one-application
            promises.reads_what_is_owned(end, readable, before, self._world.invariants.state)
        if batch and not batch.replayed and end.by_key:
            in_order = promises.keeps_partition_order(driver.service.state.owning.policy, end, packed)
            self._world.server.seen["partition order"] += in_order
        if self._world.joined:
            self._world.server.seen["joined"] += promises.joined_hashes_are_in_one_task(packed)
        promises.reads_nothing_parked(readable, before, self._world.invariants.state)
        if self._world.alone and any(packed):
            self._alone()
        planned_with = self._checkpoint.planned_with[self._id[1]]
        if any(packed) and planned_with != driver.filter:
            raise Violation(f"FILTER: {end} was planned with {planned_with}, and is read with {driver.filter}")
        return readable, packed

    def _strike(self, slice_: Slice) -> None:
        """Two members were lost over a slice since its plan. Only rare schedules come to that by themselves."""
        server, offsets = self._world.server, slice_.offsets
        self._world.trace(f"{slice_} is struck twice")
        where = f"{slice_.topic} {slice_.partition} {slice_.hashes}"
        what = f"struck 2 {offsets.start}-{offsets.until} {server.now_ms} m-lost"
        server.raw.hset(server.keys.strikes, where, what)
        self._world.invariants.check()

    def _alone(self) -> None:
        """Between two reads of a life that reads alone, no other member has read (rule: one-application)."""
        driver, readers, nonce = self._driver, self._world.readers, self._world.invariants.state.nonce
        kept = not any(self._world.server.seen[what] for what in _FORGETS)
        between = {member for member, at in readers[driver.last_read :] if kept or at == nonce}
        if driver.settings.alone and driver.last_read and between - {driver.member}:
            raise Violation(f"ALONE: {driver.name} reads after {between}, and has read before")
        readers.append((driver.member, nonce))
        driver.last_read = len(readers)

    def _read(self, wanted: Slice) -> list[Record]:
        beginning = self._world.kafka.beginnings[wanted.topic_partition]
        if wanted.offsets.start < beginning and self._driver.settings.fail_on_data_loss:
            raise DataLossError(f"{wanted} begins before {beginning}", "")
        end = len(self._world.kafka.logs[wanted.topic_partition])
        if wanted.offsets.until > end and self._driver.settings.fail_on_data_loss:
            raise DataLossError(f"{wanted} goes beyond {end}", "")
        return self._world.kafka.read(wanted)

    def _check_read(self, readable: StreamOffset, records: list[Record], asked_at: int) -> None:
        driver, world = self._driver, self._world
        batch = driver.service.state.batch
        if batch and batch.done is not None:
            promises.nothing_confirmed(records, world.invariants.states[asked_at:])
            world.server.seen["replayed the rest"] += batch.unacknowledged(readable).slices != readable.slices
        part = "" if readable == self._end else " (part skipped)"
        driver.trace(f"batch {self._id[1]} reads {' '.join(map(str, records))}{part}")
        promises.no_more_than_before(self._attempt, driver.line.done["authorize"], readable)

    @property
    def _may_end(self) -> bool:
        """Whether tasks may end early: by the clock, or at keys that they defer."""
        batch = self._driver.service.state.batch
        return bool(batch and (batch.may_end_early or (self._world.on_error and batch.may_defer)))

    def _ending(self, number: int, packed: tuple[Packed, ...]) -> Ending:
        """How a task ends. If no task reaches the reader process, it may already know."""
        driver = self._driver
        batch = driver.service.state.batch
        if driver.wishes.unreached == 1.0 and not self._world.modelled and self._world.chance(0.3):
            driver.service.no_task_connects()
        required = not (batch and batch.sealed)
        by_time = bool(batch and batch.may_end_early)
        records, room = driver.service.failing_of(packed)
        known = {(r.tp, r.key_hash): r for of_tp in records.values() for r in of_tp}
        return Ending(self._end.digest, number, required, by_time, known, room)

    def _written(self, readable: StreamOffset, packed: tuple[Packed, ...]) -> bool:
        """Whether all tasks have written their records; else the query has failed."""
        driver, world = self._driver, self._world
        while not all(t.done for t in driver.tasks):
            world.scheduler.turn(30)
            if any(t.refused for t in driver.tasks):
                driver.end("failed: a task was refused")
                return False
            for _ in range(world.random.randint(1, 4) if driver.wishes.acknowledges and world.chance(0.4) else 0):
                acknowledging.acknowledge(world, driver.line, readable, self._id)
                acknowledging.acknowledge_rows(world, driver.line, self._end, packed, self._id)
        return True

    def _check_replay(self, readable: StreamOffset, records: list[Record]) -> None:
        """A replay has the same records; on request those that were not acknowledged."""
        batch, world = self._driver.service.state.batch, self._world
        if self._attempt.lives != world.kafka.lives:
            self._attempt.records = None  # a log was cut meanwhile
            return
        if batch and batch.done is not None:
            now = world.invariants.state
            promises.only_the_rest(self._attempt, self._end, now, records, world.sink.completed, world.kafka.aged)
        elif any(task.deferred for task in self._driver.tasks):
            self._attempt.records = sorted(records)  # rule: replay-may-defer
            self._world.server.seen["deferred in a replay"] += bool(batch and batch.ends is not None)
        elif batch and batch.unknown:
            promises.ends_may_be_unknown(entries_lost=world.server.seen["entry lost"])
        else:
            promises.same_as_before(self._attempt, self._end, readable, records, world.kafka.aged)

    def _count_ends(self, *, early: bool) -> None:
        """Count the fates of batches whose tasks may end slices early."""
        batch, seen = self._driver.service.state.batch, self._world.server.seen
        seen["ended early"] += early
        seen["read to sealed ends"] += batch is not None and batch.ends is not None
        seen["ends unknown"] += bool(batch and batch.unknown)

    def _complete(self, kept: list[Record], dropped: list[Record]) -> None:
        world, driver = self._world, self._driver
        world.sink.complete(*self._id, kept, dropped)
        driver.note("arrives", [*kept, *dropped])
        driver.note("sink", [(task.slices, task.ends) for task in driver.tasks])
        world.server.seen["dropped"] += len(dropped)
        driver.trace(f"sink complete {self._id[1]}")
        driver.line.passes("the sink")
        world.in_peace()
        world.scheduler.turn()
