"""The end of a schedule: no more faults, and all records must arrive; then once more with a single member."""

from simulation import operating, policies
from simulation.applications import Applications
from simulation.kafka import KEYS
from simulation.sink import Violation
from simulation.wishes import EXCLUSIVE
from simulation.world import MOST_RECORDS, SESSION_MS, World

_QUIET_STEPS = 40_000  # a search among many suspects without records took 15,000
_MOST_HELD_UP = 6  # in a batch, its replay and a trial; again if no report of it came in time


def quietly(world: World, apps: Applications) -> None:
    """Run the rest of a schedule; raises `Violation` if a record is missing, or the schedule does not come to rest."""
    _calm(world, apps)
    states = [each.invariants.state for each in world.sets]
    if apps.work.endless or apps.work.failing or any(state.strikes or state.failing for state in states):
        _park(world, apps)
    _arrive(world, apps)
    if world.chance(0.4):
        _leave_one(world, apps)
        _arrive(world, apps)


def _calm(world: World, apps: Applications) -> None:
    world.trace("--- quiet")
    apps.work.slow.clear()
    apps.work.calm = True
    world.brokers.recover()
    world.grow_together()
    apps.quiet = True
    for each in world.sets:
        each.server.unreliable, each.server.away_until_ms, each.kafka.mirror = 0.0, 0, ""
        while each.server.ghosts:
            each.server.run_ghost()
    for actor in world.scheduler.actors:
        actor.wakes_at = min(actor.wakes_at, world.scheduler.now_ms + SESSION_MS)
    world.produce(2 * len(world.kafka.logs), 2 * MOST_RECORDS)
    if world.pins:
        world.pins.cut_anew()
        policies.allow_all(world)
    for driver in apps.running:
        of_others = driver.wishes.assignors == EXCLUSIVE or driver.filter != world.filters.current
        if world.pins or of_others or driver.checkpoint.assigned:
            driver.world.sink.unconfirmed.add((driver.checkpoint.name, len(driver.checkpoint.wal) - 1))
            apps.kill(driver)


def _park(world: World, apps: Applications) -> None:
    """An endless record is parked after some drivers hung on it. All else arrives; then the record is released."""
    world.trace("--- endless")
    for each in world.sets:
        policies.allow_all(each)
    apps.work.held_up.clear()
    free_at_ms = 0
    for _ in range(_QUIET_STEPS):
        if all(_all_but_parked(each, apps) for each in world.sets):
            break
        for each in world.sets:
            policies.allow_again(each)
        free_at_ms = _supervise(world, apps, free_at_ms)
        world.scheduler.step()
    else:
        raise Violation(f"STUCK: nothing arrives beside endless records; strikes {world.invariants.state.strikes}")
    world.server.seen["all but parked"] += 1
    for record, times in apps.work.held_up.items():
        world.server.seen[f"held up {times} times"] += 1
        if times > _MOST_HELD_UP:
            raise Violation(f"WALK: {record} has held up {times} drivers, one after the other")
    world.trace("--- released")
    for each in world.sets:
        operating.release(each, apps.work, healed=True)


def _supervise(world: World, apps: Applications, free_at_ms: int) -> int:
    """Stop a driver that hangs, and start another; an operator releases records that were parked wrongly.

    The next driver starts when the lease of the last hung driver has ended, because only then the group knows that it
    hung. So it waits until `free_at_ms`, and returns the new value.
    """
    now_ms = world.scheduler.now_ms
    for driver in apps.running:
        if driver.hangs_since is not None and now_ms - driver.hangs_since > driver.settings.session_ms:
            apps.kill(driver)
            free_at_ms = now_ms + 2 * world.longest_session_ms
    if apps.short() or (len(apps.running) < 2 and now_ms >= free_at_ms):
        apps.start(apps.next_checkpoint())
    for each in world.sets:
        if any(s.parked for s in each.invariants.state.strikes):
            operating.release(each, apps.work, healed=False, keys=False)
    return free_at_ms


def _all_but_parked(world: World, apps: Applications) -> bool:
    state, ends = world.invariants.state, world.kafka.ends()
    full = [tp for tp in ends if state.full(tp, apps.most_ics, world.max_deferred_keys)]
    if world.ordering == "partition":  # rule: partition-order
        full += {*(s.tp for s in state.strikes if s.parked), *(r.tp for r in state.failing.values() if r.parked)}
    ends = {tp: end for tp, end in ends.items() if not any(at == tp or (state.growths and at < tp) for at in full)}
    if state.run_id == "0" or not state.at_but_parked(ends):
        return False
    missing = [r for tp, end in ends.items() for r in world.needed(tp, end) if not state.parked(r)]
    if any(map(world.cuts.excuses, missing)):
        return False  # positions lie above records of a log that was cut, and no member has found that yet
    if missing:
        raise Violation(f"LOST: {missing[0]} is not parked, and never reached the sink")
    return True


def _leave_one(world: World, apps: Applications) -> None:
    """A member without others must not block itself (rule: lease-end)."""
    world.trace("--- alone")
    for driver in apps.running[1:]:
        apps.kill(driver)
    world.produce(2 * len(world.kafka.logs), 3 * MOST_RECORDS)


def _arrive(world: World, apps: Applications) -> None:
    for _ in range(_QUIET_STEPS):
        if apps.short():
            apps.start(apps.next_checkpoint())
        if all(_arrived(each, apps) for each in world.sets):
            break
        if world.pins or world.without_order:
            policies.allow_again(world)
        for each in world.sets:
            if any(s.parked for s in each.invariants.state.strikes) or each.invariants.state.parked_keys:
                operating.release(each, apps.work, healed=True)  # a hung driver that was reported late
        world.scheduler.step()
    else:
        state = world.invariants.state
        raise Violation(f"STUCK: nothing arrives; positions {state.segments}, owners {state.owners}, {state.failing}")
    for each in world.sets:
        _all_in_sink(each)


def _arrived(world: World, apps: Applications) -> bool:
    state = world.invariants.state
    ending = any(d.wishes.available_now for d in apps.running)
    arrived = state.at(world.kafka.ends()) and state.run_id != "0" and not _hides_a_cut(world)
    members = [d for d in apps.running if d.world is world and not d.spare]
    settled = world.without_order or state.settled(d.member for d in members)
    return arrived and not ending and not world.writing() and settled and not state.failing


def _hides_a_cut(world: World) -> bool:
    """Whether positions lie above records of a log that was cut, and no member has found that yet."""
    ends = world.kafka.ends().items() if world.cuts else ()
    return any(world.cuts.excuses(r) for tp, end in ends for r in world.needed(tp, end))


def _all_in_sink(world: World) -> None:
    for tp, end in world.kafka.ends().items():
        if missing := world.needed(tp, end):
            raise Violation(f"LOST: {missing[0]} and {len(missing) - 1} more never reached the sink")
        for key in KEYS:
            promised = [r.offset for r in world.promised(tp, end) if r.key == key]
            if promised and world.sink.highest[key][tp] < promised[-1]:
                raise Violation(f"UPSERT: the sink keeps offset {world.sink.highest[key][tp]}, not {promised[-1]}")
