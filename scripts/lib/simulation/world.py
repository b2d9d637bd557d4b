"""The shared state of one schedule: random choices, time, a topic, a group in a real Valkey, the sink, the story.

The world knows no driver. Drivers, faults and the end of a schedule are in higher modules.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from copy import copy
from random import Random
from typing import Any, cast

import redis

from coordinator.assignment.settings import GroupSettings, Ordering
from coordinator.progress.growth import Growth
from coordinator.redis.client import Entries, RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.values.offset_spec import Earliest, Latest
from coordinator.values.subscription import TopicPartition
from simulation import failing
from simulation.actors import BEGINNING_MS, Actor, Scheduler, VirtualClock
from simulation.assigned import Assigned
from simulation.brokers import Brokers
from simulation.cuts import Cuts
from simulation.filters import Filters
from simulation.invariants import Invariants, look_script
from simulation.kafka import JOINED, OTHER, TOPIC, Record, SimulatedKafka
from simulation.pins import Pins
from simulation.producers import Producers
from simulation.recoveries import Recoveries, session_lengths
from simulation.redis_server import FATES, FATES_OF_ONE_LIFE, PEACEFUL_FATES, Server
from simulation.retired import Retired
from simulation.sink import Sink, Violation, Visible
from simulation.standbys import Standbys
from simulation.state import State
from simulation.trials import WIDELY, Trials
from simulation.turns import Turns
from simulation.wishes import Wishes

SESSION_MS = 4_000
MOST_RECORDS = 24  # in a partition, before the quiet end
_LATEST = 20  # events: that of a new growth is among the last ones


class Valkey:
    """The connections that all schedules share."""

    def __init__(self, url: str) -> None:
        self.client = RedisClient(url)
        self.raw = redis.Redis.from_url(url, single_connection_client=True)
        self.text = redis.Redis.from_url(url, decode_responses=True, single_connection_client=True)
        self.look = look_script(self.text)

    def close(self) -> None:
        """Close the connections."""
        with closing(self.raw), closing(self.text):
            self.client.close()


class World:
    """The state that the actors of one schedule share; the seed decides all of it."""

    def __init__(self, valkey: Valkey, seed: int, *, modelled: str = "") -> None:
        self.random = Random(seed)  # noqa: S311 - it must replay
        self.modelled = modelled  # only kinds of groups and members that this model of `specs/` has
        self.noted: Callable[[str, Caller, Any], None] = lambda *_: None  # a step of Spark or the sink: see `Recorder`
        self.group = f"simulation-{seed}"
        ordering = Random(f"{seed} ordering")  # noqa: S311 - other schedules stay as they were
        self.without_order = ordering.random() < 0.2 and not modelled
        self._draw_failing(Random(f"{seed} failing"))  # noqa: S311 - likewise
        self.waits = Random(f"{seed} waits").random() < 0.15  # noqa: S311 - triggers are longer than the longest batch
        self.retires = Random(f"{seed} retired").random() < 0.3 and not modelled  # noqa: S311 - likewise
        self.grows = Random(f"{seed} growths").random() < 0.15  # noqa: S311 - often, and while nobody looks
        self.story: list[str] = []
        self.scheduler = Scheduler(self.random)
        self.early = Random(f"{seed} early")  # noqa: S311 - likewise
        self.clock = VirtualClock(self.scheduler, self.early)
        self.brokers = Brokers(None if modelled else seed)
        joined = Random(f"{seed} joined")  # noqa: S311 - likewise
        self.joined = not (self.without_order or modelled) and joined.random() < 0.12
        self.kafka = SimulatedKafka(
            self.random.randint(1, 2),
            self._topics(Random(f"{seed} topics")),  # noqa: S311 - likewise
            self.brokers,
            lambda: self.scheduler.now_ms,
        )
        self.producers = Producers(self.kafka, self.random)
        stretches = Random(f"{seed} stretches")  # noqa: S311 - likewise
        single = len(self.kafka.topics) == 1 and not modelled
        self.wide = single and stretches.random() < 0.06  # slices of thousands of offsets
        self.producers.stretches = stretches if self.wide else None
        self.growth_grace_ms = self.random.choice((6_000, 40_000))
        self._visible, self._remembers = (
            self.random.choice(list(Visible)),
            self.chance(0.5) and modelled in ("", "Batch"),
        )
        self.starting = self.random.choice((Earliest(), Earliest(), Latest()))
        self._valkey = valkey
        self._found(Counter())
        self.server.reads_on = Random(f"{seed} reads").random() < 0.3  # noqa: S311 - other schedules stay as they were
        self.sets: tuple[World, ...] = (self,)  # this group, and the other replica sets
        self.peaceful = self.chance(0.12)
        self.server.fates = (
            PEACEFUL_FATES if self.peaceful else FATES_OF_ONE_LIFE if modelled in ("Batch", "Loss") else FATES
        )
        self._draw_kinds(seed)
        by_key = self.without_order or self.joined or modelled
        whole = self.peaceful and not by_key and Random(f"{seed} whole").random() < 0.3  # noqa: S311 - likewise
        self.ordering: Ordering = "none" if self.without_order else "partition" if whole else "key"
        if whole:
            self.on_error = False  # a function by key is refused there
        self.server.seen["with ordering=partition"] += whole
        self.server.seen["with thousands of offsets"] += self.wide
        self.server.seen["without order"] += self.without_order
        self.readers: list[tuple[str, str | None]] = []  # of each batch that was read: its member, and the nonce
        self.started: list[Wishes] = []  # of each driver so far
        self.sessions = session_lengths(seed, SESSION_MS, differ=not self.peaceful)
        self.server.seen["with sessions that differ"] += len(self.sessions) > 1
        self.operators: list[Actor] = []
        self._writers: list[Actor] = []
        self._tokens = 0
        self.server.seen["with replica sets"] += self.redundant

    def _found(self, seen: Counter[str]) -> None:
        """What belongs to one group: its state in Redis, and what its members and its sink know."""
        keys, text = GroupKeys(self.group), self._valkey.text
        self.sink = Sink(self._visible, self.kafka.aged, self.producers.ordered, remembers=self._remembers)
        self.sink.by_key = not self.without_order
        self.invariants = Invariants(self._valkey.look, keys, self.kafka, self.sink)
        self.server = Server(self._valkey.client, self._valkey.raw, keys, self.scheduler, self.random, seen=seen)
        self.invariants.redis_ms = lambda: self.server.now_ms
        self.server.forget()
        self.server.watch, self.server.deleted = self._watch, self._deleted
        self.turns, self.recoveries, self.trials = Turns(self.invariants.states), Recoveries(seen), Trials()
        self.lives: dict[str, str] = {}  # of each member: the driver whose first join was the latest
        self.joined_with: dict[str, GroupSettings] = {}  # the settings of each member at its last join
        self.invariants.assigned = Assigned(text, keys, seen).check
        self.retired = Retired(text, keys, seen)

    def beside(self, group: str) -> "World":
        """Another replica set: a group of its own over the same logs, on the same hosts and servers."""
        other = copy(self)
        other.group, other.kafka = group, self.kafka.beside()
        other._found(self.server.seen)  # noqa: SLF001 - of its own class
        other.server.fates, other.server.reads_on = self.server.fates, self.server.reads_on
        return other

    @property
    def any_set(self) -> "World":
        """This group, or one of the replica sets."""
        return self if len(self.sets) == 1 else self.random.choice(self.sets)

    def cuts_found(self) -> None:
        """A member has moved positions because a log was cut: look where they are now."""
        state = self.invariants.state
        self.cuts.found({tp: max(p for _, p in segments) for tp, segments in state.segments.items()})

    def _topics(self, random: Random) -> tuple[str, ...]:
        """One topic; or two that are joined, or that have different subscribers."""
        if self.joined:
            return TOPIC, JOINED
        return (TOPIC, OTHER) if random.random() < 0.12 and not self.modelled else (TOPIC,)

    def _draw_failing(self, fails: Random) -> None:
        """What happens to records on which the function fails."""
        self.on_error = not self.without_order and fails.random() < 0.5 and not self.modelled
        self.then = fails.choice(("park", "park", "dead_letter"))
        few = self.then == "dead_letter"  # parked keys at the cap hold back their partition until they are released
        self.max_deferred_keys = fails.choice((10_000, 3, 1)) if few else 10_000
        self.host_ahead_ms = fails.choice((0, 0, 0, 1_000, 60_000, 30 * 86_400_000))  # the clock of the executors

    def _draw_kinds(self, seed: int) -> None:
        """The kinds of members, and what may happen to their logs. Each draws by itself."""
        single = len(self.kafka.topics) == 1 and not self.modelled
        self.pins = Pins(seed, possible=not (self.peaceful or self.without_order) and single)
        may_cut = not (self.peaceful or self.pins or self.wide) and (single or self.modelled == "Loss")
        share = 0.7 if self.modelled else 0.12
        self.cuts = Cuts(seed, self.kafka, self.sink, share=share if may_cut else 0.0)
        self.invariants.excused = self.cuts.excuses
        self.filters = Filters(seed, may_change=not (self.peaceful or self.pins or self.kafka.apart or self.modelled))
        may = not (self.pins or self.without_order) and single
        self.standbys = Standbys(seed, self.server.seen, possible=may)
        drawn = {"standbys": self.standbys, "a filter": self.filters, "joined topics": self.joined}
        drawn |= {"different subscribers": self.kafka.apart, "cuts": self.cuts, "long triggers": self.waits}
        plain = may and not (self.wide or self.cuts or self.standbys or self.standbys.drains or self.filters)
        alone = Random(f"{seed} alone").random() < 0.08  # noqa: S311 - likewise
        others = self.pins or self.without_order or self.joined or self.kafka.apart or self.modelled
        self.alone = alone and not others
        self.server.seen["with sharing=never"] += self.alone
        self.redundant = plain and not self.alone and Random(f"{seed} sets").random() < 0.35  # noqa: S311 - it must replay
        self.retires = self.retires and not (self.kafka.apart or self.redundant)
        self.server.seen.update({f"with {what}": int(bool(x)) for what, x in drawn.items()})

    def most_taken(self, wanted: int) -> int:
        """So many batch ids of a new checkpoint may be in its sink already."""
        return min(wanted, {"": wanted, "Batch": 1}.get(self.modelled, 0))

    @property
    def longest_session_ms(self) -> int:
        """The longest session of any member."""
        return max(self.sessions)

    def close(self) -> None:
        """End every actor, delete the group."""
        for actor in self.scheduler.actors:
            self.scheduler.kill(actor)
        for each in self.sets:
            each.server.forget()

    def trace(self, what: str) -> None:
        """Write one line of the story."""
        self.story.append(f"{self.scheduler.now_ms - BEGINNING_MS:7} {what}")

    def chance(self, probability: float) -> bool:
        """A decision of the seed."""
        return self.random.random() < probability

    def tokens(self, size: int) -> str:
        """Hex digits that are unique in this schedule."""
        self._tokens += 1
        return f"{self._tokens:0{2 * size}x}"

    def spawn_writer(self, name: str, body: Callable[[], None]) -> Actor:
        """A new actor that works on a task."""
        self._writers.append(self.scheduler.spawn(name, body))
        return self._writers[-1]

    def writing(self) -> list[Actor]:
        """The actors of tasks that have not ended."""
        self._writers = [a for a in self._writers if a.alive]
        return self._writers

    def produce(self, count: int, most: int) -> None:
        """Append records to logs that are not full."""
        for _ in range(count):
            self.producers.write(self.scheduler.now_ms, most)

    def _watch(self) -> None:
        before = self.invariants.state
        self.invariants.check()
        self._check_filter(before)
        self.standbys.watch(self.invariants.members.standbys)
        topics, retentions = self.invariants.members.topics, lambda: [s.retention_ms for s in self._live_settings()]
        self.retired.check(topics, self.server.now_ms, retentions)
        if self.invariants.state is not before:
            failing.counts_on(before, self.invariants.state)
            failing.bounded(before, self.invariants.state, self.server.now_ms)
        for tp, handed in self.invariants.state.handed.items():
            moved = [
                o for o, (_, member) in before.handed.get(tp, {}).items() if handed.get(o, ("", member))[1] != member
            ]
            self.server.seen["handed out again"] += bool(moved)
        for strike in self.invariants.state.strikes:
            if strike not in self.trials.struck_at:
                self.trials.struck_at[strike] = self.scheduler.now_ms
                self.server.seen["parked" if strike.parked else "struck"] += 1
                self.server.seen["struck widely"] += len(strike.offsets) >= WIDELY
        for growth in self.invariants.state.growths:
            if growth not in before.growths:
                self._check_grace(growth)
                self._hear(growth)
            self.producers.recorded(growth.old, growth.new)
        if not self.producers.founded:
            self.producers.founded = len(self.invariants.base)

    def _deleted(self) -> None:
        """An operator has deleted the group, maybe by a call that came late."""
        self.server.seen["deleted"] += 1
        self.server.copies.clear()  # an old copy would bring the deleted group back
        self.producers.break_promise()
        self.grow_together()  # a new group refuses joined topics that grew apart
        self.invariants.deleted()

    def grow_together(self) -> None:
        """Joined topics that have fewer partitions than another grow to as many."""
        if self.joined:
            self.producers.grow(self.kafka.partitions, self.scheduler.now_ms)

    def _live_settings(self) -> list[GroupSettings]:
        """The settings of the members with a lease."""
        live = self.invariants.members.alive(self.server.now_ms)
        return [self.joined_with[member] for member in live if member in self.joined_with]

    def _check_grace(self, growth: Growth) -> None:
        """A growth waits for the longest grace of the members (rule: settings-that-differ).

        One that Redis had lost is recorded again as it was.
        """
        grace_ms, is_new = growth.until_ms - growth.seen_ms, growth.seen_ms == self.server.now_ms
        if is_new and grace_ms < max((s.growth_grace_ms for s in self._live_settings()), default=0):
            raise Violation(f"GRACE: {growth} is shorter than that of a member that lives")
        if grace_ms < self.growth_grace_ms:
            self.producers.break_promise()

    def _hear(self, growth: Growth) -> None:
        """Note the words of the event about a growth. Members say the same in their logs, from what Redis holds."""
        about, seen = f"{growth.topic}: {growth.old} -> {growth.new} partitions; ", self.server.seen
        latest = cast(Entries, self._valkey.text.xrevrange(self.server.keys.events, count=_LATEST))
        words = next((e["why"].removeprefix(about) for _, e in latest if e["why"].startswith(about)), growth.promise)
        if words != growth.promise:
            raise Violation(f"WORDS: the event says {words!r}, and members say {growth.promise!r}")
        if steps := self.producers.false_claim(growth.old, growth.new, words, growth.topic):
            raise Violation(f"WORDS: {words!r} of {growth.old} -> {growth.new}, which was {steps}")
        kept = self.producers.hear(growth.old, growth.new, words, growth.topic)
        seen["growth kept" if kept else "growth seen late" if growth.late else "growth may disorder"] += 1

    def _check_filter(self, before: State) -> None:
        """The filter of a group changes only while no other member lives (rule: one-filter)."""
        now = self.invariants.state
        if (before.nonce, before.run_id) == (now.nonce, now.run_id) and before.filter != now.filter:
            alive = self.invariants.members.alive(self.server.now_ms)
            if len(alive) > 1:
                raise Violation(f"FILTER: it is {now.filter!r} after {before.filter!r}, and {alive} live")

    def needed(self, tp: TopicPartition, end: int) -> list[Record]:
        """The records below `end` that should be in a completed batch, and are not."""
        return [r for r in self.promised(tp, end) if r not in self.sink.completed]

    def promised(self, tp: TopicPartition, end: int) -> list[Record]:
        """The records below `end` that the group owes to the sink.

        Nothing shows a cut below a position that a reset has set and that no member has read up to (guarantees.md):
        after a reset, no new record of a log that was cut counts.
        """
        reset = self.server.seen["reset done"] > 0 or self.invariants.reset > 0  # half a reset counts too
        return [
            r
            for r in self.kafka.between(tp, self.invariants.base.get(tp, 0), end)
            if not (self.kafka.aged(r) or r in self.sink.skipped or self.sink.dropped(r) or (reset and r.life > 0))
        ]

    def in_peace(self) -> None:
        """Raise `Violation` if a record was done twice without a fault that allows it (rule: bounded-repeats).

        A thread of a driver that gets no turn for a session, as one of many may, stands still like a paused process.
        A recovery voids lane epochs: if others get the ranges of a batch before its owner calls again, they repeat it.
        """
        excuses = (
            "crash",
            "deletions",
            "late heartbeat",
            "RedisUnavailableError",
            "RedisNotReadyError",
        )
        lost = any(self.server.seen[what] for what in excuses)
        watched = self.peaceful and not lost
        self.server.seen["watched for repeats"] += watched
        repeated = self.sink.repeated_by_one if self.server.seen["restart_redis"] else self.sink.repeated
        if watched and repeated:
            raise Violation(f"REPEAT: {repeated} was completed twice, and no driver crashed, stopped or hung")
