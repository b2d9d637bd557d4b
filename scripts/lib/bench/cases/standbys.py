"""The gap after kill -9 of an owner: with a standby, with a second working member, and with a restart."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from uuid import uuid4

from bench.table import Result, duration
from bench.world import World
from coordinator.redis.group_state import STANDBY
from coordinator.tools.operations.views import view
from drivers import output
from drivers.driver import Driver
from drivers.fleet import Feeding, Fleet

SESSION_S = 5.0
KILLS, FEW_KILLS = 30, 3
_POLL_S, _PATIENCE_S = 0.1, 120.0
_STANDING_BY = {"standby": "true"}
_FEEDING = Feeding(keys=50, at_once=20, every_keyless=1_000_000)


@dataclass(frozen=True, slots=True)
class Gap:
    """One kill: seconds until records of the lost keys were in a sink again."""

    seconds: float
    after_lease: float  # the part of it behind the end of the lease


def standby(world: World) -> Iterator[Result]:
    """One partition of 50 keys, session 5 s; one driver of two is killed, or the only one."""
    gaps = {name: list(_kills(world, name)) for name in _WAYS}
    ours = gaps["standby"]
    for name in ("two", "restart"):
        theirs = gaps[name]
        work = f"gap of keys after kill -9 of their owner, p99 of {len(ours)} kills, session {SESSION_S:.0f} s"
        note = f"{_told(ours)}; {_told(theirs)}"
        mine, other = (percentile([g.seconds for g in of]) for of in (ours, theirs))
        against = {"two": "two working members", "restart": "one driver, started again at once"}[name]
        yield Result("standby", work, against, duration(mine), duration(other), mine / other, None, note)


def percentile(values: Sequence[float], percent: int = 99) -> float:
    """The nearest rank: of 30 values, the 99th percentile is the largest."""
    return sorted(values)[ceil(len(values) * percent / 100) - 1]


def _told(gaps: Sequence[Gap]) -> str:
    whole, behind = [g.seconds for g in gaps], [g.after_lease for g in gaps]
    medians = duration(percentile(whole, 50)), duration(percentile(behind, 50))
    return f"median {medians[0]}, behind the lease {medians[1]}, p99 {duration(percentile(behind))}"


def _kills(world: World, way: str) -> Iterator[Gap]:
    with _fleet(world, way) as fleet:
        drivers = [fleet.start("a")]
        fleet.until(lambda: _go_on(drivers) and fleet.working(*drivers), "the first driver works")
        if way != "restart":
            drivers.append(fleet.start("b"))
        with fleet.producing():
            for number in range(FEW_KILLS if world.quick else KILLS):
                fleet.until(_WAYS[way](fleet, drivers), f"{way} is ready for kill {number + 1}")
                time.sleep(random.uniform(1, 2))  # noqa: S311 - at any time between two heartbeats
                gap = _killed(fleet, next(d for d in drivers if fleet.working(d)), at_once=way == "restart")
                told = f"{gap.seconds:.2f} s, {gap.after_lease:.2f} s of it behind the lease"
                print(f"    {way} {number + 1}: {told}", flush=True)
                yield gap


def _killed(fleet: Fleet, victim: Driver, *, at_once: bool) -> Gap:
    """Kill a driver, wait until its keys are in a sink again, and start it again."""
    held, state = fleet.held(victim), fleet.state
    left_s = (state.leases_ms[victim.member] - state.now_ms) / 1000 if state else 0.0
    before = {d.name: len(d.lines) for d in fleet.drivers.values()}
    began = time.monotonic_ns()
    victim.kill()
    if at_once:
        fleet.start(victim.name)
    gap = _gap(fleet, held, before, began)
    if not at_once:
        fleet.start(victim.name)
    return Gap(gap, max(0.0, gap - left_s))


def _gap(fleet: Fleet, held: output.Held, before: Mapping[str, int], began: int) -> float:
    """Seconds until any driver finished a batch with records of these key hashes."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        for driver in fleet.drivers.values():
            for batch in output.batches(driver.name, driver.lines[before[driver.name] :]):
                if batch.clock > began and held.of(batch):
                    return (batch.clock - began) / 1e9
        time.sleep(_POLL_S)
    raise RuntimeError(f"no driver delivers the keys of {held.driver}")


def _go_on(drivers: Sequence[Driver]) -> bool:
    """Start drivers again that failed to start: Spark gives its Python 10 s, which a busy machine may exceed."""
    for driver in drivers:
        if driver.process is not None and driver.process.poll() is not None:
            driver.start()
    return True


def _one_stands_by(fleet: Fleet, drivers: Sequence[Driver]) -> Callable[[], bool]:
    """Whether one driver owns everything, and the other one is alive and a standby."""

    def ready() -> bool:
        _go_on(drivers)
        state = fleet.state
        roles = [m.state for m in view(fleet.group, state).members] if state else []
        return sorted(roles) == [STANDBY, "working"] and any(fleet.working(d) for d in drivers)

    return ready


def _both_work(fleet: Fleet, drivers: Sequence[Driver]) -> Callable[[], bool]:
    return lambda: _go_on(drivers) and fleet.shared(*drivers)


def _it_works(fleet: Fleet, drivers: Sequence[Driver]) -> Callable[[], bool]:
    return lambda: _go_on(drivers) and fleet.working(*drivers) and all(d.finished > 2 for d in drivers)


_WAYS = {"standby": _one_stands_by, "two": _both_work, "restart": _it_works}


@contextmanager
def _fleet(world: World, way: str) -> Iterator[Fleet]:
    group = f"{way}-{uuid4().hex[:8]}"
    folder = world.folder / group
    folder.mkdir()
    options = {"sessionTimeout": str(int(1000 * SESSION_S)), **(_STANDING_BY if way == "standby" else {})}
    fleet = Fleet(world.kafka, world.redis.address, group, folder, feeding=_FEEDING, options=options)
    try:
        yield fleet
    finally:
        fleet.end()
