"""Runs schedules, seed after seed, and reports those that break a promise."""

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from coordinator.plan.cost.quotas import Why
from simulation import ending, faults, operating, policies, redundancy
from simulation.applications import Applications
from simulation.sink import Violation
from simulation.world import MOST_RECORDS, Valkey, World

ENOUGH = 1_000
"""Number of schedules in which all of `REACHED` must have happened."""

RETIRES_EVERY = 50
"""Steps between two additions of a topic that no member reads."""

MORE_STEPS = 300
"""Steps without other faults, in which drivers may still stop while their tasks are at work."""

REACHED = frozenset(
    {f.__name__.removeprefix("_") for f in faults.FAULTS}
    | {f"quota: {why}" for why in Why if why is not Why.START}  # needs a thousand records
    | {
        "acknowledged",
        "deletions",
        "damaged",
        "back-pressure",
        "IndividualCommitTooOldError",
        "MaxIndividualCommitReachedError",
    }
    | {
        "shared",
        "another assignor",
        "broken assignor",
        "policy set",
        "cluster policy set",
        "partition order",
        "upgraded",
        "IndividualCommitNotAllowedError",
        "InconsistentGroupProtocolError",
    }
    | {"without order", "handed out again"}
    | {"with joined topics", "joined", "with thousands of offsets"}
    | {"late write of the mirror", "copy_checkpoint", "fenced by a copy"}
    | {"with long triggers", "watched for repeats", "lost while denied"}
    | {"with cuts", "cut_log", "topic_again", "cut accepted"}
    | {"with different subscribers", "placed again"}
    | {"with sessions that differ", "recovered beside others", "a recovery waited"}
    | {"lost_in_a_batch", "struck widely"}
    | {"stopped_in_a_batch", "left in a batch", "cut off"}
    | {"hung", "struck", "on trial", "parked", "released", "all but parked", "cut by cost", "merged by cost"}
    | {
        "CommitBeyondReadError",
        "CommitBeforeEndsError",
        "reset done",
        "FencedMemberError",
        "RedisUnavailableError",
        "writes refused",
        "StateLostError",
        "DataLossError",
        "ghost Fenced",
    }
    | {"key deferred", "key parked", "key released", "dead letter", "failing tried", "deferred in a replay"}
    | {"ordered", "turn: WAIT", "turn: ALONE", "OrderedCommitRefusedError"}
    | {"SinkSkippedBatchError", "the sink had it", "ended early", "unreached", "rows acknowledged", "holes closed"}
    | {"holes behind closed", "holes of other lanes closed"}
    | {"pinned", "held", "OverlappingRangesError"}
    | {"replayed the rest", "forgotten", "deleted", "replaced", "mirror"}
    | {"with standbys", "took over", "drained"}
    | {"joined topics grown together"}
    | {"growth kept", "growth seen late", "growth may disorder", "grow_unseen", "in order across a growth"}
    | {
        "with ordering=partition",
        "with sharing=never",
        "GroupNotSharedError",
        "with replica sets",
        "moved to another set",
    }
    | {"election", "transaction", "silence", "assigned"}
    | {"with a filter", "dropped", "waits for the filter", "change_filter", "FilterMismatchError", "FilterChangedError"}
)
"""Events that the schedules must reach: a run without one proves nothing about it."""


def _kinds(world: World, seed: int) -> list[tuple[Callable[[faults.Mixture], faults.Mixture], bool]]:
    """The changes of the mixture, each with whether the schedule is of that kind."""
    copies, rough = Random(f"{seed} copies").random() < 0.12, not world.peaceful  # noqa: S311 - it must replay
    stops = Random(f"{seed} stops").random() < 0.15  # noqa: S311 - likewise
    return [
        (faults.failing, world.on_error),
        (faults.growing, world.grows and rough),
        (faults.without_growth, bool(world.pins) or world.kafka.apart),
        (faults.growing_apart, world.joined and rough),
        (faults.filtering, world.filters.changes),
        (faults.answering_low, bool(world.brokers) and rough),
        (faults.copying_checkpoints, copies and rough),
        (faults.stopping_in_batches, stops and rough),
        (faults.cutting, bool(world.cuts)),
        (faults.losing_redis, world.kafka.apart and rough),
        (faults.restarting, len(world.sessions) > 1),
        (faults.losing_in_batches, world.wide and rough),
        (faults.redundant, world.redundant),
        (faults.draining, world.standbys.drains and rough),
        (partial(faults.modelled, world.modelled, operated=seed % 2 == 0), bool(world.modelled)),
    ]


