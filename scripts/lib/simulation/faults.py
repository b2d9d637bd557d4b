"""The faults, and their frequency. A fault is a function of the world; without a victim it does nothing."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from random import Random

from simulation import operating, policies
from simulation.applications import OUTAGE_MS, Applications
from simulation.checkpoint import Checkpoint
from simulation.driver import Driver
from simulation.process import HEARTBEAT_MS
from simulation.producers import LEARN_MS, SECONDS_MS
from simulation.wishes import drawn_cutting, widened
from simulation.world import MOST_RECORDS, SESSION_MS, World

Mixture = Mapping[Callable[[World, Applications], None], float]

FAR_AHEAD_MS = 1_000 * SESSION_MS  # longer than any schedule
_MOMENTS = (
    *(
        "join",
        "look",
        "assign",
        "acquire",
        "hand_out",
        "release",
        "authorize",
        "seal",
        "the WAL",
        "commit",
        "claim",
        "recover",
    ),
    *("the sink", "the sink"),
)
MOST_DRIVERS, MOST_PARTITIONS, MOST_COPIES = 4, 5, 3
MOST_ENDLESS = 2


def draw(world: World, apps: Applications, mixture: Mixture) -> None:
    """One fault."""
    fault = world.random.choices(list(mixture), list(mixture.values()))[0]
    world.server.seen[fault.__name__.removeprefix("_")] += 1
    fault(world, apps)


def mixture(random: Random, *, peaceful: bool) -> Mixture:
    """The frequency of each fault in one schedule. Some never come, some very often, so that rare faults also meet."""
    if peaceful:
        return {_start: 26, _produce: 20, _resplit: 10, _policy: 6, _slow_key: 4, _short_outage: 6, _restart_redis: 3}
    return {fault: weight * random.choice((0, 1, 1, 1, 6)) for fault, weight in FAULTS.items()} | {_start: 26}


def without_order(mixture: Mixture) -> Mixture:
    """The same without policies about key ranges, and without records that a group without order cannot park."""
    never = (_policy, _endless_record, _failing_record, _operator_releases)
    return {f: weight for f, weight in mixture.items() if f not in never}


def modelled(model: str, mixture: Mixture, *, operated: bool = False) -> Mixture:
    """The same without faults that a model of `specs/` does not have, and with more that fences must see.

    Only in some schedules, `operated` ones, an operator changes a group of the model `Loss`.
    """
    lives = {_crash, _doom, _stop, stopped_in_a_batch, _kill_jvm, _pause_process, _pause_jvm, _pause_task, _start}
    kept = lives | {_produce, _resplit, _slow_key, _time_passes, _outage, _short_outage}
    cuts: Mixture = {cut_log: 40.0, old_copy_of_a_cut: 60.0, _produce: 40.0} if cut_log in mixture else {}
    changes: Mixture = {_operator_resets: 20.0, operator_deletes: 20.0, late_writer_of_the_mirror: 40.0}
    operators = changes if operated else {}
    own: dict[str, Mixture] = {
        "Loss": {_copy: 10.0, _restore_redis: 15.0, _empty_redis: 10.0, _restart_redis: 10.0, **cuts, **operators},
        "Lease": {_second_driver: 12.0, _ghost: 12.0, _pause_process: 30.0},
        "Batch": {_entry_lost: 6.0, _doom: 30.0},
    }
    peaceful = _crash not in mixture
    return {**{f: weight for f, weight in mixture.items() if f in kept}, **({} if peaceful else own[model])}


def redundant(mixture: Mixture) -> Mixture:
    """The same for replica sets: more drivers that start, and nothing that an operator does to one set."""
    never = {_grow, grow_unseen, _policy, _endless_record, _failing_record, _operator_releases, _clock_jump, _copy}
    never |= {_operator_resets, _operator_is_killed, _restore_redis, operator_deletes}
    return {fault: weight for fault, weight in mixture.items() if fault not in never} | {_start: 60}


def without_growth(mixture: Mixture) -> Mixture:
    """The same without growths: a pinned member does not read new partitions."""
    return {fault: weight for fault, weight in mixture.items() if fault not in (_grow, grow_unseen)}


def growing_apart(mixture: Mixture) -> Mixture:
    """The same with joined topics, of which one grows before the others."""
    return {**without_growth(mixture), grow_one: 12, grow_the_others: 12}


def _crash(world: World, apps: Applications) -> None:
    if apps.running:
        apps.kill(world.random.choice(apps.running))


def _doom(world: World, apps: Applications) -> None:
    """Kill a driver right after its next script of some kind, before its caller gets the answer, or after its sink."""
    if apps.running:
        driver = world.random.choice(apps.running)
        _doom_at(world.random.choice(_MOMENTS), driver, apps)


def lost_in_a_batch(world: World, apps: Applications) -> None:
    """Kill a driver right after it has told Redis which slices its tasks have begun."""
    if apps.running:
        _doom_at("working", world.random.choice(apps.running), apps)


def _doom_at(moment: str, driver: Driver, apps: Applications) -> None:
    driver.trace(f"is doomed at its next {moment}")
    driver.line.doom = moment, partial(apps.kill, driver)


def _stop(world: World, apps: Applications) -> None:
    """query.stop(), at any point of the driver."""
    if working := [d for d in apps.running if not d.ended]:
        driver = world.random.choice(working)
        driver.trace("SIGTERM")
        apps.stop(driver)


def stopped_in_a_batch(world: World, apps: Applications) -> None:
    """query.stop() of the next driver whose tasks are at work."""
    world.produce(world.random.randint(4, 12), MOST_RECORDS)
    apps.stops_at_work += 1


def _kill_jvm(world: World, apps: Applications) -> None:
    """SIGKILL of the JVM alone, also while it waits for an answer of the reader process."""
    if working := [d for d in apps.running if not d.ended]:
        driver = world.random.choice(working)
        driver.trace("JVM KILLED" + (" in a call" if driver.jvm.calls else ""))
        driver.jvm.dead = True
        if driver.jvm.calls:
            apps.orphan(driver)
        else:
            apps.stop(driver)


def _pause_process(world: World, apps: Applications) -> None:
    """SIGSTOP of everything: no heartbeat either."""
    if apps.running:
        driver, ms = world.random.choice(apps.running), world.random.randint(500, 3 * SESSION_MS)
        driver.trace(f"paused for {ms} ms")
        for actor in driver.actors:
            actor.wakes_at = max(actor.wakes_at, world.scheduler.now_ms + ms)


def _pause_jvm(world: World, apps: Applications) -> None:
    """The driver hangs, its heartbeat goes on: a long batch."""
    if apps.running:
        driver, ms = world.random.choice(apps.running), world.random.randint(500, 6 * SESSION_MS)
        driver.trace(f"JVM paused for {ms} ms")
        driver.main.wakes_at = max(driver.main.wakes_at, world.scheduler.now_ms + ms)


def _pause_task(world: World, apps: Applications) -> None:
    if writing := world.writing():
        actor = world.random.choice(writing)
        actor.wakes_at = world.scheduler.now_ms + world.random.randint(500, 4 * SESSION_MS)


def _start(world: World, apps: Applications) -> None:
    """A driver starts: mostly on the checkpoint of an ended driver, else as a new application."""
    if len(apps.running) < MOST_DRIVERS:
        idle = apps.idle_checkpoints()
        old = idle and world.chance(0.85)
        apps.start(world.random.choice(idle) if old else apps.new_checkpoint())


def _second_driver(world: World, apps: Applications) -> None:
    if apps.running and len(apps.running) < MOST_DRIVERS:
        checkpoint: Checkpoint = world.random.choice(apps.running).checkpoint
        world.trace(f"a second driver on {checkpoint.name}")
        apps.start(checkpoint)


def copy_checkpoint(world: World, apps: Applications) -> None:
    """Somebody copies the checkpoint of a query that runs, and starts a query on the copy: the same member."""
    if (running := [d for d in apps.running if not d.ended]) and len(apps.running) < MOST_DRIVERS:
        apps.start(apps.copy_of(world.random.choice(running).checkpoint))


def _produce(world: World, apps: Applications) -> None:
    world.produce(world.random.randint(1, 4), MOST_RECORDS)


def _grow(world: World, apps: Applications) -> None:
    """To a multiple, or to any number."""
    now = len(world.kafka.logs)
    wanted = world.random.choice((2 * now, 3 * now, now + 1, now + 2))
    if wanted <= MOST_PARTITIONS:
        _grow_to(world, wanted)


def _grow_to(world: World, partitions: int) -> None:
    world.trace(f"the topic grows to {partitions} partitions")
    world.producers.grow(partitions, world.scheduler.now_ms)


def grow_one(world: World, apps: Applications) -> None:
    """One of the joined topics has new partitions, which wait for those of the others; not before the group exists."""
    if not world.invariants.state.segments:
        return
    topic = world.random.choice(world.kafka.topics)
    wanted = world.kafka.count(topic) + world.random.choice((1, 1, 2))
    if wanted <= MOST_PARTITIONS:
        world.trace(f"{topic} grows to {wanted} partitions")
        world.producers.grow(wanted, world.scheduler.now_ms, [topic])


def grow_the_others(world: World, apps: Applications) -> None:
    """All joined topics have as many partitions again."""
    if any(world.kafka.count(topic) < world.kafka.partitions for topic in world.kafka.topics):
        world.server.seen["joined topics grown together"] += 1
        world.trace("the joined topics grow together")
        world.grow_together()


def grow_unseen(world: World, apps: Applications) -> None:
    """All queries are lost, and the topic grows twice, soon or late. Then a query starts.

    Producers write between and after. Mostly the two growths look like one to a multiple, and are none.
    """
    if not world.invariants.state.segments:
        return
    for driver in apps.running:
        apps.kill(driver)
    odd = world.producers.in_steps(world.kafka.partitions, MOST_PARTITIONS)
    steps = world.random.choice(odd) if odd and world.chance(0.8) else None
    for n in range(2):
        if steps:
            _grow_to(world, steps[n])
        else:
            _grow(world, apps)
        later = (LEARN_MS, SECONDS_MS + LEARN_MS, 3 * SECONDS_MS) if n == 0 else (0, 0, LEARN_MS, 2 * SECONDS_MS)
        world.scheduler.now_ms += world.random.choice(later)
        world.produce(world.random.randint(2, 8), MOST_RECORDS)
    apps.start(world.random.choice(apps.idle_checkpoints() or [apps.new_checkpoint()]))


def _resplit(world: World, apps: Applications) -> None:
    """A driver cuts its next batches into other lanes."""
    if apps.running:
        driver = world.random.choice(apps.running)
        cutting = replace(drawn_cutting(world.random), by_offset=world.without_order)
        if world.wide:
            cutting = widened(cutting)
        if world.joined:
            cutting = replace(cutting, joined=world.kafka.topics, max_records_per_partition=None)
        driver.trace(f"cuts otherwise: {cutting}")
        driver.service.guesses._cutting = cutting  # noqa: SLF001 - as measured costs would do


def _policy(world: World, apps: Applications) -> None:
    policies.switch(world, apps)


def change_filter(world: World, apps: Applications) -> None:
    """A step of a rolling change: restart a driver with the new filter, or all. Without any, choose another filter.

    Then some drivers crash in a batch, so that a checkpoint has a batch of the old filter.
    """
    if old := [d for d in apps.running if d.filter != world.filters.current]:
        for driver in old if world.chance(0.3) else [world.random.choice(old)]:
            driver.trace("FILTER: is restarted")
            apps.restart(driver)
    else:
        world.filters.change()
        world.trace(f"FILTER: drivers that start now have {world.filters.current.text or 'none'}")
        for driver in (d for d in apps.running if world.chance(0.5)):
            _doom_at(world.random.choice(("authorize", "the sink")), driver, apps)


def _slow_key(world: World, apps: Applications) -> None:
    apps.work.turn_slow()


def _endless_record(world: World, apps: Applications) -> None:
    if len(apps.work.endless) < MOST_ENDLESS:
        apps.work.turn_endless()


def _failing_record(world: World, apps: Applications) -> None:
    if world.on_error:
        for _ in range(world.random.randint(1, 6)):
            apps.work.turn_failing()


def _operator_releases(world: World, apps: Applications) -> None:
    operating.release(world, apps.work, healed=world.chance(0.5))


def operator_drains(world: World, apps: Applications) -> None:
    """An operator drains members, as before a restart."""
    operating.drain(world)


def election(world: World, apps: Applications) -> None:
    """Another broker leads a partition. It answers with a low high watermark at first."""
    tp = world.random.choice(list(world.kafka.logs))
    world.trace(f"{tp} has another leader, whose high watermark is {world.kafka.elect(tp)}")


def silence(world: World, apps: Applications) -> None:
    """The leader of a partition does not answer for a while (rule: silent-leader)."""
    tp = world.random.choice(list(world.kafka.logs))
    length_ms = world.brokers.silence(tp, world.scheduler.now_ms)
    world.trace(f"the leader of {tp} does not answer for {length_ms} ms")


def transaction(world: World, apps: Applications) -> None:
    """A transaction begins or ends."""
    tp = world.random.choice(list(world.kafka.logs))
    is_open = world.brokers.begin_or_end_transaction(tp, len(world.kafka.logs[tp]))
    world.trace(f"{tp} has {'an open' if is_open else 'no open'} transaction")


def _time_passes(world: World, apps: Applications) -> None:
    """All hosts stand still for more than a minute: long enough for lanes to merge."""
    world.trace("the hosts sleep")
    world.scheduler.now_ms += 61_000


def _retention(world: World, apps: Applications) -> None:
    """Retention removes the oldest records of a partition, read or not."""
    tp = world.random.choice(list(world.kafka.logs))
    beginning, end = world.kafka.beginnings[tp], len(world.kafka.logs[tp])
    if beginning < end:
        world.kafka.beginnings[tp] = world.random.randint(beginning + 1, end)
        world.trace(f"{tp} begins at {world.kafka.beginnings[tp]}")


def cut_log(world: World, apps: Applications) -> None:
    """An unclean election; then other records come, at once or later."""
    tp = world.cuts.cut()
    _cut(world, f"{tp} is cut to {len(world.kafka.logs[tp])}")


def old_copy_of_a_cut(world: World, apps: Applications) -> None:
    """A log is cut below what the group has read, and grows beyond it; then a copy of Redis of before the cut answers.

    It answers right after a member has accepted the cut and planned new records. Perhaps nobody lives who remembers it.
    Or it answers right before this member stores the leader epoch of now.
    """
    stable, beginnings = world.invariants.state.stable, world.kafka.beginnings
    read = sorted({r.tp for r in world.sink.delivered if beginnings[r.tp] <= r.offset == stable(r.tp) - 1})
    accepting = [driver for driver in apps.running if not driver.wishes.fail_on_data_loss]
    if not (accepting and read):
        return
    tp, remembered, stores = world.random.choice(read), world.chance(0.3), world.chance(0.4)
    world.trace("Redis is copied")
    world.server.copies.clear()
    world.server.copy()
    position = stable(tp)
    world.cuts.cut(tp, position - 1)
    _cut(world, f"{tp} is cut to {len(world.kafka.logs[tp])}, below the position {position}")
    for _ in range(MOST_RECORDS):
        world.produce(len(world.kafka.logs[tp]) <= position, MOST_RECORDS)

    def comes_back(driver: Driver) -> None:
        driver.line.doom = None
        _restore_redis(world, apps)
        for each in sorted(apps.running, key=lambda each: each is driver):
            if not remembered and not (stores and each is driver):
                apps.kill(each)

    def accepted(driver: Driver) -> None:
        moment = "acquire" if stores else world.random.choice(("authorize", "working", "commit"))
        driver.line.doom = moment, partial(comes_back, driver)

    for driver in accepting:
        driver.line.doom = "recreate", partial(accepted, driver)


def topic_again(world: World, apps: Applications) -> None:
    """Somebody deletes a topic and creates it again; not of a lost group: its mirror names the topic of before.

    Then new queries end with `STATE_LOST` until an operator decides (rule: first-positions).
    """
    if world.invariants.state.nonce is None and world.kafka.group_offsets:
        return
    _cut(world, f"topic {world.cuts.create_again()} is deleted and created again")


def _cut(world: World, what: str) -> None:
    world.trace(what)
    world.producers.break_promise()
    world.invariants.lower_bases()
    if world.chance(0.6):
        world.produce(world.random.randint(1, 8), MOST_RECORDS)


def _outage(world: World, apps: Applications) -> None:
    ms = world.random.choice((500, 3_000, 3_000, 9_000))
    world.trace(f"Redis is away for {ms} ms")
    world.server.away_until_ms = world.scheduler.now_ms + ms


def _short_outage(world: World, apps: Applications) -> None:
    """About as long as a session or longer, and shorter than `redisMaxOutage`."""
    ms = world.random.randint(SESSION_MS - HEARTBEAT_MS, OUTAGE_MS - 500)
    world.trace(f"Redis is away for {ms} ms")
    world.server.away_until_ms = world.scheduler.now_ms + ms


def _clock_jump(world: World, apps: Applications) -> None:
    """The clock of the Redis host is set: forward, back a little, or back from far ahead."""
    ms = world.random.choice((-SESSION_MS // 2, SESSION_MS // 2, 2 * SESSION_MS, -FAR_AHEAD_MS))
    world.trace(f"the clock of Redis jumps by {ms} ms")
    world.server.skew_ms += ms
    if ms > 0 and world.growth_grace_ms <= 2 * SESSION_MS:
        world.producers.break_promise()


def _ghost(world: World, apps: Applications) -> None:
    if world.server.ghosts:
        world.trace(f"a late script arrives: one of {[verb for verb, _, _ in world.server.ghosts]}")
        world.server.run_ghost()


def _operator_resets(world: World, apps: Applications) -> None:
    """An operator moves positions, mostly after he has killed all drivers; if members live, the reset is refused."""
    if world.invariants.state.nonce and not _another_operator(world):
        if world.chance(0.7):
            for driver in apps.running:
                apps.kill(driver)
        wait_ms = world.random.choice((0, world.longest_session_ms + 1))
        work = partial(operating.reset, world, MOST_RECORDS, wait_ms)
        world.operators.append(world.scheduler.spawn("operator", work))


def _another_operator(world: World) -> bool:
    """A model has one at a time."""
    return bool(world.modelled) and any(each.alive for each in world.operators)


def _operator_is_killed(world: World, apps: Applications) -> None:
    if working := [o for o in world.operators if o.alive]:
        world.trace("operator KILLED")
        world.scheduler.kill(working[-1])


def operator_deletes(world: World, apps: Applications) -> None:
    """An operator deletes the group while its members sleep, or after a kill (rule: one-founding)."""
    if not world.invariants.state.nonce or _another_operator(world):
        return
    for driver in apps.running:
        if world.chance(0.3):
            apps.kill(driver)
            continue
        _sleep(world, driver)
    world.operators.append(world.scheduler.spawn("operator", partial(_delete, world, apps)))


def _delete(world: World, apps: Applications) -> None:
    """Delete the group; in a model, a new application creates it again before the sleepers wake up."""
    operating.delete(world, world.longest_session_ms + 1)
    if world.modelled and not world.invariants.state.nonce and len(apps.running) < MOST_DRIVERS:
        apps.start(apps.new_checkpoint())


def late_writer_of_the_mirror(world: World, apps: Applications) -> None:
    """A driver sleeps between a read of Redis and its write of the mirror, while an operator resets or deletes."""
    if not apps.running or _another_operator(world):
        return

    def sleeps(driver: Driver) -> None:
        driver.line.doom = None
        for each in [each for each in apps.running if each is not driver]:
            apps.kill(each)
        reset = partial(operating.reset, world, MOST_RECORDS, world.longest_session_ms + 1)
        work = world.random.choice((reset, partial(_delete, world, apps)))
        world.operators.append(world.scheduler.spawn("operator", work))
        world.scheduler.turn(_sleep(world, driver))  # the actor that runs now sleeps here

    driver = world.random.choice(apps.running)
    driver.line.doom = "status", partial(sleeps, driver)


def _sleep(world: World, driver: Driver) -> int:
    """All actors of a driver sleep, for so many ms."""
    driver.trace("sleeps")
    ms = world.random.randint(2 * SESSION_MS, 6 * SESSION_MS)
    for actor in driver.actors:
        actor.wakes_at = max(actor.wakes_at, world.scheduler.now_ms + ms)
    return ms


def _mirror(world: World, apps: Applications) -> None:
    """Kafka's own group takes no commits, or may not be used, from now on; or it may again."""
    world.kafka.mirror = world.random.choice(("", "", "fails", "denied"))
    if world.kafka.apart and world.kafka.mirror == "denied":
        world.kafka.mirror = "fails"  # else nothing proves a topic whose readers are gone
    world.trace(f"the mirror: {world.kafka.mirror or 'works'}")


