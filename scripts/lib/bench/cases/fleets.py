"""Three applications in one group: the effect on the others when one stops, or meets a poison record."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from uuid import uuid4

import processes
from bench.functions import HANG, PASSED, wait_and_pass
from bench.table import Result
from bench.world import World
from coordinator.errors import DeadlinePassedError
from coordinator.plan.poison import Strike
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from coordinator.values.key_hash import hash_key
from drivers import output
from drivers.driver import Driver
from drivers.fleet import Feeding, Fleet
from spark_coop_source import map_keys
from topics import Record

NAMES = ("a", "b", "c")
SESSION_S, LONGEST_S = 10, 30
STOPPED_S, QUICKLY_S = 300, 40
WINDOW_S = 10
WARM_S, AFTER_S = 20.0, 15.0
POISONED = "key-3"
_OPTIONS = {
    **map_keys(wait_and_pass, PASSED, concurrency=4),
    "batchTimeBudget": "2s",
    "sessionTimeout": str(1000 * SESSION_S),
    "longestBatch": str(1000 * LONGEST_S),
}


def frozen(world: World) -> Iterator[Result]:
    """P7b: PIP-474's case, scaled: 8 partitions of 50 keys, 15 ms of waiting a record; one of three is stopped."""
    stopped_s = QUICKLY_S if world.quick else STOPPED_S
    with _fleet(world, Feeding(keys=50, at_once=60, every_keyless=1_000_000), partitions=8) as fleet:
        with fleet.producing():
            stopped, *others = _together(fleet)
            before = _watched(fleet, WARM_S)
            stopped.freeze()
            began = time.monotonic_ns()
            moved_s = fleet.until(lambda: fleet.without(stopped.member), "the others have its ranges")
            _watched(fleet, max(0.0, stopped_s - moved_s))
            during = (began, time.monotonic_ns())
            stopped.wake()
            fleet.until(lambda: _back(fleet, stopped), "it is back")
        fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
        outcome = fleet.outcome()
    had, have = (sum(_rate(d, *span) for d in others) for span in (before, during))
    work = f"8 partitions x 50 keys, 15 ms of waiting, 3 applications, one stopped for {stopped_s} s: the other two"
    least = min(sum(_rate(d, *span) for d in others) for span in _windows(*during))
    note = f"its ranges went on elsewhere after {moved_s:.0f} s, session {SESSION_S} s; {outcome}"
    note += f"; the least of {WINDOW_S} s: {least:.0f}"
    yield Result("P7b", work, "records/s before", f"{have:.0f}", f"{had:.0f}", 0.95 * had / have, 1.0, note)
    if not outcome.good:
        raise RuntimeError(f"P7b: {outcome}")


def _back(fleet: Fleet, woken: Driver) -> bool:
    """Whether all drivers work again. A task that was about to begin is too late: then the job is started again."""
    ended = woken.process is not None and woken.process.poll() is not None
    if ended and DeadlinePassedError.name in processes.tail(woken.log):
        woken.start()
    return fleet.working(*fleet.drivers.values())


def poison(world: World) -> Iterator[Result]:
    """P7d: one record never ends. An application that hangs on it is killed and started again, as an operator would."""
    with _fleet(world, Feeding(keys=20, at_once=20), partitions=1) as fleet:
        with fleet.producing():
            drivers = _together(fleet)
            fleet.odd.append(Record(HANG, POISONED.encode(), 0))
            began = time.monotonic()
            parked = _parked(fleet)
            took = time.monotonic() - began
            for driver in _silent(drivers):
                driver.kill()
                driver.start()
            seen = {d.name: len(d.lines) for d in drivers}
            fleet.until(lambda: all(len(d.lines) > seen[d.name] + 2 for d in drivers), "none is held up again")
        at = fleet.sent[0].index((POISONED, HANG.decode()))
        held = {
            i for i, (key, _) in enumerate(fleet.sent[0]) if key and i >= at and hash_key(key.encode()) in parked.hashes
        }
        rest = {(0, offset) for offset in range(len(fleet.sent[0])) if offset not in held}
        fleet.until(lambda: fleet.arrived >= rest, "all but what is parked is in a sink")
    keys = {fleet.sent[0][i][0] for i in held}
    if keys != {POISONED}:
        raise RuntimeError(f"P7d: not only {POISONED} was parked: {', '.join(sorted(map(str, keys)))}")
    times = [_held_up(fleet, d) for d in drivers]
    work = "one record never ends, 3 applications: how often the one was held up that was most often"
    note = f"{sum(map(bool, times))} of 3; its key alone parked after {took:.0f} s, longest batch {LONGEST_S} s"
    yield Result("P7d", work, "once at most", str(max(times)), "1", float(max(times)), 1.0, note)


@contextmanager
def _fleet(world: World, feeding: Feeding, partitions: int) -> Iterator[Fleet]:
    group = f"fleet-{uuid4().hex[:8]}"
    folder = world.folder / group
    folder.mkdir()
    fleet = Fleet(world.kafka, world.redis.address, group, folder, partitions, feeding=feeding, options=_OPTIONS)
    try:
        yield fleet
    finally:
        fleet.end()


def _together(fleet: Fleet) -> list[Driver]:
    """Three drivers at work, each past its first batches, in which workers start."""
    drivers = [fleet.join(name) for name in NAMES]
    fleet.until(lambda: fleet.working(*drivers), "three drivers share the topic")
    seen = {d.name: len(d.lines) for d in drivers}
    fleet.until(lambda: all(len(d.lines) >= seen[d.name] + 3 for d in drivers), "each has ended three batches")
    return drivers


def _watched(fleet: Fleet, seconds: float) -> tuple[int, int]:
    """Watch for this time, while no driver fails. Returns start and end, by the drivers' clock."""
    began, ends = time.monotonic_ns(), time.monotonic() + seconds
    fleet.until(lambda: time.monotonic() > ends and fleet.working(), "time passes", seconds + 60)
    return began, time.monotonic_ns()


def _windows(began: int, ended: int) -> list[tuple[int, int]]:
    """A time span in whole parts of `WINDOW_S`."""
    each = WINDOW_S * 1_000_000_000
    return [(start, start + each) for start in range(began, ended - each + 1, each)]


def _held_up(fleet: Fleet, driver: Driver) -> int:
    """Number of times that others took over a driver's unfinished batch, by the group's records."""
    return sum(event.kind == "expire" and "longest" in event.why for event in fleet.events_of(driver))


def _rate(driver: Driver, began: int, ended: int) -> float:
    """Records a second that a driver finished in a time span."""
    done = [b for b in output.batches(driver.name, driver.lines) if began <= b.clock < ended]
    return sum(len(b.deliveries) for b in done) / (ended - began) * 1e9


def _parked(fleet: Fleet) -> Strike:
    """The parked range of the group; waits until there is one."""
    with closing(RedisClient(fleet.redis_url)) as client:
        verbs = OperatorVerbs.of_group(client, fleet.group)
        fleet.until(lambda: any(s.parked for s in verbs.poison.strikes()), "what hangs is parked")
        return next(s for s in verbs.poison.strikes() if s.parked)


def _silent(drivers: Sequence[Driver]) -> list[Driver]:
    """The drivers that end no batch for a while, although records arrive."""
    seen = {d.name: len(d.lines) for d in drivers}
    time.sleep(AFTER_S)
    return [d for d in drivers if len(d.lines) == seen[d.name]]
