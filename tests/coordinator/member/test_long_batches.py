"""Members whose batches, triggers or outages are long, on a real Redis with a clock that only the test moves."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import redis

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import FencedMemberError, RedisUnavailableError
from coordinator.member.cooperative import Cooperative
from coordinator.member.invariants import check
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.plan.planning import Cutting
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import STANDBY
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Joining
from coordinator.redis.snapshot import read_group
from coordinator.redis.store import store_of
from coordinator.redis.verb import Reply
from coordinator.values.offset_spec import Earliest
from coordinator.values.subscription import TopicPartition, Topics
from simulation.kafka import KEYS, TOPIC, SimulatedKafka, SimulatedLog

SESSION, BEAT, MINUTE = 45_000, 3_000, 60_000
TPS = (TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1))


@dataclass
class Clock:
    """A clock that moves in waits, and members that beat meanwhile."""

    now: int = 4_000_000_000_000  # far in the future of the real Redis, which expires keys by its own clock
    beats: list[Callable[[], None]] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.now

    def wait(self, ms: int) -> None:
        self.now += max(1, ms)
        for beat in self.beats:
            beat()

    def wake(self) -> None:
        pass

    def pass_by(self, ms: int) -> None:
        until = self.now + ms
        while self.now < until:
            self.wait(min(BEAT, until - self.now))


class Line(RedisClient):
    """A client of a Redis that may be away for a time."""

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__(url)
        self.clock, self.away_until = clock, 0

    def run(self, verb: str, keys: list[str], args: list[str]) -> Reply:  # type: ignore[override]
        if self.clock.now < self.away_until:
            raise RedisUnavailableError("no answer", "wait")
        return super().run(verb, keys, args)


class Query:
    """A query: its member, its checkpoint, and the offsets of each hash range that its batches had."""

    def __init__(self, world: "Group", session_ms: int = SESSION, **settings: Any) -> None:
        known = GroupSettings(
            world.name, capacity=2, session_ms=session_ms, watch=check, tokens=world.tokens, **settings
        )
        made = Cooperative if known.ordering == "none" else Service
        self.service = made(
            known,
            Topics((TOPIC,)),
            Earliest(),
            Cutting(2, by_offset=known.ordering == "none"),
            store=store_of(ScriptCalls.of(world.line, known, now=world.clock.now_ms)),
            log=SimulatedLog(world.kafka, lambda _=0: None),
            clock=world.clock,
            me=Joining({"host": "h"}),
        )
        self.world, self.start, self.next_beat = world, StreamOffset(world.name), 0
        world.queries.append(self)

    @property
    def member(self) -> str:
        return self.service.member

    def beat(self) -> None:
        if self.service.state.life.nonce and self.world.clock.now >= self.next_beat:
            self.next_beat = self.world.clock.now + BEAT
            self.service.heartbeat()

    def begin(self) -> StreamOffset | None:
        """A batch whose tasks have begun."""
        end = self.service.next_offset(self.start, Limits())
        if end is not None:
            tasks = self.service.tasks(end)
            for s in (s for task in tasks for s in task):
                share = s.hashes.size / 2**63
                self.world.had.update({(s.topic_partition, o): share for o in range(s.offsets.start, s.offsets.until)})
        return end

    def finish(self, end: StreamOffset) -> None:
        """All its tasks end, and report it; then the sink completes the batch."""
        batch = self.service._inbox._batch
        for number, _ in enumerate(batch.tasks if batch and batch.end == end else ()):
            self.service.end_task(end.digest, number, {})
        self.start = end

    def batch(self) -> bool:
        end = self.begin()
        if end is not None:
            self.finish(end)
        return end is not None


@dataclass
class Group:
    """A group of queries on one topic, and how often each offset was in a batch."""

    name: str
    line: Line
    clock: Clock
    text: redis.Redis
    kafka: SimulatedKafka = field(default_factory=lambda: SimulatedKafka(2))
    queries: list[Query] = field(default_factory=list)
    had: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    made: int = 0

    def __post_init__(self) -> None:
        self.clock.beats.append(self.beat)

    def beat(self) -> None:
        for query in self.queries:
            query.beat()

    def tokens(self, size: int) -> str:
        self.made += 1
        return f"{self.made:0{2 * size}x}"

    def produce(self, tps: tuple[TopicPartition, ...] = TPS, count: int = 10) -> None:
        for tp in tps:
            for i in range(count):
                self.kafka.produce(tp, KEYS[i % len(KEYS)])

    def settled(self) -> None:
        """Ranges are shared, and all records are read."""
        self.queries[0].service.first_positions()
        for _ in range(4):
            for query in self.queries:
                query.batch()
            self.clock.pass_by(1_000)
        self.had.clear()

    def restart(self) -> None:
        self.text.hset(self.keys.meta, "run_id", "0")

    @property
    def keys(self) -> GroupKeys:
        return GroupKeys(self.name)

    @property
    def repeated(self) -> list[tuple[TopicPartition, int]]:
        return sorted(at for at, times in self.had.items() if times > 1.001)

    def why(self, kind: str) -> list[str]:
        """The texts of the events of one kind."""
        return [fields["why"] for fields in self._entries if fields["event"] == kind]

    @property
    def events(self) -> set[str]:
        return {fields["event"] for fields in self._entries}

    @property
    def _entries(self) -> list[dict[str, str]]:
        entries = cast(list[tuple[str, dict[str, str]]], self.text.xrange(self.keys.events))
        return [fields for _, fields in entries]

    @property
    def recovers(self) -> bool:
        return int(cast(str, self.text.hget(self.keys.meta, "recovering_until")) or 0) > self.clock.now


@pytest.fixture
def world(redis_url: str, group: str) -> Iterator[Group]:
    clock = Clock()
    with (
        closing(Line(redis_url, clock)) as line,
        closing(redis.Redis.from_url(redis_url, decode_responses=True)) as text,
    ):
        made = Group(group, line, clock, text)
        made.produce()
        yield made


NOT_EARLY: dict[str, Any] = {"batch_budget_ms": 0}
KINDS = [
    pytest.param({"early_ends": True}, id="tasks may end early"),
    pytest.param(NOT_EARLY, id="tasks read to their planned ends"),
    pytest.param({"ordering": "none"}, id="without order"),
]


@pytest.mark.parametrize("settings", KINDS)
@pytest.mark.parametrize("apart_ms", [200, 6 * MINUTE], ids=["aligned", "apart"])
def test_a_trigger_interval_above_the_longest_batch__healthy_queries_repeat_nothing(
    world: Group, settings: dict[str, Any], apart_ms: int
) -> None:
    """Spark asks for the next batch, and so commits the last one, only at its trigger (rule: batch-clock)."""
    pair = [Query(world, **settings) for _ in range(2)]
    world.settled()
    for _ in range(3):
        world.produce()
        for query in pair:
            query.batch()
            world.clock.pass_by(apart_ms)
        world.clock.pass_by(10 * MINUTE - 2 * apart_ms if apart_ms < MINUTE else 4 * MINUTE)
    assert world.repeated == []
    assert not {"lost", "fence", "expire"} & world.events
    assert len(world.had) >= 2 * 20, "both read"


def test_a_trigger_interval_above_the_longest_batch__a_standby_waits_on(world: Group) -> None:
    worker, standby = Query(world, **NOT_EARLY), Query(world, standby=True, **NOT_EARLY)
    world.settled()
    for _ in range(3):
        world.produce()
        worker.batch()
        standby.batch()
        world.clock.pass_by(10 * MINUTE)
    assert (world.repeated, "takeover" in world.events) == ([], False)


def test_a_task_does_not_end__others_take_the_ranges_after_the_longest_batch(world: Group) -> None:
    hangs, other = Query(world, **NOT_EARLY), Query(world, **NOT_EARLY)
    world.settled()
    world.produce()
    end = hangs.begin()
    assert end is not None
    hangs.service.end_task(end.digest, 0, {})
    world.clock.pass_by(5 * MINUTE + 2 * BEAT)
    for _ in range(3):
        other.batch()
        world.clock.pass_by(1_000)
    assert "expire" in world.events
    assert len(world.had) == 2 * 10, "nothing waits for it"


def test_a_recovery_in_a_batch_that_hangs__its_clock_runs_again(world: Group) -> None:
    hangs, other = Query(world, **NOT_EARLY), Query(world, **NOT_EARLY)
    world.settled()
    world.produce()
    assert hangs.begin() is not None
    world.restart()
    other.batch()
    world.clock.pass_by(5 * MINUTE + 2 * BEAT)
    for _ in range(3):
        other.batch()
        world.clock.pass_by(1_000)
    assert "expire" in world.events


@pytest.mark.parametrize("standby", [False, True], ids=["beside a member", "beside a standby"])
@pytest.mark.parametrize(
    "sessions", [(SESSION, SESSION), (SESSION, 6_000)], ids=["of equal sessions", "of a shorter one"]
)
def test_redis_is_restarted_in_a_long_batch__its_member_keeps_its_ranges(
    world: Group, standby: bool, sessions: tuple[int, int]
) -> None:
    """Its heartbeat joins again (rule: recovering-session). The other one recovers the group."""
    one, two = Query(world, sessions[0], **NOT_EARLY), Query(world, sessions[1], standby=standby, **NOT_EARLY)
    world.settled()
    world.produce()
    end = one.begin()
    assert end is not None
    world.restart()
    for _ in range(60):
        two.batch()
        world.clock.pass_by(1_000)
    one.finish(end)
    for _ in range(3):
        one.batch()
        two.batch()
    assert (world.repeated, "takeover" in world.events, len(world.had)) == ([], False, 2 * 10)
    state = read_group(world.line, world.name)
    assert (one.member in state.assignment, state.standbys) == (True, {two.member: STANDBY} if standby else {})


def test_a_restart_with_all_data__the_recovery_ends_once_every_member_is_heard(world: Group) -> None:
    one, two = Query(world, **NOT_EARLY), Query(world, **NOT_EARLY)
    world.settled()
    world.produce()
    world.restart()
    before = world.clock.now
    one.batch()
    assert world.clock.now - before <= 2 * BEAT, "the other one is heard at its heartbeat"
    assert not world.recovers
    two.batch()
    assert (world.repeated, len(world.had)) == ([], 2 * 10)


def test_a_known_member_is_dead__the_recovery_lasts_a_session(world: Group) -> None:
    one, _ = Query(world, **NOT_EARLY), Query(world, **NOT_EARLY)
    world.settled()
    world.queries.pop()  # it beats no more
    world.restart()
    before = world.clock.now
    one.batch()
    assert world.clock.now - before >= SESSION


def test_a_restart_that_lost_writes__the_recovery_lasts_a_session(world: Group) -> None:
    """Redis may not know all members: others may have joined since."""
    one, _ = Query(world, **NOT_EARLY), Query(world, **NOT_EARLY)
    world.settled()
    world.text.hset(world.keys.meta, "commit_seq", 1)
    world.restart()
    before = world.clock.now
    one.batch()
    assert world.clock.now - before >= SESSION


@pytest.mark.parametrize("session_ms", [SESSION, 9_000])
@pytest.mark.parametrize("more_ms", [-2_500, -1_500, -500, 5_000])
@pytest.mark.parametrize("staggered_ms", [100, BEAT - 100])
def test_an_outage_of_about_a_session_or_longer__the_first_caller_takes_nothing(
    world: Group, session_ms: int, more_ms: int, staggered_ms: int
) -> None:
    """The lease of the first caller may still run where the other one's has ended (rule: outage-grace)."""
    one, two = Query(world, session_ms, **NOT_EARLY), Query(world, session_ms, **NOT_EARLY)
    world.settled()
    world.produce()
    ends = [q.begin() for q in (one, two)]
    assert all(ends)
    two.beat()
    world.clock.wait(staggered_ms)
    one.next_beat = 0
    one.beat()
    world.line.away_until = world.clock.now + session_ms + more_ms
    one.next_beat, two.next_beat = world.line.away_until, world.line.away_until + 1_500
    one.finish(ends[0])  # type: ignore[arg-type]
    one.batch()
    two.finish(ends[1])  # type: ignore[arg-type]
    for _ in range(3):
        two.batch()
        one.batch()
        world.clock.pass_by(1_500)
    assert (world.repeated, len(world.had)) == ([], 2 * 10)
    assert not {"lost", "fence", "expire"} & world.events