def _copy(world: World, apps: Applications) -> None:
    if len(world.server.copies) < MOST_COPIES and world.invariants.state.nonce:
        world.trace("Redis is copied")
        world.server.copy()


def _entry_lost(world: World, apps: Applications) -> None:
    """Kill a driver right after its sink. Before its next life, somebody deletes the entry of the member."""
    if apps.running:
        apps.lose_entry(world.random.choice(apps.running))


def _restart_redis(world: World, apps: Applications) -> None:
    if world.invariants.state.nonce:
        world.trace("REDIS RESTARTED")
        world.server.restart()
        world.invariants.check()


def _restore_redis(world: World, apps: Applications) -> None:
    """Two faults at once, no mirror of the latest reset and a copy of before it, would undo the reset.

    So would a copy of before the first positions of a topic.
    """
    needs_mirror = world.invariants.reset or world.kafka.apart
    if world.server.copies and (not needs_mirror or world.invariants.mirrored_everywhere):
        world.trace("REDIS RESTORED from an old copy")
        world.cuts.hide()
        world.server.restore()
        world.invariants.check()


def _empty_redis(world: World, apps: Applications) -> None:
    """Redis loses everything, once the mirror can prove positions.

    Not while a driver creates a group that did not exist at its look: it would resolve `latest` twice.
    """
    creating = any(d.creating for d in apps.running) or any(
        verb == "create_positions" for verb, _, _ in world.server.ghosts
    )
    if world.invariants.mirrored_everywhere and not creating:
        world.trace(f"REDIS EMPTIED{', and its mirror is denied' * (world.kafka.mirror == 'denied')}")
        world.server.seen["lost while denied"] += world.kafka.mirror == "denied"
        world.server.empty()
        world.invariants.check()


