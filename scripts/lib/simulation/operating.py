"""An operator of the simulation: resets the group with the real code. A fault may interrupt every step."""

from coordinator.errors import CoopKafkaError, GroupBusyError, RedisUnavailableError
from coordinator.plan.poison import Strike
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.poison import RedisPoison
from coordinator.redis.positions import RedisPositions
from coordinator.tools.operations.operations import Operator
from coordinator.tools.operations.reset_plan import ChosenPartitions, ToOffset
from coordinator.values.verdicts import Verdict
from simulation.kafka import TOPIC, SimulatedLog
from simulation.redis_server import Line
from simulation.retired import RETIRED, TOPICS
from simulation.work import Work
from simulation.world import World


def release(world: World, work: Work, *, healed: bool, keys: bool = True) -> None:
    """Release all parked lanes and keys; `healed` if the user's function ends now. Else only lanes never endless."""
    if healed:
        work.endless.clear()
        work.failing.clear()
    state = world.invariants.state
    if not ((keys and state.parked_keys) or any(not _is_endless(s, work) for s in state.strikes if s.parked)):
        return  # a look for nothing, in each of thousands of steps
    line = Line(world.server, world.trace)
    poison = RedisPoison(ScriptCalls(line, world.group, now=lambda: world.server.now_ms))
    try:
        wanted = [s for s in poison.strikes() if s.parked and not _is_endless(s, work)]
        if wanted and poison.forgive(wanted, "by an operator"):
            world.trace(f"operator RELEASES {[s.field for s in wanted]}")
            world.server.seen["released"] += 1
        waiting = [r for r in poison.failing() if r.parked and (healed or world.chance(0.5))] if keys else []
        if waiting and poison.resume(waiting, "by an operator"):
            world.trace(f"operator RELEASES {[r.field for r in waiting]}")
            world.server.seen["key released"] += 1
    except (CoopKafkaError, Verdict) as error:
        world.trace(f"operator could not release: {error}")


def _is_endless(strike: Strike, work: Work) -> bool:
    return any(strike.tp == r.tp and r.hash in strike.hashes for r in work.endless)


def drain(world: World) -> None:
    """Drain one or two members of the assignment, which may have no lease any more."""
    members = sorted(world.invariants.state.assignment)
    chosen = world.random.sample(members, min(len(members), world.random.choice((1, 1, 2))))
    verbs = OperatorVerbs(ScriptCalls(Line(world.server, world.trace), world.group, now=lambda: world.server.now_ms))
    try:
        drained, _ = verbs.drain(chosen, "by an operator")
        world.server.seen["drained"] += bool(drained)
    except (CoopKafkaError, Verdict) as error:
        world.trace(f"operator could not drain {chosen}: {error}")


def retire(world: World) -> None:
    """The group gets positions of a topic that no member reads later."""
    positions = RedisPositions(
        ScriptCalls(Line(world.server, world.trace), world.group, now=lambda: world.server.now_ms)
    )
    try:
        positions.create("", TOPICS, {RETIRED: 5})
    except (CoopKafkaError, Verdict) as error:
        world.trace(f"no topic was added: {error}")
    else:
        world.retired.placed(world.server.now_ms)


def delete(world: World, wait_ms: int) -> None:
    """Wait for the end of all leases, and delete the group; refused while a member's lease runs."""
    world.scheduler.turn(wait_ms)

    def trace(what: object) -> None:
        world.trace(f"operator {what}")

    operator = Operator(
        Line(world.server, trace),
        SimulatedLog(world.kafka, world.scheduler.turn),
        world.group,
        now=lambda: world.server.now_ms,
        tokens=world.tokens,
    )
    try:
        trace(f"DELETES: {operator.delete()}")
    except CoopKafkaError as error:
        trace(f"was refused: {error}")


def reset(world: World, most: int, wait_ms: int) -> None:
    """Wait, then move all partitions, or one, to some offset; refused while a member's lease runs."""
    world.scheduler.turn(wait_ms)
    offset, partition = world.random.randint(0, most), world.random.choice(list(world.kafka.logs)).partition
    wanted: ChosenPartitions | None = None if world.chance(0.5) else {TOPIC: frozenset({partition})}

    def trace(what: object) -> None:
        world.trace(f"operator {what}")

    operator = Operator(
        Line(world.server, trace),
        SimulatedLog(world.kafka, world.scheduler.turn),
        world.group,
        now=lambda: world.server.now_ms,
        tokens=world.tokens,
    )
    trace(f"resets {wanted} to {offset}")
    seen = world.server.seen
    seen["half a reset"] += 1  # the mirror may have it
    try:
        trace(f"RESET: {operator.reset(operator.plan_reset(wanted, ToOffset(offset)))}")
        seen["reset done"] += 1
        seen["half a reset"] -= 1
    except CoopKafkaError as error:
        seen["half a reset"] -= not isinstance(error, RedisUnavailableError | GroupBusyError)
        trace(f"was refused: {error}")