@pytest.mark.parametrize("more_ms", [-1_500, 5_000])
def test_a_new_member_calls_first_after_an_outage__it_takes_nothing(world: Group, more_ms: int) -> None:
    """Rule: outage-grace."""
    pair = [Query(world, **NOT_EARLY) for _ in range(2)]
    world.settled()
    world.produce()
    ends = [q.begin() for q in pair]
    assert all(ends)
    world.line.away_until = world.clock.now + SESSION + more_ms
    for query in pair:
        query.next_beat = world.line.away_until + 1_500
    world.clock.pass_by(SESSION + more_ms)
    new = Query(world, **NOT_EARLY)
    new.batch()
    for query, end in zip(pair, ends, strict=True):
        query.finish(end)  # type: ignore[arg-type]
    for _ in range(3):
        for query in world.queries:
            query.batch()
        world.clock.pass_by(1_500)
    assert (world.repeated, len(world.had)) == ([], 2 * 10)
    assert not {"lost", "fence", "expire"} & world.events


def test_a_group_is_dead_for_long__a_new_member_waits_for_half_a_session(world: Group) -> None:
    _ = Query(world, **NOT_EARLY)
    world.settled()
    world.queries.clear()
    world.produce()
    world.clock.pass_by(10 * MINUTE)
    new, began = Query(world, **NOT_EARLY), world.clock.now
    while len(world.had) < 2 * 10:
        new.batch()
        world.clock.pass_by(500)
    assert world.clock.now - began <= SESSION // 2 + BEAT


