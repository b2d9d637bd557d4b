"""The applications of the group: their checkpoints, the drivers on these, and the ends of drivers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from coordinator.assignment.assignors.assignor import Assignor
from coordinator.assignment.assignors.joined import Joined
from coordinator.assignment.assignors.registry import assignors
from coordinator.assignment.settings import GroupSettings, MemberOptions
from coordinator.member.invariants import check
from coordinator.member.state import State
from coordinator.values.verdicts import Held, OtherFilter
from simulation.actors import Actor, Stopped
from simulation.checkpoint import Checkpoint
from simulation.driver import Driver
from simulation.failing import LONGEST_DELAY_MS
from simulation.pins import Pinned
from simulation.redundancy import RedundantDriver
from simulation.retired import RETENTION_MS
from simulation.wishes import ASSIGNORS, EXCLUSIVE, Broken, Wishes
from simulation.work import Work
from simulation.world import MOST_RECORDS, World

UPGRADED = 4  # the steps of an upgrade to sharing (`policies`)
OUTAGE_MS = 6_000
_FOR_EVER_MS = 1_000_000_000


class Applications:
    """All drivers of one schedule; the seed decides the wishes of each."""

    def __init__(self, world: World) -> None:
        self.world, self.work = world, Work(world)
        self.drivers: list[Driver] = []
        self._running: list[Driver] = []
        self._times = Random(f"{world.group} times")  # noqa: S311 - other schedules stay as they were
        self._sessions = Random(f"{world.group} sessions")  # noqa: S311 - likewise
        self._topics = Random(f"{world.group} topics")  # noqa: S311 - likewise
        self.upgrade = UPGRADED
        self.quiet = False
        self.stops_at_work = 0  # so many drivers stop as soon as their tasks are at work
        self._checkpoints: list[Checkpoint] = []
        self._longest_ms = 300_000 if world.peaceful else world.random.choice((300_000, 300_000, 12_000))
        if world.waits:
            self._longest_ms = 12_000
        self._available_now = world.chance(0.25) and not world.modelled
        self.most_ics = world.random.choice((10_000, 10_000, 1, 3))

    @property
    def running(self) -> list[Driver]:
        """The drivers that have not ended."""
        self._running = [d for d in self._running if d.running]
        return self._running

    def new_checkpoint(self) -> Checkpoint:
        """The empty checkpoint of a new application."""
        taken = self.world.random.choice((0,) * 7 + (1, 2))
        name = f"c{len(self._checkpoints)}"
        self._checkpoints.append(Checkpoint(name, taken=0 if self.world.peaceful else self.world.most_taken(taken)))
        if self.world.kafka.apart:
            topics = self.world.kafka.topics
            self._checkpoints[-1].topics = self._topics.choice(((topics[0],), (topics[1],), topics))
        return self._checkpoints[-1]

    def copy_of(self, checkpoint: Checkpoint) -> Checkpoint:
        """A copy of a checkpoint folder. Its query has an output of its own, and may run beside the original."""
        checkpoint.shared = checkpoint.copied = True
        wal, planned_with = list(checkpoint.wal), list(checkpoint.planned_with)
        copy = replace(
            checkpoint, name=f"c{len(self._checkpoints)}", wal=wal, committed=set(checkpoint.committed), attempts={}
        )
        copy.planned_with = planned_with
        self._checkpoints.append(copy)
        self.world.trace(f"{checkpoint.name} is copied to {copy.name}")
        return copy

    def idle_checkpoints(self) -> list[Checkpoint]:
        """The checkpoints without a driver."""
        busy = [d.checkpoint for d in self.running]
        return [c for c in self._checkpoints if c not in busy and not c.replaced]

    def start(self, checkpoint: Checkpoint) -> None:
        """A driver starts on this checkpoint."""
        checkpoint.shared |= any(d.checkpoint is checkpoint for d in self.running)
        available_now = self._available_now and not self.quiet and self.world.chance(0.7)
        exclusive = not (self.quiet or self.world.peaceful or self.world.joined) and self.world.chance(0.02)
        wishes = Wishes.drawn(
            self.world.random,
            available_now=available_now or checkpoint.needs is not None,
            sharing=None if self.upgrade == UPGRADED else self.upgrade == UPGRADED - 1,
            assignors=EXCLUSIVE if exclusive else self.world.random.choice(ASSIGNORS),
        )
        if self.world.without_order:
            wishes = wishes.without_order(self.world.random)
        elif self.most_ics < MOST_RECORDS:
            wishes = replace(wishes, acknowledges=True)  # so that the cap is reached
        if self.world.wide:
            wishes = wishes.widened()
        if self.world.modelled:
            wishes = wishes.modelled(self.world.modelled)
        if self.world.cuts:
            wishes = replace(wishes, acknowledges=False, orders=False)
        if self.world.joined:
            wishes = wishes.joining(self.world.kafka.topics)
        checkpoint.filter = checkpoint.needs or self.world.filters.drawn(quiet=self.quiet)
        checkpoint.needs = None
        checkpoint.pinned = self.world.pins.drawn(checkpoint.pinned, self._named(), quiet=self.quiet)
        if self.world.waits:
            # Without the reports of all tasks, the clock of a batch runs until the next trigger (rule: batch-clock).
            unreached = 0.0 if self.world.peaceful else wishes.unreached
            wishes = replace(wishes, interval_ms=30_000, unreached=unreached)
        checkpoint.assigned = self.world.pins.assigns(quiet=self.quiet) and not self.world.joined
        self.world.server.seen["assigned"] += checkpoint.assigned
        standby = self.world.standbys.drawn(ends_by_itself=wishes.available_now)
        settings, name = replace(self._settings(wishes, checkpoint), standby=standby), f"d{len(self.drivers)}"
        settings = replace(settings, alone=self.world.alone and self._times.random() < 0.5)
        made = RedundantDriver if self.world.redundant else Driver
        self.drivers.append(made(self.world, self.work, name, checkpoint, wishes, settings))
        self._running.append(self.drivers[-1])
        if self.world.modelled == "Batch" and not self.world.peaceful:
            self._lose_soon(self.drivers[-1])
        self.world.started.append(wishes)
        pinned = f", pinned to {' '.join(map(str, checkpoint.pinned))}" if checkpoint.pinned else ""
        filtered = f", filter {checkpoint.filter.text or 'none'}" if self.world.filters else ""
        self.drivers[-1].trace(f"starts: {wishes}{pinned}{filtered}{', standby' if standby else ''}")

    def _lose_soon(self, driver: Driver) -> None:
        """Most drivers are lost in their first batch, also in the quiet end, which has most batches."""
        moment = self.world.random.choice((None, None, None, "authorize", "the WAL", "seal", "the sink", "entry"))
        if moment == "entry":
            self.lose_entry(driver)
        elif moment:
            driver.line.doom = moment, partial(self.kill, driver)

    def lose_entry(self, driver: Driver) -> None:
        """Kill a driver right after its sink. Before its next life, somebody deletes the entry of the member."""

        def forget() -> None:
            server = driver.world.server
            self.world.trace(f"the entry of {driver.member} is deleted")
            server.raw.delete(server.keys.member(driver.member))
            server.seen["entry lost"] += 1
            self.kill(driver)

        driver.line.doom = "the sink", forget

    def short(self) -> bool:
        """Whether a driver is missing: of a set, or nobody names a part of the cut, or reads a topic."""
        too_few = len(self.running) < len(self.world.sets)
        return too_few or bool(self.world.pins.unread(self._named())) or bool(self._unread_topics())

    def next_checkpoint(self) -> Checkpoint:
        """The checkpoint of the next driver at the quiet end: one that reads what nobody reads.

        The drivers of two copies would fence each other for ever.
        """
        copied = any(d.checkpoint.copied for d in self.running)
        unread, idle = self._unread_topics(), [c for c in self.idle_checkpoints() if not (copied and c.copied)]
        if not unread:
            return self.world.random.choice(idle or [self.new_checkpoint()])
        if found := [c for c in idle if unread & {*c.topics}]:
            return self.world.random.choice(found)
        checkpoint = self.new_checkpoint()
        checkpoint.topics = tuple(sorted(unread))
        return checkpoint

    def _unread_topics(self) -> set[str]:
        if not self.world.kafka.apart:
            return set()
        return {*self.world.kafka.topics} - {topic for d in self.running for topic in d.topics}

    def _named(self) -> list[Pinned]:
        return [d.pinned for d in self.running]

    def orphan(self, driver: Driver) -> None:
        """The driver is dead: its tasks are killed, or write on."""
        for actor in sorted(self._doomed(driver), key=self.world.scheduler.runs):  # the running actor last
            self.world.scheduler.kill(actor)

    def _doomed(self, driver: Driver) -> list[Actor]:
        """The attempts of its tasks that are killed with it."""
        return [actor for task in driver.tasks if self.world.chance(0.5) for actor in task.actors]

    def kill(self, driver: Driver) -> None:
        """SIGKILL of JVM and reader process at their scheduling points."""
        driver.trace("CRASH")
        actors = [*driver.actors, *self._doomed(driver)]
        for actor in sorted(actors, key=self.world.scheduler.runs):  # the running actor last
            self.world.scheduler.kill(actor)

    def restart(self, driver: Driver) -> None:
        """Stop a driver normally, and start another on its checkpoint."""
        if not driver.ended:
            self.world.scheduler.throw(driver.main, Stopped())
        for actor in driver.actors:
            self.world.scheduler.kill(actor)
        self.orphan(driver)
        self.start(driver.checkpoint)

    def stop(self, driver: Driver) -> None:
        """Stop its query normally, at any point."""
        self.world.scheduler.throw(driver.main, Stopped())
        if not driver.ended:
            for actor in driver.actors:
                self.world.scheduler.kill(actor)
        self.orphan(driver)

    def stop_at_work(self) -> None:
        """Stop a driver whose tasks are at work, if that is wished."""
        if self.stops_at_work and (working := [d for d in self.running if d.at_work]):
            driver = self.world.random.choice(working)
            driver.trace("SIGTERM in a batch")
            self.stops_at_work -= 1
            self.stop(driver)

    def _watching(self) -> Callable[[State], None]:
        """Checks the states of one member, one after the other."""
        before: State | None = None

        def watch(state: State) -> None:
            nonlocal before
            check(state, before)
            before = state
            self.world.server.seen["waits for the filter"] += isinstance(state.life.verdict, OtherFilter)
            self.world.server.seen["held"] += isinstance(state.life.verdict, Held)

        return watch

    def _assignors(self, wishes: Wishes) -> tuple[Assignor, ...]:
        if self.world.joined:
            return (Joined(wishes.cutting.joined),)
        return tuple(Broken(a) if wishes.broken else a for a in assignors(wishes.assignors))

    def _settings(self, wishes: Wishes, checkpoint: Checkpoint) -> GroupSettings:
        """The settings of a driver, after its operator read the error of the last driver on this checkpoint."""
        return GroupSettings(
            self.world.group,
            watch=self._watching(),
            session_ms=self._sessions.choice(self.world.sessions),
            longest_ms=self._longest_ms,
            batch_budget_ms=wishes.batch_budget_ms,
            max_lead_ms=wishes.max_lead_ms,
            early_ends=wishes.early_ends,
            on_error=self.world.on_error,
            longest_delay_ms=LONGEST_DELAY_MS,
            max_deferred_keys=self.world.max_deferred_keys,
            retention_ms=(_FOR_EVER_MS if self.world.kafka.apart else RETENTION_MS) * self._times.choice((1, 1, 1, 3)),
            max_outage_ms=OUTAGE_MS,
            filter=checkpoint.filter,
            on_state_loss="earliest" if checkpoint.lost or wishes.on_state_loss == "earliest" else "fail",
            fail_on_data_loss=wishes.fail_on_data_loss and not checkpoint.aged,
            growth_grace_ms=self.world.growth_grace_ms // self._times.choice((1, 1, 1, 1, 4)),
            tokens=self.world.tokens,
            sharing=wishes.sharing and self.world.ordering != "partition",
            assignors=self._assignors(wishes),
            replay_acknowledged=wishes.replays_acknowledged,
            max_individual_commits=MemberOptions().max_individual_commits
            if self.world.without_order
            else self.most_ics,
            ordering=self.world.ordering,
        )
