"""What goes wrong, and how often: a fault is a function of the world; where it finds no victim it does nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from simulation.actors import Stopped
from simulation.driver import Checkpoint
from simulation.invariants import mirrored_everywhere

if TYPE_CHECKING:
    from simulation.world import World

SESSION_MS = 4_000
MOST_DRIVERS, MOST_PARTITIONS, MOST_RECORDS, MOST_COPIES = 4, 3, 24, 3


def draw(world: "World") -> None:
    """One fault."""
    fault = world.random.choices(list(FAULTS), list(FAULTS.values()))[0]
    world.server.seen[fault.__name__.removeprefix("_")] += 1
    fault(world)


def _crash(world: "World") -> None:
    """SIGKILL of JVM and reader process, where they are."""
    if world.running:
        driver = world.random.choice(world.running)
        driver.trace("CRASH")
        for actor in driver.actors:
            world.scheduler.kill(actor)
        world.orphan(driver)


def _stop(world: "World") -> None:
    """query.stop(), wherever the driver is."""
    if working := [d for d in world.running if not d.ended]:
        driver = world.random.choice(working)
        driver.trace("SIGTERM")
        world.scheduler.throw(driver.main, Stopped())
        if not driver.ended:
            for actor in driver.actors:
                world.scheduler.kill(actor)
        world.orphan(driver)


def _pause_process(world: "World") -> None:
    """SIGSTOP of everything: no heartbeat either."""
    if world.running:
        driver, ms = world.random.choice(world.running), world.random.randint(500, 3 * SESSION_MS)
        driver.trace(f"paused for {ms} ms")
        for actor in driver.actors:
            actor.wakes_at = max(actor.wakes_at, world.scheduler.now_ms + ms)


def _pause_jvm(world: "World") -> None:
    """The driver hangs, its heartbeat goes on: a long batch."""
    if world.running:
        driver, ms = world.random.choice(world.running), world.random.randint(500, 6 * SESSION_MS)
        driver.trace(f"JVM paused for {ms} ms")
        driver.main.wakes_at = max(driver.main.wakes_at, world.scheduler.now_ms + ms)


def _pause_task(world: "World") -> None:
    writing = [a for t in world.tasks for a in t.actors if a.alive]
    if writing:
        actor = world.random.choice(writing)
        actor.wakes_at = world.scheduler.now_ms + world.random.randint(500, 4 * SESSION_MS)


def _start(world: "World") -> None:
    """A driver starts: mostly on the checkpoint of one that ended, else an application of its own."""
    if len(world.running) < MOST_DRIVERS:
        idle = world.idle_checkpoints()
        old = idle and world.chance(0.85)
        world.start(world.random.choice(idle) if old else world.new_checkpoint())


def _second_driver(world: "World") -> None:
    if world.running and len(world.running) < MOST_DRIVERS:
        checkpoint: Checkpoint = world.random.choice(world.running).checkpoint
        world.trace(f"a second driver on {checkpoint.name}")
        world.start(checkpoint)


def _produce(world: "World") -> None:
    world.produce(world.random.randint(1, 4), MOST_RECORDS)


def _grow(world: "World") -> None:
    if len(world.kafka.logs) < MOST_PARTITIONS:
        world.trace("the topic grows")
        world.kafka.add_partition()


def _outage(world: "World") -> None:
    ms = world.random.choice((500, 3_000, 3_000, 9_000))
    world.trace(f"Redis is away for {ms} ms")
    world.server.away_until_ms = world.server.now_ms + ms


def _clock_jump(world: "World") -> None:
    """The clock of the Redis host is set: forward, or back a little."""
    ms = world.random.choice((-SESSION_MS // 2, SESSION_MS // 2, 2 * SESSION_MS))
    world.trace(f"the clock of Redis jumps by {ms} ms")
    world.server.skew_ms += ms


def _ghost(world: "World") -> None:
    if world.server.ghosts:
        world.trace(f"a late script arrives: one of {[verb for verb, _, _ in world.server.ghosts]}")
        world.server.run_ghost()


def _copy(world: "World") -> None:
    if len(world.server.copies) < MOST_COPIES and world.invariants.state.nonce:
        world.trace("Redis is copied")
        world.server.copy()


def _restart_redis(world: "World") -> None:
    if world.invariants.state.nonce:
        world.trace("REDIS RESTARTED")
        world.server.restart()
        world.invariants.check()


def _restore_redis(world: "World") -> None:
    if world.server.copies:
        world.trace("REDIS RESTORED from an old copy")
        world.server.restore()
        world.invariants.check()


def _empty_redis(world: "World") -> None:
    """Everything in Redis is lost, once the mirror can prove positions.

    Not while somebody founds a group that was absent when he looked: `latest` would be resolved twice.
    """
    founding = any(d.founding for d in world.running) or any(verb == "found" for verb, _, _ in world.server.ghosts)
    if mirrored_everywhere(world.kafka) and not founding:
        world.trace("REDIS EMPTIED")
        world.server.empty()
        world.invariants.check()


FAULTS: dict[Callable[["World"], None], float] = {
    _crash: 14,
    _stop: 7,
    _pause_process: 14,
    _pause_jvm: 7,
    _pause_task: 8,
    _start: 26,
    _second_driver: 3,
    _produce: 14,
    _grow: 1,
    _outage: 3,
    _clock_jump: 2,
    _ghost: 4,
    _copy: 4,
    _restart_redis: 2,
    _restore_redis: 3,
    _empty_redis: 1.5,
}