def test_an_outage_longer_than_a_session__a_standby_takes_nothing_over(world: Group) -> None:
    worker, standby = Query(world, **NOT_EARLY), Query(world, standby=True, **NOT_EARLY)
    world.settled()
    world.produce()
    end = worker.begin()
    assert end is not None
    world.line.away_until = world.clock.now + SESSION + 5_000
    worker.next_beat = world.line.away_until + 1_500
    standby.batch()
    worker.finish(end)
    worker.batch()
    assert (world.repeated, "takeover" in world.events) == ([], False)


def test_a_topic_grows_twice_in_an_outage__its_growth_counts_as_late(world: Group) -> None:
    """Rule: growth-order. The member had looked at the topics before the outage, and stores their ends after it."""
    one = Query(world, max_outage_ms=MINUTE, **NOT_EARLY)
    world.settled()
    began = world.clock.now
    world.line.away_until = began + SESSION

    def grow() -> None:
        if world.kafka.partitions < 2 + sum(world.clock.now - began >= ms for ms in (5_000, 40_000)):
            world.kafka.add_partition()

    world.clock.beats.append(grow)
    one.batch()
    one.batch()
    (why,) = world.why("growth")
    assert why == (
        f"{TOPIC}: 2 -> 4 partitions; "
        "seen late, so some keys may be out of order unless it was one step, or steps to multiples"
    )