class Schedule:
    """Faults for a while, then a quiet end in which all records must arrive; the seed decides all of it."""

    def __init__(self, valkey: Valkey, seed: int, *, modelled: str = "") -> None:
        self.world = World(valkey, seed, modelled=modelled)
        self._faults = faults.mixture(self.world.random, peaceful=self.world.peaceful)
        for kind, wanted in _kinds(self.world, seed):
            self._faults = kind(self._faults) if wanted else self._faults
        redundancy.spread(self.world)
        unreliable = self.world.random.choice((0.0, 0.03, 0.1))
        for each in self.world.sets:
            each.server.unreliable = unreliable
        self._apps = Applications(self.world)

    def run(self) -> None:
        """Run it; raises `Violation`."""
        world, apps = self.world, self._apps
        if world.without_order:
            self._faults = faults.without_order(self._faults)
        elif world.chance(0.15) and not (world.peaceful or world.redundant or world.modelled):
            policies.begin_plain(world, apps)
            self._faults = faults.upgrading(self._faults)
        world.produce(world.random.randint(0, 8), MOST_RECORDS)
        for _ in range(world.random.choice((1, 2, 2, 3))):
            apps.start(apps.new_checkpoint())
        frequency = world.random.choice((0.02, 0.05, 0.1))
        for step in range(world.random.choice((100, 250, 500))):
            if world.retires and step % RETIRES_EVERY == RETIRES_EVERY - 1:
                operating.retire(world)
            if world.chance(frequency):
                faults.draw(world.any_set, apps, self._faults)
            apps.stop_at_work()
            world.scheduler.step()
        for _ in range(MORE_STEPS):
            if apps.stops_at_work:
                apps.stop_at_work()
                world.scheduler.step()
        ending.quietly(world, apps)


@dataclass(frozen=True, slots=True)
class Failure:
    """A schedule that broke a promise, and its story."""

    seed: int
    what: str
    story: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command that replays it."""
        return f"scripts/simulate --schedules 1 --seed {self.seed} --trace"


@dataclass(slots=True)
class Outcome:
    """The events of a number of schedules."""

    schedules: int = 0
    seconds: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def never(self) -> list[str]:
        """The events that this many schedules should have reached, and did not."""
        return sorted(REACHED - {what for what, n in self.seen.items() if n}) if self.schedules >= ENOUGH else []

    def __str__(self) -> str:
        rate = self.schedules / self.seconds if self.seconds else 0.0
        counts = ", ".join(f"{n:,} {what}" for what, n in sorted(self.seen.items()) if n)
        return (
            f"{self.schedules:,} schedules in {self.seconds:.0f} s ({rate:.1f} a second), "
            f"{len(self.failures)} violations\n  faults and what they led to: {counts}"
        )


def run(
    valkey: Valkey, seeds: Iterable[int], *, seconds: float | None = None, violations: int | None = None
) -> Outcome:
    """Run the schedules of these seeds, or as many as begin within `seconds`, or before so many have failed."""
    outcome, began = Outcome(), time.monotonic()
    for seed in seeds:
        if seconds is not None and time.monotonic() - began > seconds:
            break
        if violations is not None and len(outcome.failures) >= violations:
            break
        if failure := _run_one(valkey, seed, outcome):
            outcome.failures.append(failure)
        outcome.schedules += 1
    outcome.seconds = time.monotonic() - began
    return outcome


def story(valkey: Valkey, seed: int) -> tuple[str, ...]:
    """The whole story of one schedule, failed or not."""
    schedule = Schedule(valkey, seed)
    world = schedule.world
    try:
        schedule.run()
    except Violation as violation:
        world.trace(f"VIOLATION {violation}")
    finally:
        world.close()
    return tuple(world.story)


def _run_one(valkey: Valkey, seed: int, outcome: Outcome) -> Failure | None:
    schedule = Schedule(valkey, seed)
    world = schedule.world
    try:
        schedule.run()
    except Violation as violation:
        return Failure(seed, str(violation), tuple(world.story))
    except Exception as error:  # noqa: BLE001 - any other error is a violation too, with its seed
        return Failure(seed, f"{type(error).__name__}: {error}", tuple(world.story))
    finally:
        world.close()
        world.server.seen["late write of the mirror"] += world.brokers.late_writes
        world.server.seen["in order across a growth"] += world.sink.crossed
        world.server.seen["placed again"] += sum(each.invariants.placed_again for each in world.sets)
        outcome.seen += world.server.seen
        gc.collect(0)
    return None
