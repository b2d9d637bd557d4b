"""Drivers of one group on one topic with a steady flow of records; and the verdict on all of them together."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

import processes
from coordinator.errors import UnknownGroupError
from coordinator.plan.poison import Strike
from coordinator.redis.client import RedisClient
from coordinator.redis.events import last_events
from coordinator.redis.group_state import GroupEvent, GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.values.ranges import WHOLE, HashRange
from drivers import output
from drivers.driver import JOB, Driver, owners
from topics import Kafka, Record
from verdict import Sent

SESSION_S = 5.0
HAND_OVER_S = 5.0
"""How long the ranges of a driver that ends politely may wait (rule: leave-keeps-unconfirmed)."""

_EVERY_S = 0.25
_POLL_S, _PATIENCE_S = 0.25, 240.0  # a look reads all outputs and the group, which takes CPU from the drivers
PATIENCE_S = 600.0
"""Of a wait after a fault, on a machine that does other work as well."""

_ABOUT = 1.5  # up to this factor counts as about the same
_MANY, _LAST = 1_000, 30


@dataclass(frozen=True, slots=True)
class Feeding:
    """The records that are sent four times a second, to all partitions in turns: of some keys, and without a key."""

    keys: int = 20
    at_once: int = 20
    every_keyless: int = 7  # each record with this number has no key


@dataclass(slots=True)
class Fleet:
    """The drivers by name, and the sent records."""

    kafka: Kafka
    redis_url: str
    group: str
    folder: Path
    partitions: int = 1
    topic: str = ""
    feeding: Feeding = Feeding()
    options: Mapping[str, str] = field(default_factory=dict)  # in addition to those of every driver
    pace: str = "0 seconds"  # the interval of triggers: drivers at work leave the cores to one that starts
    odd: list[Record] = field(default_factory=list)  # to send in between
    job: Path = JOB
    kind: type[Driver] = Driver
    cluster: Sequence[str] = ()  # see `SparkSubmit`
    drivers: dict[str, Driver] = field(default_factory=dict)
    sent: list[list[Sent]] = field(default_factory=list)
    sending: Future[None] | None = None  # the producer, while records are sent and after that

    def __post_init__(self) -> None:
        self.topic = self.kafka.create_topic("fleet", partitions=self.partitions)
        self.sent = [[] for _ in range(self.partitions)]

    def start(self, name: str, pinned: Sequence[HashRange] = ()) -> Driver:
        """Start a driver, on its old checkpoint if it has run before; `pinned` to ranges of each partition, if any."""
        ranges = {str(p): [[hashes.lo, hashes.hi] for hashes in pinned] for p in range(self.partitions)}
        topics = {"assign": json.dumps({self.topic: ranges})} if pinned else {"subscribe": self.topic}
        options = {
            "kafka.bootstrap.servers": self.kafka.bootstrap,
            **topics,
            "startingOffsets": "earliest",
            "group": self.group,
            "redisUrl": self.redis_url,
            "slots": "2",
            "sessionTimeout": str(int(1000 * SESSION_S)),
            "heartbeatInterval": "500",
            **self.options,
        }
        made = self.kind(self.folder / name, options, self.pace, self.job, self.cluster)
        driver = self.drivers.setdefault(name, made)
        driver.start()
        return driver

    def join(self, name: str, pinned: Sequence[HashRange] = ()) -> Driver:
        """Start a driver and wait until it works: several that start at once compete for the cores."""
        driver = self.start(name, pinned)
        self.until(lambda: self.working(driver), f"{name} works")
        return driver

    def end(self) -> None:
        """Stop everything that still runs."""
        for driver in self.drivers.values():
            driver.end()

    @contextmanager
    def producing(self) -> Iterator[None]:
        """Send records while the body of `with` runs; raises at its end what the producer raised."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as threads:
            self.sending = sending = threads.submit(self._produce, stop)
            try:
                yield
            finally:
                stop.set()
            sending.result()

    def _produce(self, stop: threading.Event) -> None:
        number = 0
        while not stop.wait(_EVERY_S):
            odd, self.odd = self.odd, []
            records = [*odd, *map(self._record, range(number, number + self.feeding.at_once))]
            self.kafka.produce(self.topic, records)
            for r in records:
                sent = r.key.decode() if r.key else None, str(r.value, "ascii") if r.value else None
                self.sent[r.partition or 0].append(sent)
            number += self.feeding.at_once

    def _record(self, number: int) -> Record:
        turn, partition = divmod(number, self.partitions)
        key = None if turn % self.feeding.every_keyless == 0 else b"key-%d" % (turn % self.feeding.keys)
        return Record(str(number).encode(), key, partition)

    def grow(self, total: int) -> None:
        """Add partitions to the topic, until it has so many; records are sent to the new ones too."""
        self.kafka.add_partitions(self.topic, total)
        self.sent += [[] for _ in range(self.partitions, total)]
        self.partitions = total

    def release_parked(self) -> tuple[Strike, ...]:
        """Release lanes that were parked because drivers were killed, as an operator would; returns them."""
        with closing(RedisClient(self.redis_url)) as client:
            store = OperatorVerbs.of_group(client, self.group)
            parked = tuple(s for s in store.poison.strikes() if s.parked)
            if parked:
                store.poison.forgive(parked, "drivers were killed on purpose")
        return parked

    # -- observations ----------------------------------------------------------------------------

    @property
    def state(self) -> GroupState | None:
        """The group in Redis; None if it does not exist."""
        with closing(RedisClient(self.redis_url)) as client:
            try:
                return read_group(client, self.group)
            except UnknownGroupError:
                return None

    def working(self, *drivers: Driver) -> bool:
        """Whether each of these drivers owns a range."""
        state = self.state
        return state is not None and all(d.works(state) for d in drivers)

    def at_work(self, driver: Driver) -> bool:
        """Whether tasks of this driver have begun slices, and not ended them, as its last heartbeat said."""
        state = self.state
        return state is not None and bool(state.working.get(driver.member))

    def shared(self, *drivers: Driver) -> bool:
        """Whether these drivers own everything, each about as much as the others."""
        if not self.working(*drivers):
            return False
        sizes = [self.held(d).size for d in drivers]
        return sum(sizes) == self.partitions * WHOLE.size and max(sizes) <= _ABOUT * min(sizes)

    def held(self, driver: Driver) -> output.Held:
        """The current ranges of a driver that has worked."""
        state = self.state
        owners = state.owners if state else {}
        mine = {tp.partition: [x for x in of_tp if x[2] == driver.member] for tp, of_tp in owners.items()}
        ranges = {p: tuple(hashes for hashes, _, _ in of_p) for p, of_p in mine.items()}
        epochs = frozenset(epoch for of_p in mine.values() for _, epoch, _ in of_p)
        return output.Held(time.monotonic_ns(), driver.name, ranges, epochs)

    def events_of(self, driver: Driver) -> list[GroupEvent]:
        """The events about a driver that has worked."""
        with closing(RedisClient(self.redis_url)) as client:
            return [e for e in last_events(client, self.group, _MANY) if e.member == driver.member]

    def events(self) -> list[str]:
        """The last events of the group, as lines."""
        with closing(RedisClient(self.redis_url)) as client:
            return [f"{e.at_ms} {e.kind} {e.member}: {e.why}" for e in last_events(client, self.group, _LAST)]

    def delivered(self, held: output.Held) -> float:
        """Wait until others have delivered records of this driver's ranges; returns the seconds that it took."""
        self.until(lambda: held.elsewhere_after_s(self._finished()) is not None, f"others do the work of {held.driver}")
        return held.elsewhere_after_s(self._finished()) or 0.0

    def without(self, member: str) -> bool:
        """Whether everything is owned, and nothing by this member."""
        state = self.state
        return state is not None and bool(owners(state) - {member}) and member not in owners(state)

    def handed_over(self, driver: Driver, since_ms: int) -> float:
        """Wait until others own what this driver had; the seconds since then, both by the clock of this host."""
        self.until(lambda: self.without(driver.member), f"others own the ranges of {driver.name}")
        with closing(RedisClient(self.redis_url)) as client:
            events = last_events(client, self.group, _MANY)
        assigned = [e.at_ms for e in events if e.kind == "assigned" and e.member != driver.member]
        return (max(assigned) - since_ms) / 1000

    @property
    def arrived(self) -> set[tuple[int, int]]:
        """Partition and offset of every record in a finished batch."""
        return {(p, d.offset) for batch in self._finished() for p, d in batch.deliveries}

    @property
    def deliveries(self) -> int:
        """Records in finished batches; one that came twice counts twice."""
        return sum(len(batch.deliveries) for batch in self._finished())

    @property
    def everything_arrived(self) -> bool:
        """Whether every sent record is in a finished batch."""
        return len(self.arrived) == sum(map(len, self.sent))

    @property
    def everything_confirmed(self) -> bool:
        """Whether the group's stable offsets are behind every sent record."""
        state = self.state
        return state is not None and sorted(state.stable.values()) == sorted(map(len, self.sent))

    @property
    def longest_batch_s(self) -> float:
        """The longest time between two finished batches of one driver."""
        clocks = [[b.clock for b in output.batches(d.name, d.lines)] for d in self.drivers.values()]
        return max((after - before for of_one in clocks for before, after in pairwise(of_one)), default=0) / 1e9

    def until(self, happened: Callable[[], bool], what: str, seconds: float = _PATIENCE_S) -> float:
        """Wait for a condition; returns the seconds. `RuntimeError` if a driver fails or the time runs out.

        Raises what the producer has raised.
        """
        began = time.monotonic()
        while not happened():
            if self.sending and self.sending.done():
                self.sending.result()
            if time.monotonic() - began > seconds:
                logs = [f"-- {d.name}:\n{processes.tail(d.log)}" for d in self.drivers.values()]
                raise RuntimeError(
                    "\n".join((f"not within {seconds:.0f} s: {what}\n{self.state}", *self.events(), *logs))
                )
            time.sleep(_POLL_S)
        return time.monotonic() - began

    def until_attended(
        self, happened: Callable[[], bool], what: str, log: Callable[[str], None] = lambda _: None
    ) -> float:
        """The same, with more patience; it releases lanes that two kills have parked (rule: parked-until-released)."""

        def attended() -> bool:
            for strike in self.release_parked():
                log(f"released, as an operator would: {strike}")
            return happened()

        return self.until(attended, what, PATIENCE_S)

    def outcome(self) -> output.Outcome:
        """The verdict on all records sent so far."""
        disturbed = {d.name: d.disturbed for d in self.drivers.values()}
        return output.outcome(self.sent, self._finished(), disturbed)

    def _finished(self) -> list[output.Batch]:
        return list(chain.from_iterable(output.batches(d.name, d.lines) for d in self.drivers.values()))