@pytest.mark.parametrize("before_ms", [SESSION + BEAT, SESSION * 2 // 3])
def test_a_member_that_died_before_the_outage__gets_no_grace(world: Group, before_ms: int) -> None:
    """Its lease may have run when the outage began."""
    one, _ = Query(world, **NOT_EARLY), Query(world, **NOT_EARLY)
    world.settled()
    world.queries.pop()
    world.clock.pass_by(before_ms)
    world.line.away_until = world.clock.now + SESSION + 5_000
    world.produce()
    for _ in range(3):
        one.batch()
    assert len(world.had) == 2 * 10, "it reads all at once"


def test_another_life_has_joined__the_heartbeat_joins_at_no_later_nonce(world: Group) -> None:
    """FENCED stays FENCED: a recovery must not let the older life fence the newer one."""
    older = Query(world, **NOT_EARLY)
    world.settled()
    newer = Query(world, **NOT_EARLY)
    newer.start = older.start
    newer.batch()
    older.service.heartbeat()
    world.restart()
    newer.batch()
    older.service.heartbeat()
    assert newer.batch() is False, "it is not fenced"
    with pytest.raises(FencedMemberError):
        older.batch()


def test_redis_lost_everything_in_a_batch__its_last_task_ends_without_a_seal(world: Group) -> None:
    """The member has joined again, so the seal is not refused at an old nonce: its batch is void."""
    one, two = Query(world, early_ends=True), Query(world, early_ends=True)
    world.settled()
    world.produce()
    end = one.begin()
    assert end is not None
    world.text.delete(*world.text.scan_iter(f"coop:v1:{{{world.name}}}:*"))
    assert world.kafka.group_offsets, "the mirror proves positions"
    two.batch()
    world.clock.pass_by(BEAT)
    assert one.service.state.life.nonce == two.service.state.life.nonce
    one.finish(end)
    one.batch()


def test_two_members_share_a_partition_and_nothing_else_proves_it__they_do_so_together(world: Group) -> None:
    """Rule: proofs-add-up. Each has read half of the hashes; the other one calls while the first one waits."""
    world.kafka = SimulatedKafka(1)
    world.produce(TPS[:1])
    one, two = Query(world, **NOT_EARLY), Query(world, **NOT_EARLY)
    world.settled()
    world.produce(TPS[:1])
    for query in (one, two):
        assert query.batch(), "it owns a part"
    for query in (one, two):
        assert not query.batch(), "it has committed"
    world.text.delete(*world.text.scan_iter(f"coop:v1:{{{world.name}}}:*"))
    world.kafka.group_offsets.clear()
    calls: list[bool] = []

    def other_calls() -> None:
        if not calls and world.text.exists(world.keys.proofs):
            calls.append(True)
            two.batch()

    world.clock.beats.append(other_calls)
    for _ in range(3):
        one.batch()
        two.batch()
        world.clock.pass_by(1_000)
    assert calls
    assert (world.repeated, len(world.had)) == ([], 10)
    assert "recover" in world.events
    assert set(read_group(world.line, world.name).stable.values()) == {20}