FAULTS: Mixture = {
    _crash: 10,
    _doom: 8,
    _stop: 7,
    _kill_jvm: 7,
    _pause_process: 14,
    _pause_jvm: 7,
    _pause_task: 8,
    _start: 26,
    _second_driver: 3,
    _produce: 14,
    _grow: 3,
    _resplit: 4,
    _policy: 6,
    _slow_key: 4,
    _endless_record: 3,
    _failing_record: 3,
    _operator_releases: 4,
    _time_passes: 0.5,
    _retention: 1,
    _outage: 3,
    _short_outage: 2,
    _clock_jump: 2,
    _ghost: 4,
    _operator_resets: 3,
    _operator_is_killed: 1,
    _copy: 4,
    _entry_lost: 3,
    _restart_redis: 2,
    _restore_redis: 3,
    _empty_redis: 1.5,
    _mirror: 4,
    operator_deletes: 1.5,
}


def _with(more: Mixture) -> Callable[[Mixture], Mixture]:
    """The same mixture, with these faults at these frequencies."""
    return lambda mixture: {**mixture, **more}


upgrading = _with({_policy: 60})
"""Policies that change often enough to complete the upgrade."""
filtering = _with({change_filter: 40})
"""Changes of the filter."""
failing = _with({_failing_record: 60})
"""More records on which the user's function fails."""
answering_low = _with({election: 20, transaction: 20, silence: 20})
"""Log ends that are low or unknown, and open transactions."""
losing_redis = _with({_empty_redis: 40, _copy: 10, _restore_redis: 20})
"""More losses of Redis."""
copying_checkpoints = _with({copy_checkpoint: 20, _restart_redis: 10})
"""Copies of checkpoints that run beside the original, and nonces that change."""
cutting = _with({cut_log: 15, topic_again: 5, old_copy_of_a_cut: 25, _produce: 30})
"""Logs that are cut and topics that are created again."""
restarting = _with({_restart_redis: 20, _pause_process: 20})
"""A Redis that restarts, and members that stand still meanwhile."""
losing_in_batches = _with({_slow_key: 20, lost_in_a_batch: 40})
"""Members that are lost over the slices that they read."""
stopping_in_batches = _with({stopped_in_a_batch: 40})
"""Drivers that end politely while their tasks work."""
growing = _with({_grow: 6, grow_unseen: 60, _produce: 30})
"""Topics that grow, also while no query looks."""
draining = _with({operator_drains: 30})
"""An operator who drains members."""
